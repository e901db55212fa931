"""What a resource holds."""

import pytest

from jetlake.devices import content
from jetlake.devices.protos.events_2025_pb2 import Content
from jetlake.errors import DeviceError


@pytest.mark.parametrize("content_type", [content.OCF_CBOR, content.CBOR, content.JSON])
def test_value_comes_back_as_it_was(content_type):
    value = {"n": "lamp", "state": True, "power": 7, "list": [1.5, None]}

    made = content.of_value(value, content_type)

    assert content.value_of(made) == value
    assert made.coap_content_format == content.FORMATS[content_type]


def test_json_becomes_cbor_for_a_resource_that_uses_cbor():
    converted = content.converted(content.of_value({"power": 7}, content.JSON), content.OCF_CBOR)

    assert converted.content_type == content.OCF_CBOR
    assert content.value_of(converted) == {"power": 7}


def test_content_of_an_unknown_type_stays_as_it_is():
    image = Content(data=b"\x89PNG", content_type="image/png")

    assert content.converted(image, content.OCF_CBOR) is image
    assert content.value_of(image) == b"\x89PNG"
    assert content.shown(image) == "iVBORw=="


def test_type_follows_from_the_number_of_coap():
    assert content.value_of(Content(data=b"\xa1av\x01", coap_content_format=60)) == {"v": 1}


def test_bytes_that_are_not_of_their_type_are_a_clear_error():
    broken = Content(data=b"\xff\xff", content_type=content.JSON)

    with pytest.raises(DeviceError, match="not application/json"):
        content.value_of(broken)
    assert content.shown(broken) == "//8="


@pytest.mark.parametrize("data", [b"\x1c", b"\x5a\xff\xff\xff\xff", b"\xa1", b"\x81" * 100_000, b"\xc0\x01"])
def test_broken_cbor_is_a_clear_error(data):
    with pytest.raises(DeviceError, match="not application/cbor"):
        content.value_of(Content(data=data, content_type=content.CBOR))


def test_unknown_type_cannot_be_written():
    with pytest.raises(DeviceError, match="image/png"):
        content.of_value(1, "image/png")


def test_what_json_does_not_have_is_shown_as_text():
    made = content.of_value({1: b"\x00", "f": float("nan")}, content.CBOR)

    assert content.shown(made) == {"1": "AA==", "f": "nan"}
