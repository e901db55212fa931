"""The inventory of a node: agents, classes, facts, collectives, machines.

Facts come from a YAML or JSON file, classes from a file with one name in each line, as configuration management leaves
them behind. A file that cannot be read yields no facts, and a warning.
"""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jetlake.agents.options import NodeOptions
from jetlake.choria.settings import read_text
from jetlake.errors import ConfigurationError
from jetlake.shared.yaml_values import load_yaml

__all__ = ["Machines", "inventory_of", "read_facts"]

Machines = Callable[[], list[dict[str, str]]]
"""Returns name, version and state of each machine that the node runs."""

_STARTED_S = time.time()


def inventory_of(
    options: NodeOptions, *, version: str, report: Callable[[str, str], None], machines: Machines | None = None
) -> dict[str, Any]:
    """Return what is known about the node now."""
    return {
        "agents": ["choria_util", "rpcutil"],
        "classes": _classes(options.classes_file, report),
        "facts": read_facts(options.facts_file, report),
        "status": {
            "identity": options.identity,
            "uptime": int(time.time() - _STARTED_S),
            "pid": os.getpid(),
        },
        "collectives": list(options.collectives),
        "build_info": {"version": version, "sha": ""},
        "machines": machines() if machines is not None else [],
    }


def read_facts(path: str, report: Callable[[str, str], None]) -> dict[str, Any]:
    """Return the facts in a file; none, and a warning, if it cannot be used."""
    if not path:
        return {}
    try:
        text = read_text(Path(path))
        facts = json.loads(text) if text.lstrip().startswith("{") else load_yaml(text)
        # YAML has dates and other types that JSON lacks; a registration is JSON.
        return dict(json.loads(json.dumps(facts, default=str))) if isinstance(facts, dict) else {}
    except (ConfigurationError, ValueError, TypeError, RecursionError) as error:
        report("warning", f"facts: {path} cannot be used: {' '.join(str(error).split())}")
        return {}


def _classes(path: str, report: Callable[[str, str], None]) -> list[str]:
    if not path:
        return []
    try:
        return [line.strip() for line in read_text(Path(path)).splitlines() if line.strip()]
    except ConfigurationError as error:
        report("warning", f"classes: {error}")
        return []
