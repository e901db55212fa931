"""A request from its bytes, an answer to its bytes, in the dialect of JSON that nats-server speaks.

Reading: keys in any case, whole numbers only, durations in nanoseconds, unknown keys refused unless the server is not
strict; several values one after the other are read onto each other. Writing: keys in the order of the type, `<`, `>`
and `&` escaped, no spaces.

Invariant: `read_request` returns or raises `RequestError`, whatever the bytes.
"""

import json
from typing import Any

import msgspec

from jetlake.management.wire import json_syntax
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.json_syntax import JsonSyntaxError
from jetlake.management.wire.json_types import JsonProblem, JsonSpan, NotPlainError, Record, Source

# What nats-server escapes and `json` does not: dangerous in a web page, or no line of JavaScript.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


class ReadRequest(msgspec.Struct, frozen=True):
    """What a request says, and the keys in it that mean nothing to us."""

    value: Any
    unknown_keys: tuple[str, ...] = ()


def read_request(record: Record, body: bytes, *, is_strict: bool = True) -> ReadRequest:
    """Read the body of a request. One that is not strict is read again without regard to unknown keys."""
    plain = _read_plain(record, body)
    if plain is not None:
        return plain
    try:
        return _read_values(record, body)
    except JsonSyntaxError as error:
        problem = error.text if error.offset is None else f"{error.text} at offset {error.offset}"
    except JsonProblem as error:
        problem = str(error)
    if is_strict:
        raise RequestError(ErrorCode.INVALID_JSON, err=problem)
    return read_one(record, body)


def read_one(record: Record, body: bytes) -> ReadRequest:
    """Read exactly one value, without regard to unknown keys.

    The texts about syntax are other ones here, and have no offsets.
    """
    source = Source(body, _request_name(record), rejects_unknown=False)
    try:
        start = json_syntax.skip_spaces(body, 0)
        end = json_syntax.end_of_value(body, start)
        after = json_syntax.skip_spaces(body, end)
        if after < len(body):
            raise json_syntax.character_problem(body, after, "after top-level value")
        value = record.read(JsonSpan(source, start, end), record.make())
    except JsonSyntaxError as error:
        problem = "unexpected end of JSON input" if error.offset is None else error.text
        raise RequestError(ErrorCode.INVALID_JSON, err=problem) from None
    except JsonProblem as error:
        raise RequestError(ErrorCode.INVALID_JSON, err=str(error)) from None
    return ReadRequest(value, tuple(source.unknown_keys))


def write_json(value: object) -> bytes:
    """Return the JSON of an answer, whose objects are in order already."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES).encode()


def _read_plain(record: Record, body: bytes) -> ReadRequest | None:
    """Return what a body says that is written plainly: nearly every one is, and this is several times as fast."""
    if b"\\" in body:
        # Escapes have rules of their own.
        return None
    try:
        return ReadRequest(record.from_plain(_plain_decoder.decode(body.decode())))
    except (NotPlainError, ValueError, RecursionError):
        return None


def _plain_object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(members)
    if len(unique) != len(members):
        raise NotPlainError
    return unique


def _plain_integer(text: str) -> int:
    # A signed zero is not valid where numbers have no sign.
    if text == "-0":
        raise NotPlainError
    return int(text)


def _refuse(text: str) -> None:  # noqa: ARG001 - `json` gives it
    raise NotPlainError


_plain_decoder = json.JSONDecoder(
    object_pairs_hook=_plain_object, parse_int=_plain_integer, parse_float=_refuse, parse_constant=_refuse
)


def _read_values(record: Record, body: bytes) -> ReadRequest:
    source = Source(body, _request_name(record), rejects_unknown=True)
    value = record.make()
    position = json_syntax.skip_spaces(body, 0)
    while position < len(body):
        end = json_syntax.end_of_value(body, position)
        value = record.read(JsonSpan(source, position, end), value)
        position = json_syntax.skip_spaces(body, end)
    return ReadRequest(value)


def _request_name(record: Record) -> str:
    return record.name.rpartition(".")[2]
