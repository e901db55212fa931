"""Checks values by the JSON schemas in `tests/fixtures/schemas`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jetlake.client.schemas import problems

FOLDER = Path(__file__).parents[1] / "fixtures" / "schemas"


def problems_of(value: Any, name: str) -> list[str]:
    """Return what is wrong with a value by the schema of this name."""
    return list(problems(value, json.loads((FOLDER / f"{name}.json").read_text()), name))
