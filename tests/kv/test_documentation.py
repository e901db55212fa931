"""Every example of the guides about buckets and object stores runs, on both kinds of server."""

from __future__ import annotations

import ast
import inspect
import re
import types
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
GUIDES = ("key_value.md", "objects.md")
BLOCKS = [
    pytest.param(text, id=f"{guide}-{number}")
    for guide in GUIDES
    for number, text in enumerate(EXAMPLE.findall((REPOSITORY / "docs" / "guides" / guide).read_text()), 1)
]


def test_both_guides_have_examples():
    assert len(BLOCKS) >= 10


@pytest.mark.parametrize("text", BLOCKS)
async def test_every_example_runs(url, text, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = compile(text, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    result = types.FunctionType(code, {"url": url, "__name__": "__main__"})()

    if inspect.isawaitable(result):
        await result
