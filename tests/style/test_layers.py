"""The layers of the architecture: who may know whom. The lists are in `tests/style/layers.py`.

Besides the layers: only `server`, `management` and `monitoring` import the whole engine; `client` and `spark` may take
its bulk side, `cli` what looks at files.
"""

import pytest

from tests.style.layers import (
    ENGINE,
    PYTHON_LISTS,
    Layer,
    Layers,
    picture,
    python_edges,
    python_imports,
    rust_edges,
    rust_uses,
    violations,
)

BULK_NAMES = {
    "PublishWriter",
    "RowBatch",
    "RowReader",
    "StoreReader",
    "EngineError",
    "__version__",
    "build_profile",
    "run_load",
}
"""What of the engine the client side may use: it needs no server in this process."""

FILE_NAMES = {"EngineError", "check_store"}
"""What of the engine reads files and needs no server either."""

ENGINE_NAMES = {"client": BULK_NAMES, "spark": BULK_NAMES, "cli": FILE_NAMES}
"""Who besides the server side may import something of the engine, and what."""

SERVER_SIDE = {"management", "monitoring", "server"}

KNOWN_ONLY_TO = {
    # Python programs and commands speak NATS to a server; they do not decide for one.
    "management": {"server", "cli"},
    "monitoring": {"server"},
    "server": {"__init__", "cli", "demo", "testing"},
    "dashboard": {"cli", "demo"},
}
"""Packages that only these may import, although more are above them. `cli` looks up error codes."""


@pytest.mark.parametrize("layers", PYTHON_LISTS, ids=lambda layers: layers.root)
def test_parts_import_only_what_is_below_them(layers):
    wrong = violations(layers, python_edges(layers.root))

    assert not wrong, (
        "move what is needed down to a layer both may know, or speak NATS to it; a new part gets a place in "
        "tests/style/layers.py:\n" + "\n".join(wrong)
    )


def test_inner_parts_are_known_only_to_those_that_serve_them():
    wrong = [
        f"{where}: {own} imports jetlake.{used}"
        for own, targets in python_edges("src/jetlake").items()
        for used, where in targets.items()
        if own not in KNOWN_ONLY_TO.get(used, {own})
    ]

    assert not wrong, "speak NATS to the server, or move what is needed down:\n" + "\n".join(wrong)


def test_only_the_server_side_imports_the_engine(tree):
    wrong = []
    for path in tree.under("src/jetlake", suffix=".py"):
        own = path.removeprefix("src/jetlake/").split("/")[0].removesuffix(".py")
        if own in SERVER_SIDE | {"__init__"}:
            continue
        for line, module in python_imports(tree.read(path)):
            name = module.removeprefix("jetlake._engine").removeprefix(".")
            if module.startswith("jetlake._engine") and name not in ENGINE_NAMES.get(own, set()):
                wrong.append(f"{path}:{line} imports {name or 'jetlake._engine'}")

    assert not wrong, "go through jetlake.server or jetlake.client instead:\n" + "\n".join(wrong)


def test_rust_modules_know_only_what_is_below_them():
    wrong = violations(ENGINE, rust_edges(ENGINE.root))

    assert not wrong, "move what is needed down to a layer both may know, or pass it in behind a trait:\n" + "\n".join(
        wrong
    )


def test_a_use_that_goes_up_is_found():
    layers = Layers("x", (Layer("low", ("a",)), Layer("high", ("b", "c"))))

    wrong = violations(layers, {"a": {"b": "a.py:1"}, "b": {"a": "b.py:1", "c": "b.py:2"}, "d": {}})

    assert wrong == [
        "d has no layer",
        "c does not exist",
        "a.py:1: a uses b, which is not below it",
        "b.py:2: b uses c, which is not below it",
    ]


def test_picture_leaves_out_what_follows_from_the_rest():
    layers = Layers("x", (Layer("low", ("a",)), Layer("middle", ("b",)), Layer("high", ("c",))))

    drawn = picture(layers, {"a": {}, "b": {"a": ""}, "c": {"a": "", "b": ""}})

    assert "part_c --> part_b" in drawn
    assert "part_c --> part_a" not in drawn


def test_uses_of_a_rust_file_are_read():
    source = "use crate::{\n    wire::{parser, tokens},\n    routing,\n};\nlet x = crate::clock::now(); // crate::no\n"

    assert rust_uses(source) == [(1, "wire"), (1, "routing"), (5, "clock")]
