"""Registration publishers: what a node says about itself, at regular intervals.

The first registration comes after a random part of the interval, so that a fleet that starts together spreads out. With
a size trigger the body is checked more often, and published early when its size has changed.

Invariant: each publisher keeps its own time; two publishers on one node do not suppress each other.
"""

import asyncio
import random
import time
import uuid
from abc import ABC, abstractmethod
from pathlib import Path

from jetlake.agents.inventory import Machines, inventory_of
from jetlake.agents.node import LocalNode, Part
from jetlake.agents.options import NodeOptions, PublisherOptions
from jetlake.agents.signing import signer_of
from jetlake.choria.envelopes import make_request
from jetlake.choria.registration import file_content, inventory_content
from jetlake.errors import ClientError, reason_of

__all__ = ["RegistrationPublisher", "registration_parts"]

FILE_BYTES_MAX = 64 * 1024 * 1024
"""Of a file to publish: far above any payload, and it must not fill the memory."""


def registration_parts(options: NodeOptions, *, version: str, machines: Machines | None = None) -> list[Part]:
    """Return the publishers a node is configured for. `machines` tells what the inventory says about them."""
    parts: list[Part] = []
    for publisher in options.registration.publishers:
        if publisher.kind == "file_content":
            parts.append(FileContentPublisher(options, publisher))
        else:
            parts.append(InventoryContentPublisher(options, publisher, version, machines))
    return parts


class RegistrationPublisher(ABC):
    """One publisher."""

    def __init__(self, options: NodeOptions, publisher: PublisherOptions) -> None:
        self.name = f"registration {publisher.kind}"
        self._options = options
        self._publisher = publisher
        self._signer = signer_of(options)
        self._published_bytes = 0

    async def run(self, node: LocalNode) -> None:
        """Publish, after the splay, in every interval."""
        registration = self._options.registration
        if registration.splay:
            await asyncio.sleep(random.uniform(0, registration.interval_s))
        while True:
            due_s = time.monotonic() + registration.interval_s
            await self._try_publish(node)
            await self._wait(node, due_s)

    async def finish(self, node: LocalNode) -> None:  # noqa: B027
        """A node that stops does not register."""

    async def publish_once(self, node: LocalNode) -> None:
        """Publish now. Raises `ClientError` when there is nothing to publish, or it cannot be."""
        body = self._body(node)
        await self._send(node, body)

    async def _wait(self, node: LocalNode, due_s: float) -> None:
        """Return when it is time, or when the size has changed enough."""
        registration = self._options.registration
        while (left_s := due_s - time.monotonic()) > 0:
            if not registration.size_trigger_bytes:
                await asyncio.sleep(left_s)
                return
            await asyncio.sleep(min(left_s, registration.size_interval_s))
            if self._has_changed(node):
                return

    def _has_changed(self, node: LocalNode) -> bool:
        try:
            size = len(self._body(node).encode())
        except ClientError:
            # It is reported when the interval is over.
            return False
        return abs(size - self._published_bytes) >= self._options.registration.size_trigger_bytes

    async def _try_publish(self, node: LocalNode) -> None:
        try:
            await self.publish_once(node)
        except ClientError as error:
            node.report("error", f"{self.name}: {error}; trying again in the next interval")

    async def _send(self, node: LocalNode, body: str) -> None:
        payload = make_request(
            body,
            sender=self._options.identity,
            request_id=uuid.uuid4().hex,
            time_s=int(time.time()),
            collective=self._options.main_collective,
            sign=self._signer,
            version=1 if self._signer is None else self._signer.version,
        )
        await node.publish(self._publisher.target, payload)
        self._published_bytes = len(body.encode())
        self._note_published()

    def _note_published(self) -> None:  # noqa: B027
        """Called when the last body has been sent."""

    @abstractmethod
    def _body(self, node: LocalNode) -> str:
        """Return what is to be published now. Raises `ClientError`."""


class FileContentPublisher(RegistrationPublisher):
    """Publishes a file as it is."""

    def __init__(self, options: NodeOptions, publisher: PublisherOptions) -> None:
        super().__init__(options, publisher)
        # Of the file as it was last published by this process; a restart must not look like an update of a whole fleet.
        self._published_mtime_s: int | None = None
        self._read_mtime_s = 0

    def _body(self, node: LocalNode) -> str:  # noqa: ARG002
        path = Path(self._publisher.data)
        try:
            status = path.stat()
            if status.st_size > FILE_BYTES_MAX:
                raise ClientError(f"{path} has {status.st_size:,} bytes: at most {FILE_BYTES_MAX:,} are published")
            content = path.read_bytes()
        except OSError as error:
            raise ClientError(f"cannot read {path}: {reason_of(error)}") from error
        if not content:
            raise ClientError(f"{path} is empty")
        self._read_mtime_s = int(status.st_mtime)
        return file_content(
            path=str(path),
            mtime_s=self._read_mtime_s,
            updated=self._published_mtime_s is not None and self._read_mtime_s > self._published_mtime_s,
            content=content,
            compress=self._publisher.compression,
        )

    def _note_published(self) -> None:
        self._published_mtime_s = self._read_mtime_s


class InventoryContentPublisher(RegistrationPublisher):
    """Publishes what is known about the node."""

    def __init__(
        self, options: NodeOptions, publisher: PublisherOptions, version: str, machines: Machines | None
    ) -> None:
        super().__init__(options, publisher)
        self._version = version
        self._machines = machines

    def _body(self, node: LocalNode) -> str:
        inventory = inventory_of(self._options, version=self._version, report=node.report, machines=self._machines)
        return inventory_content(inventory, compress=self._publisher.compression)
