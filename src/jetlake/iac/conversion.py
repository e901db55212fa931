"""From what a file says to what the API of streams takes.

`read_fields` turns a mapping into a configuration with the API's names and units; a field that is unknown, said twice
or of the wrong kind is refused with its location and, where one is close, the word that was probably meant.

Invariant: what is returned holds only fields of the table, and only those the file names.
"""

from dataclasses import dataclass
from typing import Any

from jetlake.iac.fields import UNLIMITED, Field, Kind, by_word, word_of
from jetlake.iac.times import canonical_timestamp
from jetlake.located.nodes import DIGITS_MAX, Node, describe, refusal
from jetlake.shared.durations import duration_ns
from jetlake.suggestions import suggestion
from jetlake.units import size_bytes

SHORTEST_NS = 1_000_000
"""A shorter duration without a unit is probably a mistake: seconds written as nanoseconds."""

ORIGINS = ("mirror", "sources")
"""The fields that name the streams from which another one copies."""

_GO_ENDINGS = ("", "policy", "storage", "compression")
"""How Go's constants end: `WorkQueuePolicy`, `FileStorage`. They may begin with the field: `AckExplicitPolicy`."""


@dataclass(frozen=True)
class Numbers:
    """What a duration without a unit is: nanoseconds, as in the API, or seconds, as in Terraform."""

    unit_ns: int = 1


NANOSECONDS = Numbers()
SECONDS = Numbers(1_000_000_000)


def read_fields(node: Node, fields: tuple[Field, ...], what: str, numbers: Numbers = NANOSECONDS) -> dict[str, Any]:
    """Return the configuration a mapping declares; `what` is how it is called in refusals, as `a stream`."""
    known = by_word(fields)
    config: dict[str, Any] = {}
    for key, child in node.mapping.items():
        field = known.get(word_of(key))
        if field is None:
            hint = suggestion(key, [name for each in fields for name in (each.name, *each.also)])
            raise refusal(child.location, f"{what} has no field {key!r}{hint}")
        if field.name in config:
            raise refusal(child.location, f"{what} says {field.name} twice, here as {key!r}: remove one of them")
        if child.value is not None:
            config[field.name] = _value(child, field, numbers)
    return config


def _value(node: Node, field: Field, numbers: Numbers) -> Any:
    match field.kind:
        case Kind.TEXT:
            return node.text
        case Kind.INTEGER:
            return _integer(node, field)
        case Kind.SIZE:
            return _size(node, field)
        case Kind.DURATION:
            return _duration(node, field.name, numbers)
        case Kind.FLAG:
            return flag(node, field.name)
        case Kind.CHOICE:
            return _choice(node, field)
        case Kind.TIMESTAMP:
            return timestamp(node, field.name)
        case Kind.PERCENTAGE:
            return _percentage(node, field)
        case _:
            return _compound(node, field, numbers)


def _compound(node: Node, field: Field, numbers: Numbers) -> Any:
    what = f"{field.name}"
    match field.kind:
        case Kind.TEXTS:
            # One subject is a list of one: nobody should fail over two brackets.
            return [node.value] if isinstance(node.value, str) else [child.text for child in node.items]
        case Kind.DURATIONS:
            return [_duration(child, field.name, numbers) for child in node.items]
        case Kind.MAP:
            return {key: child.as_text for key, child in node.mapping.items() if child.value is not None}
        case Kind.RECORDS:
            children = [node] if isinstance(node.value, dict) else node.items
            return [_record(child, field, what, numbers) for child in children]
        case _:
            return _record(node, field, what, numbers)


def _record(node: Node, field: Field, what: str, numbers: Numbers) -> dict[str, Any]:
    if field.name not in ORIGINS:
        return read_fields(node, field.fields, what, numbers)
    # `mirror: ORDERS` and `sources: [A, B]` say all there is to say in most cases.
    is_short = isinstance(node.value, str)
    origin = {"name": node.value} if is_short else read_fields(node, field.fields, what, numbers)
    if not origin.get("name"):
        raise refusal(node.location, f"{what} names no stream: write `name: ORDERS`")
    return origin


