"""Codecs: how the values of a bucket become bytes and back.

```python
await buckets.open("CFG", str)              # texts
await buckets.open("CFG", dict)             # JSON
await buckets.open("CFG", Settings)         # a dataclass or msgspec.Struct, as JSON, checked when it is read
```

Invariant: `decode(encode(value))` equals the value.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from jetlake.errors import ClientError, ConfigurationError

__all__ = ["Codec", "codec_of"]

T = TypeVar("T")


class Codec(Generic[T]):
    """How values of one kind are written and read. One of your own is two functions: `Codec("name", encode, decode)`.

    `decode` raises `ValueError` for bytes that it does not understand.
    """

    def __init__(self, name: str, encode: Callable[[T], bytes], decode: Callable[[bytes], T]) -> None:
        self.name = name
        # Stored bytes are the value, so that reading them needs no call.
        self.is_identity = decode is _same
        self._encode = encode
        self._decode = decode

    def encode(self, value: T) -> bytes:
        """Return a value as bytes. Raises `ConfigurationError`."""
        try:
            return self._encode(value)
        except (TypeError, ValueError, AttributeError) as error:
            raise ConfigurationError(f"{type(value).__name__} cannot be stored as {self.name}: {error}") from error

    def decode(self, data: bytes) -> T:
        """Return the value of bytes. Raises `ClientError`."""
        try:
            return self._decode(data)
        except ValueError as error:
            raise ClientError(f"the stored value is not {self.name}: {error}; open the bucket with bytes") from error

    def __repr__(self) -> str:
        return f"Codec({self.name!r})"


def codec_of(kind: type[T] | Codec[T]) -> Codec[T]:
    """Return the codec of a type: bytes, str, and everything else as JSON. Raises `ConfigurationError`."""
    if isinstance(kind, Codec):
        return kind
    made: Codec[Any]
    if kind is bytes:
        made = Codec("bytes", _bytes, _same)
    elif kind is str:
        made = Codec("text", _text, _read_text)
    else:
        try:
            decoder = msgspec.json.Decoder(kind)
        except TypeError as error:
            raise ConfigurationError(f"{kind!r} cannot be the type of values: {error}") from error
        made = Codec(f"JSON of {getattr(kind, '__name__', kind)}", _json_encoder(kind), decoder.decode)
    return made


def _json_encoder(kind: Any) -> Callable[[Any], bytes]:
    if not (isinstance(kind, type) and (issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind))):
        return msgspec.json.encode

    def encode(value: Any) -> bytes:
        if not isinstance(value, kind):
            raise TypeError(f"the bucket was opened for {kind.__name__}")
        return msgspec.json.encode(value)

    return encode


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        raise TypeError("open the bucket with str, or encode the text")
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("open the bucket with the type of its values, or encode them")
    return bytes(value)


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError("the bucket was opened for str")
    return value.encode()


def _same(data: bytes) -> bytes:
    return data


def _read_text(data: bytes) -> str:
    return data.decode()
