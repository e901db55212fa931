"""What a resource holds: bytes with a content type. CBOR and JSON are read and written, the rest is carried.

Invariant: `converted` changes the form of a value and never the value; what it cannot convert it leaves as it is.
"""

import base64
import json
from typing import Any

from jetlake.devices.protos.events_2025_pb2 import Content
from jetlake.errors import DeviceError

OCF_CBOR = "application/vnd.ocf+cbor"
CBOR = "application/cbor"
JSON = "application/json"
TEXT = "text/plain"

FORMATS = {TEXT: 0, JSON: 50, CBOR: 60, OCF_CBOR: 10_000}
"""The numbers of CoAP."""

NO_FORMAT = -1

_TYPE_OF_FORMAT = {number: name for name, number in FORMATS.items()}


def of_value(value: object, content_type: str = OCF_CBOR) -> Content:
    """Return a value as content. Raises `DeviceError` for a type that is not one of `FORMATS`."""
    match content_type:
        case str() if content_type in (OCF_CBOR, CBOR):
            data = _cbor().dumps(value)
        case str() if content_type == JSON:
            data = json.dumps(value, separators=(",", ":")).encode()
        case str() if content_type == TEXT:
            data = str(value).encode()
        case _:
            raise DeviceError(
                "INVALID_ARGUMENT", f"cannot write content as {content_type!r}: use one of {', '.join(FORMATS)}"
            )
    return Content(data=data, content_type=content_type, coap_content_format=FORMATS[content_type])


def type_of(content: Content) -> str:
    """Return the content type, also of content that has only CoAP's number."""
    return content.content_type or _TYPE_OF_FORMAT.get(content.coap_content_format, "") if content.data else ""


def value_of(content: Content) -> Any:
    """Return the value in content: None if there is none. Raises `DeviceError` for bytes that are not of their type."""
    content_type = type_of(content)
    if not content.data:
        return None
    try:
        if content_type in (OCF_CBOR, CBOR):
            return _from_cbor(content.data)
        if content_type == JSON:
            return json.loads(content.data)
        if content_type == TEXT:
            return content.data.decode()
    except (ValueError, RecursionError) as error:
        raise DeviceError("INVALID_ARGUMENT", f"the content is not {content_type}: {error}") from error
    return bytes(content.data)


def shown(content: Content) -> Any:
    """Return the value in content as JSON can have it; bytes that cannot be read as base64."""
    try:
        return _plain(value_of(content))
    except DeviceError:
        return base64.b64encode(content.data).decode()


def converted(content: Content, wanted_type: str) -> Content:
    """Return content in the form a resource uses, CBOR or JSON; as it is if either form is another one."""
    known = (OCF_CBOR, CBOR, JSON)
    content_type = type_of(content)
    if content_type == wanted_type or content_type not in known or wanted_type not in known:
        return content
    return of_value(_plain(value_of(content)) if wanted_type == JSON else value_of(content), wanted_type)


def _plain(value: Any) -> Any:
    """Return a value of CBOR with what JSON does not have written as text."""
    match value:
        case dict():
            return {key if isinstance(key, str) else str(key): _plain(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case None | bool() | int() | str():
            return value
        case float():
            return value if value == value and abs(value) != float("inf") else str(value)
        case _:
            return str(value)


def _from_cbor(data: bytes) -> Any:
    cbor = _cbor()
    try:
        return cbor.loads(data)
    except (cbor.CBORError, EOFError, OverflowError) as error:
        raise ValueError(str(error)) from error


def _cbor() -> Any:
    # Only who looks into content pays for loading it.
    import cbor2

    return cbor2
