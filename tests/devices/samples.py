"""Events to test with: every type of two devices, each on a subject of its own."""

from __future__ import annotations

from typing import Any

from jetlake.devices.generations import MESSAGES, Generation
from jetlake.devices.ids import aggregate_id
from jetlake.devices.subjects import EVENT_TYPES, Family

D1 = "ae424c58-e517-4494-6de7-583536c48213"
D2 = "e61c3e6b-9c54-4b81-8ce5-f9039c1d04d9"
HREFS = ("/oic/d", "/light/1")
R1 = aggregate_id(D1, "/oic/d")

GOLDEN = bytes.fromhex(
    "0807120f7265736f757263656368616e6765641a2461653432346335382d653531372d343439342d366465372d35383335333663343832313322"
    "2434613834656632382d383631362d356235372d396165372d3762336534393766333037622a7471f0700a2e0a2461653432346335382d653531"
    "372d343439342d366465372d35383335333663343832313312062f6f69632f6412230a04a161760112186170706c69636174696f6e2f766e642e"
    "6f63662b63626f7218904e1a040a027531221208071080c0d2defee3e7c6161a02633120032801"
)
"""A `resourcechanged` of 2021 that any reader must accept; its snappy block is one literal."""

TIMESTAMP_NS = 1_625_130_000_000_000_000


def event(event_type: str, device_id: str, href: str = "", *, version: int = 0, **fields: Any) -> Any:
    """An event of a type with ids, version and time; 2025 unless `generation` says otherwise."""
    generation = fields.pop("generation", Generation.Y2025)
    timestamp_ns = fields.pop("timestamp_ns", TIMESTAMP_NS + version)
    message = MESSAGES[generation][event_type](**fields)
    if href:
        message.resource_id.device_id, message.resource_id.href = device_id, href
    else:
        message.device_id = device_id
    message.event_metadata.version = version
    message.event_metadata.timestamp = timestamp_ns
    return message


def corpus(generation: Generation = Generation.Y2025) -> list[Any]:
    """The 52 events: two devices, three types of links, three of metadata, ten of each of two resources."""
    made = []
    for device_id in (D1, D2):
        for family in (Family.LINKS, Family.METADATA):
            made += [
                event(event_type, device_id, version=version, generation=generation)
                for version, event_type in enumerate(EVENT_TYPES[family])
            ]
        for href in HREFS:
            made += [
                event(event_type, device_id, href, version=version, generation=generation)
                for version, event_type in enumerate(EVENT_TYPES[Family.RESOURCES])
            ]
    return made


PATTERNS = (
    ("events.>", 52),
    (f"events.{D1}.>", 26),
    (f"events.{D1}.resource-links.>", 3),
    (f"events.{D1}.resource-links.resourcelinkspublished", 1),
    ("events.*.resource-links.>", 6),
    (f"events.{D1}.metadata.>", 3),
    (f"events.{D1}.metadata.devicemetadataupdated", 1),
    ("events.*.metadata.>", 6),
    (f"events.{D1}.resources.>", 20),
    (f"events.{D1}.resources.{R1}.>", 10),
    (f"events.{D1}.resources.{R1}.resourcechanged", 1),
    (f"events.{D1}.resources.*.resourcechanged", 2),
    ("events.*.resources.*.resourcechanged", 4),
    ("events.*", 0),
)
"""The patterns of the documentation, and how many of the 52 each one gets."""
