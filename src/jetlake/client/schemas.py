"""The JSON schemas of JetStream's requests, answers and advisories and of Choria's, and the check of a value by one.

As much of JSON Schema is understood as these schemas use: types, properties, bounds, patterns, `allOf`, `oneOf`,
`anyOf`, and `$ref` within a file.

```python
for problem in problems(value, read("io.nats.jetstream.api.v1.stream_configuration")):
    print(problem)
```
"""

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jetlake.errors import ConfigurationError
from jetlake.suggestions import suggestion

FOLDER = Path(__file__).parent.parent / "schemas"
PREFIX = "io.nats.jetstream."
CHORIA = "choria"

STREAM_CONFIGURATION = "io.nats.jetstream.api.v1.stream_configuration"
CONSUMER_CONFIGURATION = "io.nats.jetstream.api.v1.consumer_configuration"

SHOWN_MAX = 10
"""Problems of one value that a refusal names."""

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


def names() -> list[str]:
    """Return the names of all schemas, sorted."""
    choria = [path.relative_to(FOLDER) for path in (FOLDER / CHORIA).rglob("*.json")]
    jetstream = [path.relative_to(FOLDER) for path in FOLDER.glob("*/*/*.json") if path.parts[-3] != CHORIA]
    return sorted(
        [".".join(path.with_suffix("").parts) for path in choria]
        + [PREFIX + ".".join(path.with_suffix("").parts) for path in jetstream]
    )


def read(name: str) -> dict[str, Any]:
    """Return a schema by its name; what comes before the last dots may be left out. Raises `ConfigurationError`."""
    known = names()
    found = [each for each in known if each == name or each.endswith(f".{name}")]
    if len(found) != 1:
        near = found or get_close_matches(name, [each.rpartition(".")[2] for each in known], n=3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `jetlake schema ls` lists them"
        raise ConfigurationError(f"there is no schema {name!r}{hint}")
    schema: dict[str, Any] = json.loads(
        (FOLDER.joinpath(*found[0].removeprefix(PREFIX).split("."))).with_suffix(".json").read_bytes()
    )
    return schema


def require_valid(value: object, name: str) -> None:
    """Raise `ConfigurationError` with what is wrong, if anything is."""
    found = list(problems(value, read(name)))
    if found:
        more = f"; and {len(found) - SHOWN_MAX:,} more" if len(found) > SHOWN_MAX else ""
        raise ConfigurationError("not valid: " + "; ".join(found[:SHOWN_MAX]) + more)


def problems(value: object, schema: Any, where: str = "", root: Any = None) -> Iterator[str]:
    """Yield what is wrong with a value, one sentence each. `root` is what a `$ref` is looked up in, the schema itself
    unless given."""
    if not isinstance(schema, dict):
        return
    root = schema if root is None else root
    if "$ref" in schema:
        yield from problems(value, _referenced(schema["$ref"], root), where, root)
        return
    for key in ("oneOf", "anyOf"):
        choices = schema.get(key, ())
        if choices and all(list(problems(value, each, where, root)) for each in choices):
            yield f"{where or 'it'} fits none of the {len(choices)} forms it may have"
    for each in schema.get("allOf", ()):
        yield from problems(value, each, where, root)
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where or 'it'} is {value!r}: it must be one of {', '.join(map(str, schema['enum']))}"
    elif "const" in schema and value != schema["const"]:
        yield f"{where or 'it'} is {value!r}: it must be {schema['const']!r}"
    elif not _has_type(value, schema.get("type")):
        kinds = schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])
        yield f"{where or 'it'} is {value!r}: it must be of type {kinds}"
    elif isinstance(value, dict):
        yield from _problems_of_object(value, schema, where, root)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from problems(item, schema.get("items"), f"{where}[{index}]", root)
    else:
        yield from _problems_of_bounds(value, schema, where)


def _referenced(reference: str, root: Any) -> Any:
    """Return what `#/definitions/Name` names."""
    found = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step, {}) if isinstance(found, dict) else {}
    return found


def _problems_of_object(value: dict[str, Any], schema: dict[str, Any], where: str, root: Any) -> Iterator[str]:
    prefix = f"{where}." if where else ""
    yield from (f"{prefix}{key} is missing" for key in schema.get("required", ()) if key not in value)
    properties = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for key, item in value.items():
        if key in properties:
            yield from problems(item, properties[key], f"{prefix}{key}", root)
        elif matching := [each for pattern, each in patterns.items() if re.search(pattern, key)]:
            for each in matching:
                yield from problems(item, each, f"{prefix}{key}", root)
        elif schema.get("additionalProperties") is False:
            yield f"{prefix}{key} is unknown{suggestion(key, properties)}"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from problems(item, schema["additionalProperties"], f"{prefix}{key}", root)


def _problems_of_bounds(value: object, schema: dict[str, Any], where: str) -> Iterator[str]:
    if isinstance(value, str):
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
            yield f"{where or 'it'} has {len(value):,} letters: too few or too many"
        if not re.search(schema.get("pattern", ""), value):
            yield f"{where or 'it'} is {value!r}: it must match {schema['pattern']}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield f"{where or 'it'} is {value}: it must be at least {schema['minimum']}"
        elif value > schema.get("maximum", value):
            yield f"{where or 'it'} is {value}: it must be at most {schema['maximum']}"


def _has_type(value: object, kinds: str | list[str] | None) -> bool:
    if kinds is None:
        return True
    named = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in named
    return isinstance(value, tuple(kind for name in named for kind in _TYPES[name]))
