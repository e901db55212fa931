"""Ids of aggregates, and what may be a device id or an href.

An aggregate id is the UUIDv5 of the device id and an href, with nothing between them. Links and metadata of a device
are aggregates with hrefs of their own.

Invariant: an id that passes `check_device_id` is exactly one token of a subject.
"""

from functools import lru_cache
from uuid import NAMESPACE_URL, uuid5

from jetlake.errors import DeviceError

LINKS_HREF = "/plgd/res"
METADATA_HREF = "/plgd/s"

DEVICE_ID_LENGTH_MAX = 128
"""Characters; a UUID has 36, and a subject must stay far below the 4096 bytes of a protocol line."""

HREF_LENGTH_MAX = 1024
"""Characters; hrefs are paths on small devices, and each is stored with every event."""

IDS_REMEMBERED_MAX = 65_536
"""Ids kept because they are asked for again with each event: some ten megabytes."""

_FORBIDDEN = frozenset(".*>")


@lru_cache(maxsize=IDS_REMEMBERED_MAX)
def aggregate_id(device_id: str, href: str) -> str:
    """Return the id of the aggregate of a resource.

    >>> aggregate_id("ae424c58-e517-4494-6de7-583536c48213", "/oic/d")
    '4a84ef28-8616-5b57-9ae7-7b3e497f307b'
    """
    return str(uuid5(NAMESPACE_URL, device_id + href))


def links_id(device_id: str) -> str:
    """Return the id of the aggregate of a device's links."""
    return aggregate_id(device_id, LINKS_HREF)


def metadata_id(device_id: str) -> str:
    """Return the id of the aggregate of a device's metadata."""
    return aggregate_id(device_id, METADATA_HREF)


@lru_cache(maxsize=IDS_REMEMBERED_MAX)
def check_device_id(device_id: str) -> str:
    """Return a device id that can be one token of a subject. Raises `DeviceError`.

    A server would store a message whose device id is `*`, and no filter would ever tell it from the others.
    """
    if not device_id:
        raise DeviceError("INVALID_ARGUMENT", "the device id is empty: give the id of a device, usually a UUID")
    if len(device_id) > DEVICE_ID_LENGTH_MAX:
        raise DeviceError(
            "INVALID_ARGUMENT",
            f"the device id {device_id[:20]!r}... has {len(device_id)} characters: at most {DEVICE_ID_LENGTH_MAX}",
        )
    if not device_id.isascii() or not device_id.isprintable() or any(c in _FORBIDDEN or c == " " for c in device_id):
        raise DeviceError(
            "INVALID_ARGUMENT",
            f"the device id {device_id!r} cannot be part of a subject: use letters, digits, - and _, as in a UUID",
        )
    return device_id


def check_href(href: str) -> str:
    """Return an href that begins with a slash and has more than it. Raises `DeviceError`."""
    if not href.startswith("/") or len(href) < 2:
        raise DeviceError("INVALID_ARGUMENT", f"the href {href!r} is not a path: write /light/1")
    if len(href) > HREF_LENGTH_MAX:
        raise DeviceError("INVALID_ARGUMENT", f"the href {href[:40]!r}... is longer than {HREF_LENGTH_MAX} characters")
    if not href.isprintable():
        raise DeviceError("INVALID_ARGUMENT", f"the href {href!r} has characters that cannot be printed")
    return href
