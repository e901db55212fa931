"""Finds the values of a JSON text, and what is wrong with an invalid one.

Values are addressed by where they start and end, so that nothing is built for what nobody asks for: a megabyte of
nested lists costs one pass and no memory. The complaints are nats-server's own, with its offsets, because tools show
them to people who compare the two.

Invariant: `end_of_value` returns or raises `JsonSyntaxError` for any bytes, in time linear in their number; the other
functions are only called on values it has passed.
"""

import codecs
import re
from collections.abc import Iterator

from jetlake.shared.go_text import quoted

DEPTH_MAX = 10_000
"""nats-server's own bound; ours needs none, as nothing here recurses."""

_FIRST_PIECE_BYTES = 64
"""How much of a body nats-server reads at first; then as much again, and so on. Some complaints show it."""

_SPACES = rb"[ \t\r\n]*+"
_STRING = rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
_NUMBER = rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_SCALAR = rb"(?:" + _STRING + rb"|" + _NUMBER + rb"|true|false|null)"

_SPACE = re.compile(_SPACES)
_PLAIN_STRING = re.compile(_STRING)
_DIGITS = re.compile(rb"[0-9]*+")
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]*+")
_SPECIAL_IN_STRING = re.compile(rb'["\\\x00-\x1f]')
# Runs of elements without structure, swallowed in one step: what makes long lists cheap.
_ELEMENTS = re.compile(rb"(?:" + _SPACES + _SCALAR + _SPACES + rb",)*+")
_MEMBERS = re.compile(rb"(?:" + _SPACES + _STRING + _SPACES + rb":" + _SPACES + _SCALAR + _SPACES + rb",)*+")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_UNREADABLE = re.compile("([\udc80-\udcff])")

_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_KINDS = {b'"': "string", b"{": "object", b"[": "array", b"t": "bool", b"f": "bool", b"n": "null"}


class JsonSyntaxError(Exception):
    """Is raised when bytes are not JSON. `offset` counts the bytes up to and with the wrong one; None at the end."""

    def __init__(self, text: str, offset: int | None) -> None:
        super().__init__(text)
        self.text = text
        self.offset = offset


class _EndOfTextError(JsonSyntaxError):
    def __init__(self) -> None:
        super().__init__("unexpected EOF", None)


def skip_spaces(data: bytes, position: int) -> int:
    """Return the first position at or after this one that is not white space."""
    found = _SPACE.match(data, position)
    assert found is not None, "the pattern matches nothing too"
    return found.end()


def end_of_value(data: bytes, start: int) -> int:
    """Return where the value that starts here ends."""
    open_brackets = bytearray()
    position = start
    while True:
        position = _value_or_opening(data, position, open_brackets)
        position = _close(data, position, open_brackets)
        if not open_brackets:
            return position


def kind_at(data: bytes, start: int) -> str:
    """Return the kind of the value that starts here, by the name it has in complaints."""
    return _KINDS.get(data[start : start + 1], "number")


def members_at(data: bytes, start: int) -> Iterator[tuple[str, int, int]]:
    """Yield key, start and end of every member of the object that starts here, in order."""
    position = skip_spaces(data, start + 1)
    while data[position] != ord("}"):
        key_end = _end_of_string(data, position)
        key = text_at(data, position, key_end)
        value = skip_spaces(data, skip_spaces(data, key_end) + 1)
        value_end = end_of_value(data, value)
        yield key, value, value_end
        position = _after_comma(data, value_end)


