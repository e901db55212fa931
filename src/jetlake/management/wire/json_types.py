"""The types of a request, each with how it is read from JSON and written to it.

A request is described once, as a `Record` of `RecordField`s; reading, complaints, order and omission all follow from
it. Complaints name the types as nats-server does, because those texts are what users search for.

A key that stands twice is read twice, the second time onto what the first time left: records and maps are merged,
lists are overwritten item by item. `null` leaves a value as it is, and empties what can be absent.

Nearly every request is written plainly: each key once and as it is spelled here, each value of the kind it should be.
Such a one can be `take`n from what `json.loads` returns; everything else is `read`, which knows all the rules.

Invariant: reading raises `JsonProblem` for the first thing that is wrong in the order of the text, or nothing; taking
raises `NotPlainError`, or returns what reading would.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

import msgspec

from jetlake.management.wire import json_syntax
from jetlake.management.wire.times import Timestamp, TimestampError
from jetlake.shared.go_text import quoted

_INTEGER = re.compile(rb"-?[0-9]+")
_INDEX = re.compile(r"[0-9]+")


class JsonProblem(Exception):  # noqa: N818 - the error that users see is the RequestError made of it
    """Is raised for the first value of a request that does not fit; the text is nats-server's."""


class NotPlainError(Exception):
    """Is raised for a value that is not written plainly, be it right or wrong."""


class Source:
    """The bytes of a request, and what is found in them besides values."""

    def __init__(self, data: bytes, request_name: str, *, rejects_unknown: bool) -> None:
        self.data = data
        self.request_name = request_name
        self.rejects_unknown = rejects_unknown
        self.unknown_keys: list[str] = []

    def mismatch(self, kind: str, path: tuple[str | int, ...], type_name: str) -> JsonProblem:
        """Return the complaint about a value of the wrong kind."""
        if not path:
            return JsonProblem(f"json: cannot unmarshal {kind} into Go value of type {type_name}")
        # A key that looks like an index is taken for one.
        what = "" if _INDEX.fullmatch(str(path[-1])) else "Go struct field "
        steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
        where = ".".join((self.request_name, *steps))
        return JsonProblem(f"json: cannot unmarshal {kind} into {what}{where} of type {type_name}")


class JsonSpan(msgspec.Struct, frozen=True):
    """Where in a request a value stands."""

    source: Source
    start: int
    end: int
    path: tuple[str | int, ...] = ()

    @property
    def kind(self) -> str:
        return json_syntax.kind_at(self.source.data, self.start)

    @property
    def raw(self) -> bytes:
        return self.source.data[self.start : self.end]

    @property
    def text(self) -> str:
        return json_syntax.text_at(self.source.data, self.start, self.end)

    def mismatch(self, type_name: str, kind: str = "") -> JsonProblem:
        return self.source.mismatch(kind or self.kind, self.path, type_name)


class JsonType(Protocol):
    """How values of one type are read and written."""

    @property
    def name(self) -> str:
        """The name of the type in complaints."""

    @property
    def zero(self) -> Any:
        """The value of a field that is absent."""

    def read(self, span: JsonSpan, current: Any) -> Any:
        """Return the value at this span, read onto the current one."""

    def from_plain(self, value: Any) -> Any:
        """Return what reading would, of a value that is written plainly."""

    def write(self, value: Any) -> Any:
        """Return the value as what `json.dumps` takes."""


class Text:
    name = "string"
    zero = ""

    def read(self, span: JsonSpan, current: str) -> str:
        if span.kind == "null":
            return current
        if span.kind != "string":
            raise span.mismatch(self.name)
        return span.text

    def from_plain(self, value: Any) -> str:
        if type(value) is not str:
            raise NotPlainError
        return value

    def write(self, value: str) -> str:
        return value


class Boolean:
    name = "bool"
    zero = False

    def read(self, span: JsonSpan, current: bool) -> bool:
        if span.kind == "null":
            return current
        if span.kind != "bool":
            raise span.mismatch(self.name)
        return span.raw == b"true"

    def from_plain(self, value: Any) -> bool:
        if type(value) is not bool:
            raise NotPlainError
        return value

    def write(self, value: bool) -> bool:
        return value


