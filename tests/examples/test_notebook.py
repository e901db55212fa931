"""The example notebook runs, cell by cell, inside a running event loop as a notebook's kernel has one."""

from __future__ import annotations

import ast
import asyncio
import json

import pytest

from tests.conftest import REPOSITORY
from tests.python_source import parse_python

pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")


def run_cell(source: str, names: dict) -> object:
    """Run one cell and return the value of its last line, as a kernel does."""
    tree = parse_python(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


async def test_every_cell_runs_and_shows_what_it_should():
    notebook = json.loads((REPOSITORY / "examples" / "notebook.ipynb").read_text())
    names: dict = {"__name__": "__main__"}
    assert asyncio.get_running_loop().is_running()

    shown = [run_cell("".join(cell["source"]), names) for cell in notebook["cells"] if cell["cell_type"] == "code"]

    plain = [value for value in shown if isinstance(value, str | int | list)]
    assert plain == ["hello", 20, [0, 1, 2, 3, 4], "dark"]
    table = next(value for value in shown if hasattr(value, "_repr_html_") and hasattr(value, "to_arrow"))
    totals = next(value for value in shown if hasattr(value, "to_dict"))
    assert table.columns == ["sequence", "subject", "data"]
    assert totals.to_dict() == {"orders.eu": 500, "orders.us": 450}
    assert not names["server"].running
