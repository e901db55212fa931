"""Messages for people: payloads as `payloads` shows them, and device events decoded; names without invisible letters.

Invariant: no bytes make anything here raise, and what is returned is text of bounded length; templates escape it.
"""

from typing import Any

import msgspec

from jetlake.dashboard.payloads import SHOWN_LETTERS_MAX, PayloadView, preview_of, view_of
from jetlake.dashboard.stored_messages import StoredMessage
from jetlake.errors import DeviceError

__all__ = ["preview", "view_message", "visible"]

EVENT = "protobuf"
"""The kind of a payload that is a device event."""

EVENTS_PREFIX = "events."
"""Subjects of device events; only there is protobuf looked for, because nearly any bytes are some protobuf."""

EVENT_BYTES_MAX = 2 * 1024 * 1024
"""Of a payload that is decoded: no event is larger, and the page waits for it."""

_INVISIBLE = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
# Marks that turn the direction of a text around: with them a name shows something else than it says.
_INVISIBLE |= dict.fromkeys(
    [*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF], 0xFFFD
)


def view_message(message: StoredMessage, wanted: str = "") -> PayloadView:
    """Return the payload of a message as it is wanted, or as what it seems to be."""
    view = view_of(message.payload, wanted)
    event = _event_text(message.payload, message.subject)
    if event is None:
        return view
    kinds = (EVENT, *view.kinds)
    if wanted in view.kinds:
        return view._replace(kinds=kinds)
    is_cut = len(event) > SHOWN_LETTERS_MAX
    return view._replace(kind=EVENT, kinds=kinds, text=event[:SHOWN_LETTERS_MAX], is_cut=is_cut)


def preview(payload: bytes) -> str:
    """Return the beginning of a payload, in one line."""
    return visible(preview_of(payload))


def visible(text: str) -> str:
    """Return a text whose control characters are seen and do nothing."""
    return text.translate(_INVISIBLE)


def _event_text(payload: bytes, subject: str) -> str | None:
    """Return a device event as JSON, or None if the payload is not one."""
    if not subject.startswith(EVENTS_PREFIX) or not payload or len(payload) > EVENT_BYTES_MAX:
        return None
    try:
        from google.protobuf.json_format import MessageToDict

        from jetlake.devices.codec import EventCodec
        from jetlake.devices.generations import Generation
    except ImportError:
        # The extra `devices` is not installed.
        return None
    for generation in Generation:
        try:
            event = EventCodec(generation).decode(payload, subject=subject)
        except DeviceError:
            continue
        if event.message is None:
            continue
        facts: dict[str, Any] = {
            "event_type": event.event_type,
            "version": event.version,
            "device_id": event.key.device_id,
            event.event_type: MessageToDict(event.message, preserving_proto_field_name=True),
        }
        return msgspec.json.format(msgspec.json.encode(facts), indent=2).decode()
    return None
