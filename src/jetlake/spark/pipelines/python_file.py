"""A pipeline as a Python function with a decorator.

The function stays what it is, frames in and frames out, so a test calls it with small frames; the decorator only
writes down where the frames come from and go to.

```python
@pipeline(inputs={"orders": StreamInput("ORDERS", columns="id BIGINT")}, outputs=[TableOutput("orders")])
def orders(orders):
    return orders.where("id > 0")
```

It may return one frame, or several by name: `{"large": …, "small": …}`; an output names its frame with `of`.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.model import DEFAULT_TRIGGER, Frames, Input, Output, Pipeline

MARK = "__jetlake_pipeline__"

Function = TypeVar("Function", bound=Callable[..., Any])


def pipeline(
    *,
    inputs: Mapping[str, Input],
    outputs: Sequence[Output],
    name: str = "",
    about: str = "",
    trigger: str = DEFAULT_TRIGGER,
    sample: Mapping[str, list[dict[str, Any]]] | None = None,
    expected: Mapping[str, list[dict[str, Any]]] | None = None,
) -> Callable[[Function], Function]:
    """Return a decorator that makes a function the transformation of a pipeline; its parameters are the inputs."""

    def decorate(function: Function) -> Function:
        title = name or function.__name__
        check_parameters(function, inputs, title)
        made = Pipeline(
            name=title,
            about=about or (inspect.getdoc(function) or "").partition("\n")[0],
            inputs=dict(inputs),
            transform=transform_of(function, title),
            outputs=tuple(outputs),
            trigger=trigger,
            sample=dict(sample or {}),
            expected=dict(expected or {}),
        )
        made.check()
        setattr(function, MARK, made)
        return function

    return decorate


def check_parameters(function: Callable[..., Any], inputs: Mapping[str, Input], title: str) -> None:
    """Refuse a function that does not take its inputs."""
    taken = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is inspect.Parameter.empty
    ]
    if sorted(taken) != sorted(inputs):
        raise ConfigurationError(
            f"pipeline {title}: the function takes {', '.join(taken) or 'nothing'} and the inputs are "
            f"{', '.join(inputs) or 'none'}; give the parameters the names of the inputs"
        )


def transform_of(function: Callable[..., Any], title: str) -> Callable[[Frames], Frames]:
    """Return the transformation that calls a function."""

    def transform(frames: Frames) -> Frames:
        from pyspark.sql import DataFrame

        result = function(**frames)
        if isinstance(result, DataFrame):
            return {title: result}
        if isinstance(result, Mapping) and all(isinstance(frame, DataFrame) for frame in result.values()):
            return dict(result)
        raise ConfigurationError(
            f"pipeline {title}: the function returned {type(result).__name__}; return a DataFrame, or several by name"
        )

    return transform


def load(path: Path) -> list[Pipeline]:
    """Return the pipelines of a Python file. Raises `ConfigurationError`."""
    from dataclasses import replace

    module_name = f"jetlake_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    except Exception as error:  # whatever the file does wrong is the file's
        line = _line_of(error, path)
        raise ConfigurationError(f"{path}{line}: {type(error).__name__}: {error}") from error
    _ship_by_value(module)
    found = [getattr(value, MARK) for value in vars(module).values() if hasattr(value, MARK)]
    if not found:
        raise ConfigurationError(f"{path} has no pipeline: decorate a function with @pipeline(…)")
    return [replace(made, origin=path) for made in found]


def _line_of(error: BaseException, path: Path) -> str:
    """Return the last line of the file on the way to an error."""
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == str(path):
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return f", line {line}" if line else ""


def _ship_by_value(module: Any) -> None:
    """Have functions of the file travel to executors as they are: no executor can import it."""
    try:
        from pyspark import cloudpickle
    except ImportError:
        return
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