class Integer:
    """A whole number between bounds. `1.0` and `1e2` do not count."""

    zero = 0

    def __init__(self, name: str, least: int, most: int) -> None:
        self.name = name
        self.least = least
        self.most = most
        # No legal number has more digits; longer ones are not even converted.
        self._digits_max = max(len(str(least)), len(str(most)))

    def read(self, span: JsonSpan, current: int) -> int:
        if span.kind == "null":
            return current
        if span.kind != "number":
            raise span.mismatch(self.name)
        raw = span.raw
        if len(raw) > self._digits_max or not _INTEGER.fullmatch(raw) or not self._allows(raw):
            raise span.mismatch(self.name, f"number {raw.decode()}")
        return int(raw)

    def from_plain(self, value: Any) -> int:
        if type(value) is not int or not self.least <= value <= self.most:
            raise NotPlainError
        return value

    def write(self, value: int) -> int:
        return value

    def _allows(self, raw: bytes) -> bool:
        if self.least == 0 and raw.startswith(b"-"):
            return False
        return self.least <= int(raw) <= self.most


class Choice:
    """One of a few words. They are compared as they are spelled in the request, escapes and all.

    `unknown` is what is complained of; without it the complaint is that the value cannot be read.
    """

    name = "string"

    def __init__(self, words: dict[str, str], zero: str, *, ignores_case: bool = False, unknown: str = "") -> None:
        self.zero = zero
        self.ignores_case = ignores_case
        self.unknown = unknown
        self._words = {f'"{word}"'.encode(): value for word, value in words.items()}

    def read(self, span: JsonSpan, current: str) -> str:  # noqa: ARG002 - the last word counts
        word = span.raw.lower() if self.ignores_case else span.raw
        value = self._words.get(word)
        if value is None and self.unknown:
            raise JsonProblem(f"unknown {self.unknown}: {span.raw.decode(errors='replace')}")
        if value is None:
            raise JsonProblem(f"can not unmarshal {json_syntax.quoted_bytes(span.raw)}")
        return value

    def from_plain(self, value: Any) -> str:
        if type(value) is not str:
            raise NotPlainError
        taken = self._words.get(f'"{value}"'.encode())
        if taken is None:
            raise NotPlainError
        return taken

    def write(self, value: str) -> str:
        return value


class Compression:
    """The one choice that is read as a text first."""

    name = "string"
    zero = "none"

    def read(self, span: JsonSpan, current: str) -> str:  # noqa: ARG002 - the last word counts
        if span.kind not in ("string", "null"):
            raise JsonProblem(f"json: cannot unmarshal {span.kind} into Go value of type string")
        word = span.text if span.kind == "string" else ""
        if word not in ("none", "s2"):
            raise JsonProblem("unknown compression algorithm")
        return word

    def from_plain(self, value: Any) -> str:
        if value not in ("none", "s2"):
            raise NotPlainError
        return str(value)

    def write(self, value: str) -> str:
        return value


class Time:
    name = "time.Time"
    zero = None

    def read(self, span: JsonSpan, current: Timestamp | None) -> Timestamp | None:  # noqa: ARG002 - the last one counts
        if span.kind == "null":
            return None
        if span.kind != "string":
            raise span.mismatch(self.name)
        try:
            return Timestamp.read(span.text)
        except TimestampError as error:
            raise JsonProblem(str(error)) from None

    def from_plain(self, value: Any) -> Timestamp:
        if type(value) is not str:
            raise NotPlainError
        try:
            return Timestamp.read(value)
        except TimestampError:
            raise NotPlainError from None

    def write(self, value: Timestamp) -> str:
        return value.text


