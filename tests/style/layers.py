"""The layers of the architecture, and what the code says about them: which part imports which.

A list names every part of a tree, lowest layer first. A part knows only parts of lower layers: those of one layer do
not know each other, so there is no cycle. `python_edges` and `rust_edges` read what the code really does; `violations`
compares the two, and `picture` draws them.

Invariant: nothing here knows a list; the lists are at the end, and a list for another tree needs no other functions.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tests.python_source import nodes_of

REPOSITORY = Path(__file__).resolve().parents[2]

Edges = dict[str, dict[str, str]]
"""By part: the parts it uses, each with the first file and line that does."""


class Layer(NamedTuple):
    """Parts that know those of lower layers, and not each other."""

    name: str
    parts: tuple[str, ...]


class Layers(NamedTuple):
    """All parts of one tree, lowest layer first."""

    root: str
    layers: tuple[Layer, ...]

    @property
    def rank_of_part(self) -> dict[str, int]:
        return {part: rank for rank, layer in enumerate(self.layers) for part in layer.parts}


@lru_cache
def python_edges(root: str) -> Edges:
    """Return which packages and modules directly below a Python package import which, also within functions."""
    folder = REPOSITORY / root
    package = root.removeprefix("src/").replace("/", ".")
    parts = {_part(path.relative_to(folder)) for path in folder.rglob("*.py")}
    edges: Edges = {part: {} for part in sorted(parts)}
    for path in sorted(folder.rglob("*.py")):
        own = _part(path.relative_to(folder))
        for line, module in python_imports(path.read_text(encoding="utf-8")):
            if not module.startswith(f"{package}."):
                continue
            used = module.removeprefix(f"{package}.").partition(".")[0]
            if used in parts and used != own:
                edges[own].setdefault(used, f"{path.relative_to(REPOSITORY)}:{line}")
    return edges


def python_imports(source: str) -> list[tuple[int, str]]:
    """Return line and dotted name of everything a Python file imports; a name from a module is the last part."""
    found = []
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "write imports in full, `from jetlake.server import log`; they can be searched for"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def rust_edges(root: str) -> Edges:
    """Return which modules directly below the source folder of a crate use which, tests aside."""
    folder = REPOSITORY / root
    files = [path for path in sorted(folder.rglob("*.rs")) if not path.stem.endswith("_tests")]
    parts = {_part(path.relative_to(folder)) for path in files} - {"lib", "main"}
    edges: Edges = {part: {} for part in sorted(parts)}
    for path in files:
        own = _part(path.relative_to(folder))
        if own not in parts:
            continue
        for line, used in rust_uses(path.read_text(encoding="utf-8")):
            if used in parts and used != own:
                edges[own].setdefault(used, f"{path.relative_to(REPOSITORY)}:{line}")
    return edges


def rust_uses(source: str) -> list[tuple[int, str]]:
    """Return line and first name of everything a Rust file takes from its crate: `crate::x`, `use crate::{x, y::z}`."""
    code = "\n".join(line.partition("//")[0] for line in source.partition("#[cfg(test)]\nmod tests")[0].splitlines())
    found = []
    for match in re.finditer(r"\bcrate::(\w+|\{)", code):
        line = code.count("\n", 0, match.start()) + 1
        names = _names_in_braces(code, match.end()) if match.group(1) == "{" else [match.group(1)]
        found += [(line, name) for name in names]
    return found


def _names_in_braces(code: str, start: int) -> list[str]:
    """Return the names at the outermost level of a list in braces that begins at `start`."""
    depth, outermost = 1, ""
    for letter in code[start:]:
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            break
        outermost += letter if depth == 1 else ""
    return [name for name in re.findall(r"(?:^|,)\s*(\w+)", outermost) if name != "self"]


def violations(layers: Layers, edges: Edges) -> list[str]:
    """Return a line for each part without a layer, each layer's part that does not exist, and each use that goes up."""
    ranks = layers.rank_of_part
    wrong = [f"{part} has no layer" for part in edges if part not in ranks]
    wrong += [f"{part} does not exist" for part in ranks if part not in edges]
    wrong += [
        f"{where}: {own} uses {used}, which is not below it"
        for own, targets in edges.items()
        for used, where in targets.items()
        if own in ranks and used in ranks and ranks[used] >= ranks[own]
    ]
    return wrong


