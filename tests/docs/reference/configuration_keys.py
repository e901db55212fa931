"""Every key of a configuration file, from the code that asks for it, and every refused key with the reason."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NamedTuple

from jetlake.server.configuration import unsupported
from jetlake.server.configuration.jetstream import CLUSTER_KEYS
from jetlake.server.configuration.top_level import WITHOUT_EFFECT
from tests.docs.pages import REPOSITORY
from tests.docs.reference.markdown import cell, code, table
from tests.python_source import parse_python

SOURCES = REPOSITORY / "src" / "jetlake" / "server" / "configuration"

HEAD = """# Configuration keys

An index of all keys, from the code that reads them. [Configuration file](configuration.md) explains what they do, with
their defaults.

"""

KINDS = {
    "accept": "any, without effect",
    "address": "`host:port` or a port",
    "duration_s": "duration",
    "integer": "number",
    "map_of_texts": "map of texts",
    "host": "text",
    "node": "see the page",
    "path": "text",
    "read_permissions": "permissions",
    "seconds": "seconds or duration",
    "section": "block",
    "sections": "list of blocks",
    "size": "size",
    "strict_duration_s": "duration",
    "switch": "boolean",
    "text": "text",
    "texts": "text or list of texts",
    "_count": "number",
    "_limit": "number, -1 for no limit",
    "_milliseconds": "duration",
}
"""What each way to ask for a key expects."""

BLOCKS = {
    "address": ("top level", "server"),
    "accounts": ("`accounts`, `authorization`", "who-may-log-in"),
    "callout": ("`auth_callout` of `authorization`", "auth-callout"),
    "choria": ("`choria`", "choria"),
    "dashboard": ("`dashboard`", "dashboard"),
    "exports": ("`exports`, `imports` of an account", "who-may-log-in"),
    "jetstream": ("`jetstream`", "jetstream"),
    "leaf_compression": ("`compression` of `leafnodes`", "leaf-nodes"),
    "leaf_remotes": ("`remotes` of `leafnodes`", "leaf-nodes"),
    "leafnodes": ("`leafnodes`", "leaf-nodes"),
    "mappings": ("`mappings`", "who-may-log-in"),
    "latency": ("`latency` of an exported service", "who-may-log-in"),
    "message_trace": ("`msg_trace` of an account", "who-may-log-in"),
    "operators": ("top level, `resolver`", "operator-mode"),
    "permissions": ("`permissions`", "who-may-log-in"),
    "remotes": ("`remotes` of `jetstream`", "remotes"),
    "submission": ("`submission`", "submission"),
    "tls": ("`tls`", "tls"),
    "top_level": ("top level", "server"),
    "users": ("a user", "who-may-log-in"),
    "websocket": ("`websocket`", "websocket"),
}
"""The block that each module reads, and the heading that explains it."""

REFUSED = (
    ("top level", unsupported.TOP_LEVEL),
    ("`jetstream`", unsupported.JETSTREAM),
    ("`tls`", unsupported.TLS),
)


class Key(NamedTuple):
    """A key with its other names, as one module asks for it."""

    names: tuple[str, ...]
    kind: str
    module: str


def page() -> str:
    """Return the page."""
    rows = [
        (
            code(key.names[0]),
            ", ".join(code(name) for name in key.names[1:]),
            key.kind,
            "[{}](configuration.md#{})".format(*BLOCKS[key.module]),
        )
        for key in keys()
    ]
    refused = [
        (code(name), where, cell(f"not supported {reason}"))
        for where, group in REFUSED
        for name, reason in group.items()
    ]
    return (
        HEAD
        + table(("key", "other names", "value", "in"), rows)
        + "## Refused\n\nA file that has one of these does not start a server. The error names the key, its line and "
        "what to do instead.\n\n" + table(("key", "in", "error"), refused).rstrip() + "\n"
    )


def keys() -> list[Key]:
    """Return all keys that are asked for, by name and block."""
    found = {key for path in sorted(SOURCES.glob("*.py")) for key in _asked(path)}
    found |= {Key((name,), KINDS["accept"], "top_level") for name in WITHOUT_EFFECT}
    found |= {Key((name,), KINDS["accept"], "jetstream") for name in CLUSTER_KEYS}
    unknown = {key.module for key in found} - set(BLOCKS)
    assert not unknown, f"say in BLOCKS which block these modules read: {', '.join(sorted(unknown))}"
    # A key that is looked at before it is read has its kind from the reading.
    specific = {(name, key.module) for key in found if key.kind != KINDS["node"] for name in key.names}
    chosen = [
        key
        for key in found
        if key.kind != KINDS["node"] or not any((name, key.module) in specific for name in key.names)
    ]
    return sorted(_longest(chosen))


def _longest(found: list[Key]) -> list[Key]:
    """Leave out what another entry of the same module says with more names."""
    return [
        key
        for key in found
        if not any(
            other is not key and other.module == key.module and set(key.names) < set(other.names) for other in found
        )
    ]


def _asked(path: Path) -> list[Key]:
    keys = []
    for call in ast.walk(parse_python(path.read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        names = tuple(
            each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )
        if name == "accept":
            keys += [Key((each,), KINDS[name], path.stem) for each in names]
        elif name in KINDS and names:
            keys.append(Key(names, KINDS[name], path.stem))
    return keys
