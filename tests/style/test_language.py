"""The words of help texts, messages and pages: an engineer who knows NATS, Kafka and Postgres should not stumble.

Looked at are all pages of the documentation outside code blocks, and the texts of `src/jetlake` that a user can see:
every string that is not a docstring, and the docstrings of commands, which are their help. Decisions are records of
their time and are left as they were written.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.python_source import nodes_of

INSTEAD = {
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|matter\b)\w": "write `is not`",
    r"\b(?:is|are) none of\b": "write `is not one of`",
    r"\bso (?:many|often)\b(?! that\b)": "name the number: `N messages`, `this often`",
    r"\bagain and again\b": "write `repeatedly`, or `live`",
    r"\b[Ww]hoever\b": "name who: `the client`, `a reader`",
    r"\b[Ss]omebody\b": "name who: `another client`, `a user`",
    r"\banew\b": "write `again`",
    r"\bgraves?\b": "write `dead letter`",
    r"\bhungry\b": "write `has demand`",
    r"\b[Bb]elongings\b|\b[Ss]urroundings\b": "write `context`",
    r"\bbehind everybody\b": "write `in the background`",
    r"\bhow-manieth\b": "write `which`",
    r"\bin vain\b": "write `without success`",
    r"\b(?:mend|mends|mended)\b": "write `fix`",
    r"\blooks? after\b": "write `manage`",
}
"""What is not written, and what to write."""

RECORDS = ("docs/decisions/",)
"""Pages that say what was thought at their time."""

PATTERN = re.compile("|".join(f"(?:{wrong})" for wrong in INSTEAD))


def advice(text: str) -> str:
    return next(instead for wrong, instead in INSTEAD.items() if re.search(wrong, text))


def texts_for_users(source: str) -> list[tuple[int, str]]:
    """Return the strings of a module that are printed, with their lines."""
    nodes = nodes_of(source)
    comments = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(each) for each in node.decorator_list):
            first = node.body[0]
            comments -= {id(first.value)} if isinstance(first, ast.Expr) else set()
    return [
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments
    ]


def prose(text: str) -> list[tuple[int, str]]:
    """Return the lines of a page outside its code, with their numbers."""
    lines, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif not inside:
            lines.append((number, re.sub(r"`[^`]*`", "``", line)))
    return lines


def test_pages_use_the_words_of_the_field(tree):
    wrong = [
        f"{path}:{number}: {found.group()!r}: {advice(found.group())}"
        for path in tree.paths
        if path.endswith(".md") and not path.startswith((*RECORDS, "tests/"))
        for number, line in prose(tree.read(path))
        for found in PATTERN.finditer(line)
    ]

    assert not wrong, "a reader stumbles here:\n" + "\n".join(wrong)


def test_messages_and_help_texts_use_the_words_of_the_field(tree):
    wrong = [
        f"{path}:{number}: {found.group()!r}: {advice(found.group())}"
        for path in tree.under("src", suffix=".py")
        for number, text in texts_for_users(tree.read(path))
        for found in PATTERN.finditer(text)
    ]

    assert not wrong, "a user stumbles here:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("'soon' is no time", True),
        ("there is no stream NOPE", False),
        ("it is no longer declared", False),
        ("End after so many; 0 goes on.", True),
        ("so many that none fits", False),
        ("Whoever has the key", True),
        ("a directory of engraved names", False),
    ],
)
def test_patterns_find_what_they_look_for(text, is_wrong):
    assert bool(PATTERN.search(text)) is is_wrong
