"""What is public is listed, sorted and documented."""

import ast
import re

from tests.python_source import parse_python

REFERENCE = "docs/reference/python.md"


def exported_names(source: str) -> list[str] | None:
    for node in parse_python(source).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            names = ast.literal_eval(node.value)
            assert isinstance(names, list)
            return names
    return None


def test_every_list_of_exports_is_sorted(tree):
    wrong = []
    for path in tree.under("src", suffix=".py") + tree.under("src", suffix=".pyi"):
        names = exported_names(tree.read(path))
        if names is not None and names != sorted(names):
            wrong.append(f"{path}: {sorted(names)}")

    assert not wrong, "sort __all__ like this:\n" + "\n".join(wrong)


def test_exports_of_the_package_are_the_documented_ones(tree):
    exported = set(exported_names(tree.read("src/jetlake/__init__.py")) or [])
    documented = set(re.findall(r"^### `(\w+)`", tree.read(REFERENCE), re.MULTILINE))

    assert exported - documented == set(), f"describe these in {REFERENCE}, under a heading ### `name`"
    assert documented - exported == set(), f"remove these from {REFERENCE}, or export them from src/jetlake/__init__.py"


def test_exports_of_the_package_have_a_home_each(tree):
    module = parse_python(tree.read("src/jetlake/__init__.py"))
    homes = next(
        ast.literal_eval(node.value)
        for node in module.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_HOME_OF_NAME"
    )

    assert sorted(homes) == exported_names(tree.read("src/jetlake/__init__.py")), (
        "list every name of __all__ in _HOME_OF_NAME, and no other"
    )
