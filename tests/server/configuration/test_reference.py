"""The reference page names every key that the reader of files knows."""

import ast
from pathlib import Path

from jetlake.server.configuration import unsupported
from jetlake.server.configuration.jetstream import CLUSTER_KEYS
from jetlake.server.configuration.top_level import WITHOUT_EFFECT
from tests.python_source import parse_python

REPOSITORY = Path(__file__).resolve().parents[3]
SOURCES = REPOSITORY / "src" / "jetlake" / "server" / "configuration"
PAGE = REPOSITORY / "docs" / "reference" / "configuration.md"

GETTERS = {
    *("accept", "address", "duration_s", "integer", "map_of_texts", "node", "seconds", "section", "sections", "size"),
    *("strict_duration_s", "switch", "text", "texts", "_count", "_limit", "_milliseconds", "read_permissions"),
}


def keys_asked_for() -> set[str]:
    keys = {*CLUSTER_KEYS, *WITHOUT_EFFECT}
    for group in (unsupported.TOP_LEVEL, unsupported.JETSTREAM):
        keys |= set(group)
    keys |= set(unsupported.TLS)
    for path in SOURCES.glob("*.py"):
        for call in ast.walk(parse_python(path.read_text())):
            if isinstance(call, ast.Call):
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name in GETTERS:
                    keys |= {argument.value for argument in call.args if isinstance(argument, ast.Constant)}
    return {key for key in keys if isinstance(key, str)}


def test_every_key_is_explained():
    page = PAGE.read_text()

    missing = sorted(key for key in keys_asked_for() if f"`{key}`" not in page and f"`{key}:" not in page)

    assert len(keys_asked_for()) > 150
    assert not missing, f"explain these keys in docs/reference/configuration.md: {', '.join(missing)}"
