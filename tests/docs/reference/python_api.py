"""Every public name of the package with its signature and its docstring, read from the source without importing it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.docs.pages import REPOSITORY
from tests.python_source import parse_python

SOURCE = REPOSITORY / "src"

MODULES = (
    "jetlake",
    "jetlake.sync",
    "jetlake.kv",
    "jetlake.kv.sync",
    "jetlake.objects",
    "jetlake.objects.sync",
    "jetlake.spark",
    "jetlake.testing",
    "jetlake.governor",
    "jetlake.submission",
    "jetlake.iac",
)
"""The modules whose `__all__` is public, in the order of the page."""

HEAD = """# Python signatures

Every public name, its signature and its docstring. [Python](python.md) explains how they fit together. What is on
neither page is private and may change.

"""

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def page() -> str:
    """Return the page."""
    return (HEAD + "".join(_module(name) for name in MODULES)).rstrip() + "\n"


def _module(name: str) -> str:
    tree = _tree(name)
    summary = _prose((ast.get_docstring(tree) or "").partition("\n")[0])
    names = [each for each in exported(name) if not each.startswith("__")]
    return f"## `{name}`\n\n{summary}" + "".join(_entry(name, each) for each in names)


def exported(module: str) -> list[str]:
    """Return `__all__` of a module."""
    for node in _tree(module).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{module} has no __all__: add one, or take it out of MODULES")


def _entry(module: str, name: str) -> str:
    definition = _definition(module, name)
    full = f"{module}.{name}"
    if definition is None:
        return f"### `{full}`\n\n"
    if not isinstance(definition, ast.ClassDef):
        return f"### `{full}`\n\n{_signature(name, definition)}{_prose(ast.get_docstring(definition))}"
    text = f"### `{full}`\n\n{_class_signature(name, definition)}{_prose(ast.get_docstring(definition))}"
    for member in definition.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and not member.name.startswith("_"):
            decorators = {ast.unparse(each) for each in member.decorator_list}
            if "overload" in decorators:
                continue
            doc = _prose(ast.get_docstring(member))
            text += _property(member) if "property" in decorators else _signature(f".{member.name}", member)
            text += doc
    return text


def _class_signature(name: str, definition: ast.ClassDef) -> str:
    """Return how an object is made: by `__init__`, or by the fields of a value class."""
    for member in definition.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            return _signature(name, member, returns=False)
    fields = [
        ast.unparse(member)
        for member in definition.body
        if isinstance(member, ast.AnnAssign) and not getattr(member.target, "id", "_").startswith("_")
    ]
    members = [
        ast.unparse(member)
        for member in definition.body
        if isinstance(member, ast.Assign) and not getattr(member.targets[0], "id", "_").startswith("_")
    ]
    bases = ", ".join(ast.unparse(base) for base in definition.bases)
    lines = [f"class {name}({bases})" if bases else f"class {name}", *(f"    {each}" for each in (*fields, *members))]
    return "```python\n" + "\n".join(lines) + "\n```\n\n"


def _signature(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef, *, returns: bool = True) -> str:
    arguments = function.args
    first = (*arguments.posonlyargs, *arguments.args)
    if first and first[0].arg in {"self", "cls"}:
        (arguments.posonlyargs or arguments.args).pop(0)
    before = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    result = f" -> {ast.unparse(function.returns)}" if returns and function.returns is not None else ""
    line = f"{before}{name}({ast.unparse(arguments)}){result}"
    return f"```python\n{line}\n```\n\n"


def _property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    result = f": {ast.unparse(function.returns)}" if function.returns is not None else ""
    return f"```python\n.{function.name}{result}\n```\n\n"


def _prose(docstring: str | None) -> str:
    """Return a docstring as paragraphs; headings inside would break the page's own."""
    if not docstring:
        return ""
    return re.sub(r"^#+ ", "", docstring, flags=re.MULTILINE).rstrip() + "\n\n"


def _definition(module: str, name: str) -> Definition | None:
    """Return where a name is defined, following imports inside the package."""
    tree = _tree(module)
    for node in tree.body:
        if isinstance(node, Definition) and node.name == name:
            return node
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jetlake"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(node.module or "", alias.name) if _path(node.module or "") else None
    return None


def _path(module: str) -> Path | None:
    base = SOURCE.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.exists():
            return path
    return None


@cache
def _tree(module: str) -> ast.Module:
    path = _path(module)
    assert path is not None, f"there is no module {module}"
    return parse_python(path.read_text(encoding="utf-8"))
