"""Values of flags as fields of a configuration.

Invariant: a flag that is not given leaves no trace; what is left out keeps the value it has.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from jetlake.presentation.quantities import read_duration, read_size

STORAGES = {"file": "file", "f": "file", "memory": "memory", "m": "memory"}
"""What may be written for the storage of a bucket or an object store, and what the field then is."""


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields whose flags were given."""
    return {name: value for name, value in fields.items() if value is not None}


def parse_duration(text: str | int) -> int:
    """Return the nanoseconds of a text such as 1h30m. Raises `BadParameter`: of a `ValueError` typer says no reason."""
    try:
        return read_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def parse_size(text: str | int) -> int:
    """Return the bytes of a text such as 10MiB. Raises `BadParameter`."""
    try:
        return read_size(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def split_texts(texts: Sequence[str] | None) -> list[str] | None:
    """Return the texts of a flag that can be repeated, or has commas between them."""
    if texts is None:
        return None
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def parse_pairs(flag: str, texts: Sequence[str] | None) -> dict[str, str] | None:
    """Return the keys and values of a flag that can be repeated. Raises `BadParameter`."""
    return None if texts is None else dict(_parse_pair(flag, text) for text in texts)


def parse_choice(flag: str, text: str | None, choices: Mapping[str, str]) -> str | None:
    """Return the field for a word, which may also be what the field is. Raises `BadParameter`."""
    if text is None:
        return None
    known = {**choices, **{value: value for value in choices.values()}}
    if text.lower() not in known:
        raise typer.BadParameter(f"{flag} is {text!r}: it must be one of {', '.join(choices)}")
    return known[text.lower()]


def _parse_pair(flag: str, text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=") if "=" in text else text.partition(":")
    if not separator or not key:
        raise typer.BadParameter(f"{flag} is {text!r}: write key=value")
    return key.strip(), value.strip()
