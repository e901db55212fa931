"""The links of one device: which resources it has, and what they can do.

Invariant: only new or changed links become an event; a device that publishes the same links after each reboot adds
nothing to the stream. Different endpoints alone do not count as a change.
"""

from typing import Any

from jetlake.devices.aggregate.model import Aggregate, Caller, audit, check_command, invalid
from jetlake.devices.ids import check_href
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.errors import DeviceError

LINKS_MAX = 4096
"""Of one device: a snapshot carries all of them and must fit into one message."""


class LinksAggregate(Aggregate):
    """`resource-links` of one device."""

    def __init__(self, key: Any) -> None:
        super().__init__(key)
        self.links: dict[str, events.Resource] = {}

    def publish(self, command: Any, caller: Caller) -> list[Any]:
        """Decide what new or changed links become."""
        check_command(command)
        if not command.resources:
            raise invalid("no resources are given: publish at least one link")
        changed = []
        for resource in command.resources:
            check_href(resource.href)
            if resource.device_id not in ("", self.key.device_id):
                raise invalid(f"the link {resource.href} is of device {resource.device_id}, not {self.key.device_id}")
            link = events.Resource()
            link.CopyFrom(resource)
            link.device_id = self.key.device_id
            if not _is_same(self.links.get(link.href), link):
                changed.append(link)
        if len(self.links.keys() | {link.href for link in changed}) > LINKS_MAX:
            raise DeviceError("RESOURCE_EXHAUSTED", f"a device has at most {LINKS_MAX} links")
        if not changed:
            return []
        return [
            events.ResourceLinksPublished(device_id=self.key.device_id, resources=changed, audit_context=audit(caller))
        ]

    def unpublish(self, command: Any, caller: Caller) -> list[Any]:
        """Decide which links go; all of them if none are named."""
        check_command(command)
        if not self.exists:
            raise DeviceError("NOT_FOUND", f"device {self.key.device_id} has never published a link")
        hrefs = [href for href in (command.hrefs or sorted(self.links)) if href in self.links]
        if not hrefs:
            return []
        return [events.ResourceLinksUnpublished(device_id=self.key.device_id, hrefs=hrefs, audit_context=audit(caller))]

    def snapshot(self, caller: Caller) -> Any:
        return events.ResourceLinksSnapshotTaken(
            device_id=self.key.device_id, resources=self.links, audit_context=audit(caller)
        )

    def _apply(self, message: Any, *, is_snapshot: bool) -> None:
        if is_snapshot:
            self.links = dict(message.resources)
        elif isinstance(message, events.ResourceLinksPublished):
            self.links |= {link.href: link for link in message.resources}
        elif isinstance(message, events.ResourceLinksUnpublished):
            for href in message.hrefs:
                self.links.pop(href, None)


def _is_same(known: events.Resource | None, link: events.Resource) -> bool:
    if known is None:
        return False
    left, right = events.Resource(), events.Resource()
    left.CopyFrom(known)
    right.CopyFrom(link)
    for each in (left, right):
        del each.endpoint_informations[:]
    return left == right
