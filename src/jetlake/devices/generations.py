"""Which message belongs to which event type, in each of the two generations, and the way from the old one to the new.

The generation of a stream is a setting. It is never guessed: bytes of one generation can be read as the other without
an error, and their fields are then shifted.

Invariant: both generations have the same sixteen event types, and an event type is its message's name in lower case.
"""

from enum import StrEnum
from typing import Any

from google.protobuf.message import Message

from jetlake.devices.protos import events_2021_pb2 as events_2021
from jetlake.devices.protos import events_2025_pb2 as events_2025
from jetlake.devices.subjects import FAMILY_OF_TYPE


class Generation(StrEnum):
    """The schema of the events in a stream."""

    Y2021 = "2021"
    Y2025 = "2025"


def _messages(module: Any) -> dict[str, type[Message]]:
    named = module.DESCRIPTOR.message_types_by_name
    return {name.lower(): getattr(module, name) for name in named if name.lower() in FAMILY_OF_TYPE}


MESSAGES: dict[Generation, dict[str, type[Message]]] = {
    Generation.Y2021: _messages(events_2021),
    Generation.Y2025: _messages(events_2025),
}
assert all(set(messages) == set(FAMILY_OF_TYPE) for messages in MESSAGES.values())

TYPE_OF_MESSAGE: dict[type[Message], str] = {
    message: event_type for messages in MESSAGES.values() for event_type, message in messages.items()
}

_RENAMED = {"policies": "policy"}
"""Fields that have another name today; the others are copied by name."""

_CONVERTED = frozenset(("status", "shadow_synchronization"))
"""Fields of device metadata that have another form today."""


def upgraded(message: Message) -> Message:
    """Return an event of 2021 as one of 2025; one of 2025 as it is.

    What did not exist in 2021 stays empty: a pending command is then valid for ever.
    """
    event_type = TYPE_OF_MESSAGE[type(message)]
    target_type = MESSAGES[Generation.Y2025][event_type]
    if isinstance(message, target_type):
        return message
    target = target_type()
    _copy(message, target)
    return target


def _copy(source: Any, target: Any) -> None:
    is_metadata = source.DESCRIPTOR.name.startswith("DeviceMetadataUpdate")
    for field, value in source.ListFields():
        if is_metadata and field.name in _CONVERTED:
            _copy_metadata(field.name, source, target)
            continue
        name = _RENAMED.get(field.name, field.name)
        if field.message_type is None:
            if field.is_repeated:
                getattr(target, name).extend(value)
            else:
                setattr(target, name, value)
        elif field.message_type.GetOptions().map_entry:
            for key, entry in value.items():
                _copy(entry, getattr(target, name)[key])
        elif field.is_repeated:
            for entry in value:
                _copy(entry, getattr(target, name).add())
        else:
            getattr(target, name).SetInParent()
            _copy(value, getattr(target, name))


def _copy_metadata(field: str, source: Any, target: Any) -> None:
    if field == "shadow_synchronization":
        # Unset means what a device has before anybody says otherwise: its twin is on.
        target.twin_enabled = source.shadow_synchronization != events_2021.DISABLED
        return
    target.connection.status = source.status.value
