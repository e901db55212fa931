"""Every error of the JetStream API, and every exception of the package."""

from __future__ import annotations

import ast
import re

from jetlake import errors
from jetlake.cli.errors import ADVICE
from jetlake.management.wire.error_codes import ErrorCode
from tests.docs.pages import REPOSITORY
from tests.docs.reference.markdown import cell, code, table
from tests.python_source import parse_python

HEAD = """# Errors

`jetlake errors lookup 10059` shows one row of the last table. In Python each of them is a `jetlake.ApiError` whose
`error_code` is the number.

## Exceptions

"""

TREE = re.compile(r"```text\n(.*?)```", re.DOTALL)


def page() -> str:
    """Return the page."""
    tree = TREE.search(errors.__doc__ or "")
    assert tree is not None, "the docstring of jetlake.errors begins with the tree of all errors"
    return (
        HEAD
        + f"```text\n{tree[1]}```\n\n"
        + _exceptions()
        + "## Codes of the JetStream API\n\n"
        + _codes().rstrip()
        + "\n"
    )


def _exceptions() -> str:
    module = parse_python((REPOSITORY / "src" / "jetlake" / "errors.py").read_text(encoding="utf-8"))
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    rows = [
        (code(node.name), code(ast.unparse(node.bases[0])), cell((ast.get_docstring(node) or "").partition("\n")[0]))
        for node in classes
    ]
    return table(
        ("exception", "is a", "raised when"),
        [(name, base, text.removeprefix("Is raised when ")) for name, base, text in rows],
    )


def _codes() -> str:
    ordered = sorted((error.value for error in ErrorCode), key=lambda value: int(value[0]))
    rows = [
        (
            str(number),
            str(status),
            code(re.sub(r"[{}]", "", text) if text != "{err}" else "the reason"),
            cell(ADVICE.get(number, "")),
        )
        for number, status, text in ordered
    ]
    return table(("code", "HTTP", "text", "what to do"), rows)