def _integer(node: Node, field: Field) -> int:
    is_word = isinstance(node.value, str) and node.value.lower() == "unlimited"
    return UNLIMITED if is_word and field.default == UNLIMITED else whole_number(node, field.name)


def whole_number(node: Node, name: str) -> int:
    """Return the whole number a value is; a number that came out of a variable is text."""
    value = _digits(node.value) if isinstance(node.value, str) else node.value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise refusal(node.location, f"{name} is {describe(node.value)}: it must be a whole number")
    return _in_range(node, name, value)


def _size(node: Node, field: Field) -> int:
    if isinstance(node.value, str) and node.value.lower() != "unlimited":
        size = size_bytes(node.value)
        if size is None:
            raise refusal(
                node.location, f"{field.name} is {describe(node.value)}: write a size such as 10GiB, 500MB or 4096"
            )
        return _in_range(node, field.name, size)
    return _integer(node, field)


def _duration(node: Node, name: str, numbers: Numbers) -> int:
    value = node.value
    if isinstance(value, str):
        # A number that came out of a variable is text.
        number = _digits(value)
        if isinstance(number, str):
            read = duration_ns(value) if value else 0
            if read is None:
                raise refusal(node.location, f"{name} is {describe(value)}: write a duration such as 30s, 1h30m or 7d")
            return _in_range(node, name, read)
        value = number
    if isinstance(value, float) and (value * numbers.unit_ns).is_integer():
        return _in_range(node, name, int(value * numbers.unit_ns))
    if isinstance(value, bool) or not isinstance(value, int):
        raise refusal(node.location, f"{name} is {describe(node.value)}: write a duration such as 30s, 1h30m or 7d")
    if 0 < value * numbers.unit_ns < SHORTEST_NS:
        raise refusal(node.location, f"{name} is {value} nanoseconds: write the unit, such as {value}s")
    return _in_range(node, name, value * numbers.unit_ns)


def _digits(text: str) -> int | str:
    """Return the number a text is, or the text."""
    plain = text.strip().replace("_", "")
    is_number = plain.removeprefix("-").isdecimal() and len(plain) <= DIGITS_MAX
    return int(plain) if is_number else text


def _in_range(node: Node, name: str, value: int) -> int:
    if not -(2**63) <= value < 2**64:
        raise refusal(node.location, f"{name} is more than 64 bits hold")
    return value


def flag(node: Node, name: str) -> bool:
    """Return the flag a value is; one that came out of a variable is text."""
    value = node.value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise refusal(node.location, f"{name} is {describe(value)}: it must be true or false")
    return value


def _choice(node: Node, field: Field) -> str:
    words = {word_of(choice): choice for choice in field.choices}
    word = word_of(node.text)
    beginning = field.name.partition("_")[0]
    for ending in _GO_ENDINGS:
        bare = word.removesuffix(ending)
        for candidate in (bare, bare.removeprefix(beginning)):
            if candidate in words:
                return words[candidate]
    allowed = ", ".join(choice for choice in field.choices if choice)
    hint = suggestion(node.text, list(field.choices))
    raise refusal(node.location, f"{field.name} is {node.text!r}: it must be one of {allowed}{hint}")


def timestamp(node: Node, name: str) -> str:
    """Return the timestamp a value is, as the API writes it; an empty text where it says that there is none."""
    read = canonical_timestamp(node.text) if node.value != "" else ""
    if read is None:
        raise refusal(node.location, f"{name} is {node.text!r}: write a timestamp such as 2026-01-31T12:00:00Z")
    return read


def _percentage(node: Node, field: Field) -> str:
    value = node.as_text.strip().removesuffix("%")
    if value and not value.isdecimal():
        raise refusal(node.location, f"{field.name} is {value!r}: write a percentage such as 25 or 100%")
    # 0 is none.
    return value.lstrip("0")
