"""The subject of every event, and the patterns by which consumers choose events.

| family         | subject                                                | tokens |
|----------------|--------------------------------------------------------|--------|
| resource-links | `events.{deviceID}.resource-links.{eventType}`         | 4      |
| metadata       | `events.{deviceID}.metadata.{eventType}`               | 4      |
| resources      | `events.{deviceID}.resources.{resourceID}.{eventType}` | 5      |

Invariant: every event type belongs to exactly one family, and `Address.of` undoes `Address.subject`.
"""

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple, Self

from jetlake.devices.ids import LINKS_HREF, METADATA_HREF, aggregate_id, links_id, metadata_id
from jetlake.errors import DeviceError

ROOT = "events"
ALL = f"{ROOT}.>"


KEYS_REMEMBERED_MAX = 65_536
"""Aggregates kept because they are asked for again with each event: some thirty megabytes."""


class Family(StrEnum):
    """The third token of a subject."""

    LINKS = "resource-links"
    METADATA = "metadata"
    RESOURCES = "resources"


EVENT_TYPES: dict[Family, tuple[str, ...]] = {
    Family.LINKS: ("resourcelinkspublished", "resourcelinksunpublished", "resourcelinkssnapshottaken"),
    Family.METADATA: ("devicemetadataupdatepending", "devicemetadataupdated", "devicemetadatasnapshottaken"),
    Family.RESOURCES: (
        "resourcechanged",
        "resourcecreatepending",
        "resourcecreated",
        "resourceretrievepending",
        "resourceretrieved",
        "resourceupdatepending",
        "resourceupdated",
        "resourcedeletepending",
        "resourcedeleted",
        "resourcestatesnapshottaken",
    ),
}

FAMILY_OF_TYPE = {event_type: family for family, types in EVENT_TYPES.items() for event_type in types}

SNAPSHOT_TYPES = {
    Family.LINKS: "resourcelinkssnapshottaken",
    Family.METADATA: "devicemetadatasnapshottaken",
    Family.RESOURCES: "resourcestatesnapshottaken",
}


class AggregateKey(NamedTuple):
    """One aggregate: a device's links, its metadata, or one of its resources."""

    device_id: str
    family: Family
    # Only of resources.
    resource_id: str = ""

    @classmethod
    def of_href(cls, device_id: str, href: str) -> Self:
        """Return the aggregate an href stands for; links and metadata have hrefs of their own."""
        match href:
            case str() if href == LINKS_HREF:
                return cls(device_id, Family.LINKS)
            case str() if href == METADATA_HREF:
                return cls(device_id, Family.METADATA)
            case _:
                return cls(device_id, Family.RESOURCES, aggregate_id(device_id, href))

    @property
    def aggregate_id(self) -> str:
        match self.family:
            case Family.LINKS:
                return links_id(self.device_id)
            case Family.METADATA:
                return metadata_id(self.device_id)
            case Family.RESOURCES:
                return self.resource_id

    @property
    def pattern(self) -> str:
        """All subjects of the aggregate, and of no other."""
        return pattern(self.device_id, self.family, self.resource_id)

    @property
    def snapshot_subject(self) -> str:
        return self.subject(SNAPSHOT_TYPES[self.family])

    def subject(self, event_type: str) -> str:
        """Return the subject of one of the aggregate's events."""
        if self.family is Family.RESOURCES:
            return f"{ROOT}.{self.device_id}.resources.{self.resource_id}.{event_type}"
        return f"{ROOT}.{self.device_id}.{self.family.value}.{event_type}"


class Address(NamedTuple):
    """What a subject says about an event."""

    device_id: str
    family: Family
    resource_id: str
    event_type: str

    @classmethod
    def of(cls, subject: str) -> Self:
        """Read a subject. Raises `DeviceError` for one that is not one of the bus."""
        match subject.split("."):
            case [root, device_id, ("resource-links" | "metadata") as family, event_type] if root == ROOT:
                found = cls(device_id, Family(family), "", event_type)
            case [root, device_id, "resources", resource_id, event_type] if root == ROOT:
                found = cls(device_id, Family.RESOURCES, resource_id, event_type)
            case _:
                raise DeviceError("DATA_LOSS", f"{subject!r} is not a subject of the device event bus")
        if not all(found[index] for index in (0, 3)) or (found.family is Family.RESOURCES and not found.resource_id):
            raise DeviceError("DATA_LOSS", f"{subject!r} has an empty token")
        return found

    @property
    def key(self) -> AggregateKey:
        return AggregateKey(self.device_id, self.family, self.resource_id)

    @property
    def subject(self) -> str:
        return self.key.subject(self.event_type)


@lru_cache(maxsize=KEYS_REMEMBERED_MAX)
def resource_key(device_id: str, href: str) -> AggregateKey:
    """Return the aggregate of a resource, as `AggregateKey.of_href` does; asked for with each event."""
    return AggregateKey.of_href(device_id, href)


@lru_cache(maxsize=KEYS_REMEMBERED_MAX)
def enveloped_key(event_type: str, device_id: str, aggregate: str) -> tuple[AggregateKey, str]:
    """Return the aggregate that an envelope names, and the subject it belongs on; asked for with each event."""
    family = FAMILY_OF_TYPE.get(event_type, Family.RESOURCES)
    key = AggregateKey(device_id, family, aggregate if family is Family.RESOURCES else "")
    return key, key.subject(event_type) if key.aggregate_id == aggregate else ""


def pattern(device_id: str = "", family: Family | None = None, resource_id: str = "", event_type: str = "") -> str:
    """Return the pattern of a consumer; what is not given may be anything.

    >>> pattern()
    'events.>'
    >>> pattern("D1", Family.RESOURCES, event_type="resourcechanged")
    'events.D1.resources.*.resourcechanged'
    """
    if family is None and (resource_id or event_type):
        family = Family.RESOURCES if resource_id else FAMILY_OF_TYPE.get(event_type)
        if family is None:
            raise DeviceError("INVALID_ARGUMENT", f"{event_type!r} is not an event type; there are {_all_types()}")
    if resource_id and family is not Family.RESOURCES:
        raise DeviceError("INVALID_ARGUMENT", f"{family} has no resources: leave the resource id out")
    if event_type and family is not FAMILY_OF_TYPE.get(event_type):
        raise DeviceError("INVALID_ARGUMENT", f"{event_type!r} is not an event type of {family}")
    if family is None:
        return f"{ROOT}.{device_id}.>" if device_id else ALL
    tokens = [ROOT, device_id or "*", str(family)]
    if family is Family.RESOURCES and (resource_id or event_type):
        tokens.append(resource_id or "*")
    tokens.append(event_type or ">")
    return ".".join(tokens)


def _all_types() -> str:
    return ", ".join(sorted(FAMILY_OF_TYPE))
