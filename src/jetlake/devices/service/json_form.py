"""Messages as JSON: names in camel case, 64-bit numbers as text, bytes in base64, as protobuf's own mapping has them.

With `decoded`, the content of resources is shown as the value it holds instead of bytes; that is what people want to
see, and what `Accept: application/protojson` turns off.
"""

import base64
import json
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from jetlake.devices.content import shown
from jetlake.devices.protos.events_2025_pb2 import Content
from jetlake.errors import DeviceError


def as_json(message: Any, *, decoded: bool = True) -> dict[str, Any]:
    """Return a message as a value of JSON."""
    value = MessageToDict(message)
    if decoded:
        _decode_content(value)
    return value


def as_line(message: Any, *, decoded: bool = True) -> bytes:
    """Return a message as one line of a streamed answer."""
    return json.dumps({"result": as_json(message, decoded=decoded)}, separators=(",", ":")).encode() + b"\n"


def from_json(value: Any, message: Any) -> Any:
    """Fill a message from JSON. Raises `DeviceError`."""
    if not isinstance(value, dict):
        raise DeviceError("INVALID_ARGUMENT", "the body must be a JSON object")
    try:
        return ParseDict(value, message)
    except (ParseError, RecursionError) as error:
        raise DeviceError("INVALID_ARGUMENT", f"the JSON is not a {message.DESCRIPTOR.name}: {error}") from error


def _decode_content(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _decode_content(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if (
                key == "content"
                and isinstance(each, dict)
                and each.keys() <= {"data", "contentType", "coapContentFormat"}
            ):
                content = Content(
                    data=base64.b64decode(each.get("data", "")),
                    content_type=each.get("contentType", ""),
                    coap_content_format=each.get("coapContentFormat", 0),
                )
                value[key] = shown(content)
            else:
                _decode_content(each)
