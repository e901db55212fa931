"""Declarations written in Python: a file with a function `resources`, or with functions marked by `@resources`.

```python
from jetlake.iac import resources

@resources
def regions():
    return {"streams": [{"name": f"ORDERS_{region}", "subjects": [f"orders.{region}.>"]} for region in ("eu", "us")]}
```

Each returns one document, or a list of them, in the form that YAML has. A file of Python is a program: it runs only
when it is named itself, never because it lies in a folder.
"""

import runpy
from collections.abc import Callable
from typing import Any, TypeVar

from jetlake.errors import ConfigurationError
from jetlake.located.nodes import Node, SourceLocation, locate, refusal

FUNCTION = "resources"

_MARK = "__jetlake_resources__"
_Function = TypeVar("_Function", bound=Callable[[], Any])


def resources(function: _Function) -> _Function:
    """Mark a function that returns declarations."""
    setattr(function, _MARK, True)
    return function


def read_python(path: str) -> list[Node]:
    """Run a file and return the documents of its functions, in the order in which they stand."""
    try:
        names = runpy.run_path(path)
        functions = [
            value
            for name, value in names.items()
            if callable(value) and value is not resources and (name == FUNCTION or getattr(value, _MARK, False))
        ]
        if not functions:
            raise refusal(
                SourceLocation(path), f"the file has no function `{FUNCTION}`: write one that returns what is wanted"
            )
        return [document for function in functions for document in _documents(function, path)]
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:
        reason = f"the file failed: {type(error).__name__}: {error}"
        raise refusal(SourceLocation(path, _line(error, path)), reason) from error


def _documents(function: Callable[[], Any], path: str) -> list[Node]:
    location = SourceLocation(path, getattr(getattr(function, "__code__", None), "co_firstlineno", 0))
    returned = function()
    found = returned if isinstance(returned, list | tuple) else [returned]
    for document in found:
        if not isinstance(document, dict):
            raise refusal(
                location, f"{getattr(function, '__name__', FUNCTION)} returns {type(document).__name__}: return a dict"
            )
    return [locate(document, location) for document in found]


def _line(error: BaseException, path: str) -> int:
    line = getattr(error, "lineno", 0) or 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