def picture(layers: Layers, edges: Edges) -> str:
    """Return the layers and who uses whom, as Mermaid draws it. A use that follows from others is left out."""
    lines = ["flowchart TD"]
    for layer in reversed(layers.layers):
        lines.append(f'  subgraph layer_{layers.layers.index(layer)} ["{layer.name}"]')
        lines += [f"    {_node(part)}[{part}]" for part in sorted(layer.parts)]
        lines.append("  end")
    for own in sorted(edges):
        lines += [f"  {_node(own)} --> {_node(used)}" for used in _direct(own, edges)]
    return "\n".join(lines)


def _direct(own: str, edges: Edges) -> list[str]:
    """Return the parts that a part uses and that none of the others it uses leads to."""
    indirect = {reached for used in edges[own] for reached in _reached(used, edges)}
    return sorted(set(edges[own]) - indirect)


def _reached(part: str, edges: Edges) -> set[str]:
    reached: set[str] = set()
    waiting = list(edges[part])
    while waiting:
        used = waiting.pop()
        if used not in reached:
            reached.add(used)
            waiting += edges[used]
    return reached


def _part(path: Path) -> str:
    return path.parts[0].removesuffix(path.suffix)


def _node(part: str) -> str:
    # Mermaid has words of its own, such as `end`.
    return f"part_{part.strip('_')}"


PYTHON = Layers(
    "src/jetlake",
    (
        Layer("leaves", ("errors", "hidden_arguments", "suggestions")),
        Layer("shared values and texts", ("config", "located", "shared")),
        Layer("formats", ("choria", "units")),
        Layer("the two sides of a connection", ("client", "management", "monitoring")),
        Layer(
            "servers and features",
            (
                "adapters",
                "crashtest",
                "devices",
                "governor",
                "kv",
                "objects",
                "presentation",
                "server",
                "simulation",
                "spark",
                "submission",
            ),
        ),
        Layer("what combines features", ("agents", "frames", "iac", "sql", "sync")),
        Layer("doors", ("__init__", "dashboard", "testing")),
        Layer("the demo", ("demo",)),
        Layer("the command line", ("cli",)),
        Layer("the entry", ("__main__",)),
    ),
)

MANAGEMENT = Layers(
    "src/jetlake/management",
    (
        Layer("wire format and subjects", ("__init__", "subjects", "wire")),
        Layer("streams, and the engine", ("engine", "streams")),
        Layer("consumers, and settings", ("consumers", "settings")),
        Layer("catalog and requests", ("catalog", "requests")),
        Layer("queues and endpoints", ("endpoints", "lanes")),
        Layer("snapshot and restore", ("archives",)),
        Layer("everything that answers", ("context",)),
        Layer("tables of endpoints", ("endpoint_table", "preview")),
        Layer("dispatch", ("dispatch",)),
        Layer("the manager", ("manager",)),
    ),
)

PYTHON_LISTS = (PYTHON, MANAGEMENT)

ENGINE = Layers(
    "crates/engine/src",
    (
        Layer("what everybody uses", ("common",)),
        Layer("options, and messages on disk", ("config", "storage")),
        Layer("the protocol as bytes", ("wire",)),
        Layer("sockets", ("transport",)),
        Layer("who gets a message", ("routing",)),
        Layer("readers, and tables", ("bulk", "consumer")),
        Layer("streams", ("stream",)),
        Layer("clients", ("connection", "load")),
        Layer("the whole", ("engine",)),
    ),
)
"""The Rust half: what happens once per message."""
