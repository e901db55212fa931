"""The fields of a JSON payload: Spark's notation, as `--columns` takes it, as a structure of DuckDB's.

`id BIGINT, tags ARRAY<STRING>, at STRUCT<city: STRING>` becomes `{"id":"BIGINT","tags":["VARCHAR"],…}`.
"""

import json
import re
from typing import Any

from jetlake.errors import ConfigurationError
from jetlake.suggestions import hint

__all__ = ["structure_of"]

TYPES = {
    "BIGINT": "BIGINT",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "DOUBLE": "DOUBLE",
    "FLOAT": "FLOAT",
    "INT": "INTEGER",
    "INTEGER": "INTEGER",
    "LONG": "BIGINT",
    "SMALLINT": "SMALLINT",
    "STRING": "VARCHAR",
    "TIMESTAMP": "TIMESTAMPTZ",
    "TINYINT": "TINYINT",
}
"""Spark's types without parameters, and DuckDB's names for them."""

DECIMAL = re.compile(r"DECIMAL\s*\(\s*\d+\s*,\s*\d+\s*\)", re.IGNORECASE)
FIELD = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*))(?:\s*:\s*|\s+)(.+?)\s*", re.DOTALL)
NESTED = re.compile(r"(ARRAY|STRUCT|MAP)\s*<(.*)>", re.IGNORECASE | re.DOTALL)


def structure_of(columns: str) -> str:
    """Return the structure of these fields as JSON. Raises `ConfigurationError`."""
    return json.dumps(_fields(columns))


def _fields(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in _split(text):
        found = FIELD.fullmatch(part)
        if found is None:
            raise ConfigurationError(f"columns {text!r}: {part.strip()!r} is not a field; write id BIGINT, name STRING")
        fields[found[1] or found[2]] = _type(found[3])
    return fields


def _type(text: str) -> Any:
    text = text.strip()
    nested = NESTED.fullmatch(text)
    if nested is not None:
        kind, inside = nested[1].upper(), nested[2]
        if kind == "ARRAY":
            return [_type(inside)]
        if kind == "STRUCT":
            return _fields(inside)
        key, *value = _split(inside)
        if len(value) != 1:
            raise ConfigurationError(f"columns: {text} needs a type for keys and one for values, as MAP<STRING, INT>")
        return f"MAP({_name(_type(key))}, {_name(_type(value[0]))})"
    if DECIMAL.fullmatch(text):
        return text.upper()
    if text.upper() not in TYPES:
        raise ConfigurationError(f"columns: there is no type {text}{hint(text, [*TYPES, 'ARRAY<…>', 'STRUCT<…>'])}")
    return TYPES[text.upper()]


def _name(structure: Any) -> str:
    """Return a structure as the name of a type."""
    if isinstance(structure, list):
        return f"{_name(structure[0])}[]"
    if isinstance(structure, dict):
        inside = ", ".join(f'"{name}" {_name(kind)}' for name, kind in structure.items())
        return f"STRUCT({inside})"
    return str(structure)


def _split(text: str) -> list[str]:
    """Return the parts between the commas that are not inside brackets."""
    parts, depth, begin = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
    return [*parts, text[begin:]]
