"""The layers of the architecture: who may know whom.

Python: only `server` and `management` import the whole engine; `client` and `spark` may take its bulk side, `storage`
what looks at files; features import `client` and never each other, except for those that host others (`HOSTED`); `cli`,
`dashboard` and `demo` sit on top and are imported by nobody, except that `cli` runs the demo. Rust: `wire` knows
nothing of `connection`, `storage` nothing of `stream`.
"""

import ast
import re

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

ENGINE_NAMES = {"client": BULK_NAMES, "spark": BULK_NAMES, "storage": FILE_NAMES}
"""Who besides the server side may import something of the engine, and what."""

FEATURES = {"adapters", "agents", "devices", "governor", "kv", "objects", "submission"}
HOSTED = {"agents": {"governor", "kv", "submission"}}
"""The agent of a node is a host: its machines wait for keys and slots, and it sends what is in a spool."""

SERVER_SIDE = {"management", "monitoring", "server"}
TOP = {"cli", "dashboard", "demo"}

# The forbidden neighbours of each package of `jetlake`; "_engine" is treated by itself.
FORBIDDEN = {
    "choria": SERVER_SIDE | FEATURES | TOP | {"client", "config", "iac", "spark"},
    "client": SERVER_SIDE | FEATURES | TOP | {"iac", "spark"},
    "config": SERVER_SIDE | FEATURES | TOP | {"client", "iac", "spark"},
    "crashtest": SERVER_SIDE | FEATURES | TOP | {"iac", "spark", "sync", "testing"},
    "demo": {"cli"},
    "errors": SERVER_SIDE | FEATURES | TOP | {"client", "config", "iac", "spark"},
    "frames": SERVER_SIDE | FEATURES | TOP | {"iac", "sync", "testing"},
    "iac": SERVER_SIDE | TOP | {"spark"},
    "located": SERVER_SIDE | FEATURES | TOP | {"choria", "client", "config", "iac", "spark"},
    "management": FEATURES | TOP | {"client", "iac", "spark"},
    "monitoring": FEATURES | TOP | {"client", "iac", "spark"},
    "server": FEATURES | TOP | {"client", "iac", "spark"},
    "simulation": SERVER_SIDE | FEATURES | TOP | {"iac", "spark"},
    "spark": SERVER_SIDE | FEATURES | TOP | {"iac", "sql"},
    "sql": SERVER_SIDE | FEATURES | TOP | {"iac"},
    "storage": SERVER_SIDE | FEATURES | TOP | {"client", "iac", "spark"},
    "hidden_arguments": SERVER_SIDE
    | FEATURES
    | TOP
    | {"client", "config", "errors", "iac", "spark", "suggestions", "units"},
    "suggestions": SERVER_SIDE | FEATURES | TOP | {"client", "config", "errors", "iac", "spark"},
    "sync": SERVER_SIDE | (FEATURES - {"kv", "objects"}) | TOP | {"iac", "spark", "testing"},
    "testing": FEATURES | TOP | {"iac", "management", "monitoring", "spark"},
    "units": SERVER_SIDE | FEATURES | TOP | {"client", "config", "errors", "iac", "spark"},
    **{
        feature: (FEATURES - {feature} - HOSTED.get(feature, set())) | SERVER_SIDE | TOP | {"iac", "spark"}
        for feature in FEATURES
    },
}

RUST_FORBIDDEN = {
    "crates/engine/src/wire": {"connection"},
    "crates/engine/src/storage": {"stream"},
}


def imports_of(source: str) -> list[tuple[int, str, str]]:
    """Return line, module and name of every import of a Python file, those inside functions included."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "write imports in full, `from jetlake.server import log`; they can be searched for"
            found += [(node.lineno, node.module or "", alias.name) for alias in node.names]
    return found


def jetlake_imports(tree):
    """Yield file, line, own package, imported package and name for every import of ours by ours."""
    for path in tree.under("src/jetlake", suffix=".py"):
        own = path.removeprefix("src/jetlake/").split("/")[0].removesuffix(".py")
        for line, module, name in imports_of(tree.read(path)):
            parts = module.split(".")
            if parts[0] != "jetlake":
                continue
            imported, what = (parts[1], name) if len(parts) > 1 else (name, "")
            yield path, line, own, imported, what


def test_only_the_server_side_imports_the_engine(tree):
    wrong = []
    for path, line, own, imported, name in jetlake_imports(tree):
        if imported != "_engine" or own in SERVER_SIDE | {"__init__"}:
            continue
        if name not in ENGINE_NAMES.get(own, set()):
            wrong.append(f"{path}:{line} imports {name or 'jetlake._engine'}")

    assert not wrong, "go through jetlake.server or jetlake.client instead:\n" + "\n".join(wrong)


def test_packages_import_only_what_is_below_them(tree):
    wrong = [
        f"{path}:{line} imports jetlake.{imported}"
        for path, line, own, imported, _ in jetlake_imports(tree)
        if imported in FORBIDDEN.get(own, set())
    ]

    assert not wrong, "move what is needed down to a layer both may know, or speak NATS to it:\n" + "\n".join(wrong)


def test_every_package_has_a_place_in_the_layers(tree):
    packages = {path.split("/")[2].removesuffix(".py") for path in tree.under("src/jetlake", suffix=".py")}

    unknown = packages - set(FORBIDDEN) - TOP - {"__init__", "__main__"}

    assert not unknown, f"add {', '.join(sorted(unknown))} to FORBIDDEN in tests/style/test_layers.py"


def test_rust_modules_know_only_what_is_below_them(tree):
    wrong = []
    for folder, forbidden in RUST_FORBIDDEN.items():
        for path in tree.under(folder, suffix=".rs"):
            for number, line in enumerate(tree.read(path).splitlines(), 1):
                code = line.partition("//")[0]
                used = set(re.findall(r"\bcrate::(\w+)", code))
                grouped = re.search(r"\buse crate::\{(.*)", code)
                used |= set(re.findall(r"\b(\w+)\b", grouped.group(1))) if grouped else set()
                wrong += [f"{path}:{number} uses crate::{name}" for name in sorted(used & forbidden)]

    assert not wrong, "pass the value in as an argument, or move it down:\n" + "\n".join(wrong)
