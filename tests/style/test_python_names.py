"""Names of classes: each means one thing in the whole package."""

import ast

from tests.python_source import nodes_of

EXCEPTIONS = {
    "Bucket": "the same thing with and without `await`",
    "Buckets": "the same thing with and without `await`",
    "Governor": "the same thing with and without `await`",
    "ObjectStore": "the same thing with and without `await`",
    "Parameters": "each shipped pipeline is a module with this class, by which the catalog finds its settings",
    "Stores": "the same thing with and without `await`",
    "Watcher": "what Choria calls a part of a machine, and NATS a subscription to a bucket; users know both by it",
}
"""Names that several classes have, each with the reason."""


def repeated_names(tree) -> dict[str, list[str]]:
    """Return the class names that stand in several places; names with an underscore belong to their module."""
    found: dict[str, list[str]] = {}
    for path in tree.under("src/jetlake", suffix=".py"):
        if path.endswith("_pb2.py"):
            continue
        for node in nodes_of(tree.read(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(f"{path}:{node.lineno}")
    return {name: places for name, places in found.items() if len(places) > 1}


def test_class_names_are_unique_in_the_package(tree):
    repeated = repeated_names(tree)

    wrong = [f"{name}: {', '.join(places)}" for name, places in sorted(repeated.items()) if name not in EXCEPTIONS]
    assert not wrong, "name each after what it is there, such as `HttpRequest`:\n" + "\n".join(wrong)


def test_exceptions_are_needed(tree):
    assert sorted(EXCEPTIONS.keys() - repeated_names(tree).keys()) == []
