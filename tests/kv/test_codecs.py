"""Typed values."""

import dataclasses

import msgspec
import pytest

from jetlake import kv
from jetlake.errors import ClientError, ConfigurationError
from jetlake.kv.codecs import Codec, codec_of


@dataclasses.dataclass
class Login:
    user: str
    attempts: int = 0


class Place(msgspec.Struct):
    city: str


@pytest.mark.parametrize(
    ("kind", "value", "stored"),
    [
        (bytes, b"\x00\xff", b"\x00\xff"),
        (str, "grüße", "grüße".encode()),
        (dict, {"a": [1, None]}, b'{"a":[1,null]}'),
        (list[int], [1, 2], b"[1,2]"),
        (int, 7, b"7"),
        (Login, Login("bob", 2), b'{"user":"bob","attempts":2}'),
        (Place, Place("Bern"), b'{"city":"Bern"}'),
    ],
)
def test_a_value_comes_back(kind, value, stored):
    codec = codec_of(kind)

    assert codec.encode(value) == stored
    assert codec.decode(stored) == value


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        (bytes, "text", "open the bucket with str"),
        (bytes, 7, "the type of its values"),
        (str, b"bytes", "opened for str"),
        (Login, Place("Bern"), "opened for Login"),
        (dict, {"a": object()}, "cannot be stored"),
    ],
)
def test_a_value_of_another_type_is_refused_with_a_hint(kind, value, hint):
    with pytest.raises(ConfigurationError, match=hint):
        codec_of(kind).encode(value)


@pytest.mark.parametrize(("kind", "stored"), [(str, b"\xff"), (dict, b"{"), (Login, b'{"user":7}'), (Place, b"[]")])
def test_bytes_that_are_something_else_are_told(kind, stored):
    with pytest.raises(ClientError, match="open the bucket with bytes"):
        codec_of(kind).decode(stored)


def test_a_codec_can_be_two_functions():
    reversed_text = Codec("reversed text", lambda text: text[::-1].encode(), lambda data: data.decode()[::-1])

    assert codec_of(reversed_text) is reversed_text
    assert reversed_text.decode(reversed_text.encode("abc")) == "abc"


async def test_a_bucket_has_values_of_its_type(buckets, name):
    bucket = await buckets.create(name, Login)

    await bucket.put("a", Login("bob", 1))

    assert (await bucket.get("a")).value == Login("bob", 1)
    assert [entry.value for entry in await bucket.history("a")] == [Login("bob", 1)]
    assert (await (await buckets.open(name)).get("a")).value == b'{"user":"bob","attempts":1}'
    assert isinstance(bucket, kv.Bucket)
