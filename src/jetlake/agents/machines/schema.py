"""The check of a manifest by Choria's published schema: what its tools may refuse although a machine runs here.

Our copy of the schema is corrected where it contradicts the original's code.
"""

from typing import Any

from jetlake.agents.machines.watcher_options import READERS
from jetlake.client.schemas import problems, read
from jetlake.errors import ConfigurationError
from jetlake.located.yaml_text import read_yaml

__all__ = ["schema_problems"]

SCHEMA = "choria.machine.v1.manifest"

DEFINITIONS = {kind: f"Watcher{'KV' if kind == 'kv' else kind.capitalize()}" for kind in READERS}
"""What the schema calls each type of watcher."""


def schema_problems(text: str, file: str) -> list[str]:
    """Return what the schema finds wrong with the text of a manifest."""
    try:
        documents = read_yaml(text, file)
    except ConfigurationError as error:
        return [str(error)]
    manifest: Any = documents[0].plain() if documents else None
    schema = read(SCHEMA)
    if not isinstance(manifest, dict):
        return list(problems(manifest, schema))
    # Each watcher is held against the definition of its own type, which says more than that none of them fits.
    watchers = manifest.get("watchers")
    found = list(problems({**manifest, "watchers": []}, schema))
    for index, watcher in enumerate(watchers if isinstance(watchers, list) else []):
        kind = watcher.get("type") if isinstance(watcher, dict) else None
        definition = schema["definitions"].get(DEFINITIONS.get(str(kind), ""))
        if definition is not None:
            found += problems(watcher, definition, f"watchers[{index}]", schema)
    return found