def items_at(data: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of every item of the array that starts here, in order."""
    position = skip_spaces(data, start + 1)
    while data[position] != ord("]"):
        end = end_of_value(data, position)
        yield position, end
        position = _after_comma(data, end)


def text_at(data: bytes, start: int, end: int) -> str:
    """Return the text of the string between these positions; invalid Unicode becomes U+FFFD."""
    text = data[start + 1 : end - 1].decode("utf-8", _REPLACE_EACH_BYTE)
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_unescaped, text)
    text = _SURROGATE_PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _LONE_SURROGATE.sub("\ufffd", text)


def quoted_bytes(data: bytes) -> str:
    """Return bytes in double quotes, with what cannot be read escaped byte by byte."""
    parts = _UNREADABLE.split(data.decode("utf-8", "surrogateescape"))
    readable = [quoted(part)[1:-1] for part in parts[::2]]
    unreadable = [f"\\x{ord(part) - 0xDC00:02x}" for part in parts[1::2]] + [""]
    return f'"{"".join(text for pair in zip(readable, unreadable, strict=True) for text in pair)}"'


def character_problem(data: bytes, position: int, context: str) -> JsonSyntaxError:
    """Return the complaint about the character at this position, or about the end of the text."""
    if position >= len(data):
        return _EndOfTextError()
    length = _character_length(data[: _end_of_piece(position)], position)
    text = data[position : position + length]
    shown = '"' if text == b'"' else "\\'" if text == b"'" else quoted_bytes(text)[1:-1]
    return JsonSyntaxError(f"invalid character '{shown}' {context}", position + length)


def _value_or_opening(data: bytes, position: int, open_brackets: bytearray) -> int:
    """Pass one scalar, or openings up to the first scalar or closing bracket."""
    while True:
        position = skip_spaces(data, position)
        first = data[position : position + 1]
        if first not in (b"{", b"["):
            return _end_of_scalar(data, position, first)
        if len(open_brackets) >= DEPTH_MAX:
            raise JsonSyntaxError("exceeded max depth", position + 1)
        open_brackets += first
        position += 1
        is_object = first == b"{"
        inside = skip_spaces(data, position)
        if data[inside : inside + 1] == (b"}" if is_object else b"]"):
            return inside
        position = _next_value(data, position, is_object=is_object)


def _next_value(data: bytes, position: int, *, is_object: bool) -> int:
    """Return where the next value inside a bracket starts, past what needs no stack, and past its key."""
    found = (_MEMBERS if is_object else _ELEMENTS).match(data, position)
    assert found is not None, "the pattern matches nothing too"
    position = skip_spaces(data, found.end())
    if not is_object:
        return position
    if data[position : position + 1] != b'"':
        raise character_problem(data, position, "looking for beginning of object key string")
    colon = skip_spaces(data, _end_of_string(data, position))
    if data[colon : colon + 1] != b":":
        raise character_problem(data, colon, "after object key")
    return colon + 1


def _close(data: bytes, position: int, open_brackets: bytearray) -> int:
    """Close every bracket that ends here; return where the next value of the innermost open one starts."""
    while open_brackets:
        position = skip_spaces(data, position)
        is_object = open_brackets[-1] == ord("{")
        following = data[position : position + 1]
        if following == (b"}" if is_object else b"]"):
            open_brackets.pop()
            position += 1
        elif following == b",":
            return _next_value(data, position + 1, is_object=is_object)
        else:
            raise character_problem(
                data, position, "after object key:value pair" if is_object else "after array element"
            )
    return position


def _after_comma(data: bytes, position: int) -> int:
    position = skip_spaces(data, position)
    return skip_spaces(data, position + 1) if data[position] == ord(",") else position


def _end_of_scalar(data: bytes, position: int, first: bytes) -> int:
    if first == b'"':
        return _end_of_string(data, position)
    if first == b"-" or first.isdigit():
        return _end_of_number(data, position)
    literal = _LITERALS.get(first)
    if literal is None:
        raise character_problem(data, position, "looking for beginning of value")
    for offset, expected in enumerate(literal):
        if data[position + offset : position + offset + 1] != bytes([expected]):
            context = f"in literal {literal.decode()} (expecting '{chr(expected)}')"
            raise character_problem(data, position + offset, context)
    return position + len(literal)


def _end_of_number(data: bytes, position: int) -> int:
    if data[position : position + 1] == b"-":
        position += 1
    position = position + 1 if data[position : position + 1] == b"0" else _after_digits(data, position)
    if data[position : position + 1] == b".":
        position = _after_digits(data, position + 1)
    if data[position : position + 1] in (b"e", b"E"):
        position += 1
        position = _after_digits(data, position + (data[position : position + 1] in (b"+", b"-")))
    return position


def _after_digits(data: bytes, position: int) -> int:
    found = _DIGITS.match(data, position)
    assert found is not None, "the pattern matches nothing too"
    if found.end() == position:
        raise character_problem(data, position, "in numeric literal")
    return found.end()


def _end_of_string(data: bytes, start: int) -> int:
    whole = _PLAIN_STRING.match(data, start)
    if whole is not None:
        return whole.end()
    position = start + 1
    while True:
        special = _SPECIAL_IN_STRING.search(data, position)
        if special is None or special[0] == b'"':
            raise _EndOfTextError
        position = special.start()
        if special[0] != b"\\":
            raise character_problem(data, position, "in string")
        position = _after_escape(data, position)


def _after_escape(data: bytes, position: int) -> int:
    kind = data[position + 1 : position + 2]
    if kind == b"":
        raise _EndOfTextError
    if kind in b'"\\/bfnrt':
        return position + 2
    sequence = data[position : position + (6 if kind == b"u" else 2)]
    if kind == b"u":
        seen = data[position : min(position + 6, _end_of_piece(position + 1))]
        if _HEXADECIMAL.fullmatch(sequence, 2):
            if len(sequence) < 6:
                raise _EndOfTextError
            return position + 6
        if not _HEXADECIMAL.fullmatch(seen, 2):
            sequence = seen
    text = sequence.decode("utf-8", "replace")
    is_readable = text.isprintable() and not set(" `\ufffd") & set(text)
    shown = f"`{text}`" if is_readable else quoted_bytes(sequence)
    raise JsonSyntaxError(f"invalid escape sequence {shown} in string", position + len(sequence))


def _end_of_piece(position: int) -> int:
    """Return where the piece with this position ends: a body is read in pieces, and judged by what is there so far."""
    end = _FIRST_PIECE_BYTES
    while end <= position:
        end *= 2
    return end


def _character_length(data: bytes, position: int) -> int:
    """Return the length of the UTF-8 character here; one byte if it is invalid."""
    for length in (1, 2, 3, 4):
        try:
            data[position : position + length].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return length
    return 1


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is not None:
        return chr(int(escape[1], 16))
    return _ESCAPED.get(escape[2], escape[2])


def _replace_byte(error: UnicodeError) -> tuple[str, int]:
    # One for each byte, where Python would put one for a whole broken sequence.
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd", error.start + 1


_REPLACE_EACH_BYTE = "jetlake-replace-each-byte"
codecs.register_error(_REPLACE_EACH_BYTE, _replace_byte)