class ListOf:
    """A list; as a value, a tuple. None is a list that was never given."""

    zero = None

    def __init__(self, item: JsonType, name: str) -> None:
        self.item = item
        self.name = name

    def read(self, span: JsonSpan, current: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if span.kind == "null":
            return None
        if span.kind != "array":
            raise span.mismatch(self.name)
        before = current or ()
        items = []
        for index, (start, end) in enumerate(json_syntax.items_at(span.source.data, span.start)):
            item_before = before[index] if index < len(before) else self.item.zero
            items.append(self.item.read(JsonSpan(span.source, start, end, (*span.path, index)), item_before))
        return tuple(items)

    def from_plain(self, value: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise NotPlainError
        return tuple([self.item.from_plain(item) for item in value])

    def write(self, value: Iterable[Any]) -> list[Any]:
        return [self.item.write(item) for item in value]


class TextMap:
    """Texts by texts; None is a map that was never given."""

    name = "map[string]string"
    zero = None
    item = Text()

    def read(self, span: JsonSpan, current: dict[str, str] | None) -> dict[str, str] | None:
        if span.kind == "null":
            return None
        if span.kind != "object":
            raise span.mismatch(self.name)
        texts = dict(current or {})
        for key, start, end in json_syntax.members_at(span.source.data, span.start):
            texts[key] = self.item.read(JsonSpan(span.source, start, end, (*span.path, key)), "")
        return texts

    def from_plain(self, value: Any) -> dict[str, str]:
        if type(value) is not dict or not all(type(text) is str for text in value.values()):
            raise NotPlainError
        return value

    def write(self, value: dict[str, str]) -> dict[str, str]:
        return dict(sorted(value.items()))


class RecordField(msgspec.Struct, frozen=True):
    """A field of a record: its key, which is also the attribute's name, its type, and whether it may be left out."""

    key: str
    type: JsonType
    is_always_written: bool = False


class Record:
    """An object with known keys, as a frozen value of the class `make`."""

    def __init__(
        self, name: str, make: Callable[[], Any], fields: Iterable[RecordField], *, can_be_absent: bool
    ) -> None:
        self.name = name
        self.make = make
        self.fields = tuple(fields)
        self.zero = None if can_be_absent else make()
        self._fields_by_key = {field.key: field for field in self.fields}
        self._writers = [(field.key, field.type.write, field.is_always_written) for field in self.fields]

    def read(self, span: JsonSpan, current: Any) -> Any:
        if span.kind == "null":
            return self.zero if self.zero is None else current
        if span.kind != "object":
            raise span.mismatch(self.name)
        values: dict[str, Any] = {}
        value_before = self.make() if current is None else current
        for key, start, end in json_syntax.members_at(span.source.data, span.start):
            field = self._field(key)
            if field is None:
                span.source.unknown_keys.append(key)
                if span.source.rejects_unknown:
                    raise JsonProblem(f"json: unknown field {quoted(key)}")
                continue
            before = values[field.key] if field.key in values else getattr(value_before, field.key)
            values[field.key] = field.type.read(JsonSpan(span.source, start, end, (*span.path, key)), before)
        return msgspec.structs.replace(value_before, **values)

    def from_plain(self, value: Any) -> Any:
        if type(value) is not dict:
            raise NotPlainError
        fields = self._fields_by_key
        try:
            values = {key: fields[key].type.from_plain(content) for key, content in value.items()}
        except KeyError:
            raise NotPlainError from None
        return msgspec.structs.replace(self.make(), **values)

    def write(self, value: Any) -> dict[str, Any]:
        written = {}
        for key, write, is_always_written in self._writers:
            content = getattr(value, key)
            # Nothing is false but what is left out: no, zero, and what is empty.
            if content or is_always_written:
                written[key] = write(content)
        return written

    def _field(self, key: str) -> RecordField | None:
        return self._fields_by_key.get(key) or self._fields_by_key.get(_folded(key))


def _folded(key: str) -> str:
    # Two letters outside ASCII are the same as one inside, apart from case: the long s, and the Kelvin sign, which
    # `lower` knows.
    return key.replace("ſ", "s").lower()  # noqa: RUF001 - that letter is meant
