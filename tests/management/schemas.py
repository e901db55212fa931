"""Checks values by JSON schemas: as much of JSON Schema as those in `tests/fixtures/schemas` use."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fixtures" / "schemas"

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def problems_of(value: Any, name: str) -> list[str]:
    """Return what is wrong with a value by the schema of this name."""
    return list(_problems(value, json.loads((FOLDER / f"{name}.json").read_text()), name))


def _problems(value: Any, schema: Any, where: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    choices = schema.get("oneOf", ())
    if choices and all(list(_problems(value, each, where)) for each in choices):
        yield f"{where}: fits none of {len(choices)}"
    for each in schema.get("allOf", ()):
        yield from _problems(value, each, where)
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        yield f"{where}: {value!r} is not what it may be"
    if not _has_type(value, schema.get("type")):
        yield f"{where}: {value!r} is no {schema['type']}"
    elif isinstance(value, dict):
        yield from _problems_of_object(value, schema, where)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, schema.get("items"), f"{where}[{index}]")
    elif not _is_within_bounds(value, schema):
        yield f"{where}: {value!r} is out of bounds"


def _is_within_bounds(value: Any, schema: dict[str, Any]) -> bool:
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, int) and not isinstance(value, bool):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def _problems_of_object(value: dict[str, Any], schema: dict[str, Any], where: str) -> Iterator[str]:
    yield from (f"{where}: {key} is missing" for key in schema.get("required", ()) if key not in value)
    properties = schema.get("properties", {})
    for key, item in value.items():
        if key in properties:
            yield from _problems(item, properties[key], f"{where}.{key}")
        elif schema.get("additionalProperties") is False and "patternProperties" not in schema:
            yield f"{where}: {key} is unknown"


def _has_type(value: Any, kinds: str | list[str] | None) -> bool:
    if kinds is None:
        return True
    if isinstance(value, bool):
        return "boolean" in kinds
    return isinstance(value, tuple(TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)))
