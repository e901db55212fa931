"""YAML as nodes with lines.

It is read as its current version 1.2 has it: `no` and `on` are words, `1:30` is text, and a moment stays as it was
written.

Invariant: a mapping never holds a key twice; a file that says one twice is refused.
"""

import re
from typing import Any

import yaml

from jetlake.located.nodes import DIGITS_MAX, NODES_MAX, Node, SourceLocation, refusal

_INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_OTHER_BASE = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def read_yaml(text: str, file: str) -> list[Node]:
    """Return the documents of a file; empty ones are left out."""
    reader = _Reader(file)
    try:
        documents = [document for document in yaml.compose_all(text, Loader=yaml.SafeLoader) if document is not None]
        nodes = [reader.node(document) for document in documents]
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise refusal(SourceLocation(file, line), f"this is not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise refusal(SourceLocation(file), f"this is not YAML: {error}") from error
    except RecursionError as error:
        raise refusal(SourceLocation(file), "this is nested too deeply") from error
    return [node for node in nodes if node.value is not None]


def bare_value(text: str) -> Any:
    """Return what a word without quotation marks means."""
    if text in _WORDS:
        return _WORDS[text]
    if text in _FLAGS:
        return _FLAGS[text]
    # No number of ours has as many digits; one that has stays text, and is refused where it stands.
    if len(text) > DIGITS_MAX:
        return text
    if _OTHER_BASE.fullmatch(text):
        return int(text, 0)
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    return float(text) if _FLOAT.fullmatch(text) else text


class _Reader:
    """Turns the parser's nodes into ours."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._count = 0

    def node(self, node: yaml.Node) -> Node:
        location = SourceLocation(self._file, node.start_mark.line + 1)
        self._count += 1
        if self._count > NODES_MAX:
            raise refusal(location, f"the file has more than {NODES_MAX:,} values, aliases included: split it")
        if isinstance(node, yaml.MappingNode):
            return Node(self._mapping(node), location)
        if isinstance(node, yaml.SequenceNode):
            return Node([self.node(child) for child in node.value], location)
        assert isinstance(node, yaml.ScalarNode), "the parser makes three kinds of nodes"
        # Between quotation marks it is text.
        value = bare_value(node.value) if node.style is None else node.value
        return Node(value, location, written=str(node.value))

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Node]:
        merged: dict[str, Node] = {}
        own: dict[str, Node] = {}
        for key, child in node.value:
            location = SourceLocation(self._file, key.start_mark.line + 1)
            if not isinstance(key, yaml.ScalarNode):
                raise refusal(location, "a list or mapping stands where a name belongs")
            read = self.node(child)
            if key.tag == "tag:yaml.org,2002:merge" and key.style is None:
                for other in read.items if isinstance(read.value, list) else [read]:
                    merged = {**other.mapping, **merged}
                continue
            name = str(key.value)
            if name in own:
                raise refusal(location, f"{name!r} stands twice in one mapping: remove one of them")
            # A value that begins on a later line is found by its name.
            own[name] = read.at(location)
        return {**merged, **own}
