"""Where every part of every event of a batch is: numbers, and pieces of one buffer.

Invariant: what is asked for has one element per event; that of an event which is odd may be anything inside the buffer.
"""

from typing import TYPE_CHECKING

import numpy as np

from jetlake.devices import event_plans as plans
from jetlake.devices.blocks import inflate
from jetlake.devices.event_plans import EventScanPlan
from jetlake.devices.event_rows import PROTOCOL_NAMES, STATUS_NAMES, TWIN_STATE_NAMES, VERSION_MAX
from jetlake.devices.generations import Generation
from jetlake.devices.wire import BYTES, Numbers, Repeated, Scan, padded, scan

if TYPE_CHECKING:
    import pyarrow as pa

ENUMERATIONS = {"status": STATUS_NAMES, "protocol": PROTOCOL_NAMES, "twin_state": TWIN_STATE_NAMES}

_NAMES = {
    "group_id": "device_id",
    "valid_until": "valid_until_ns",
    "twin_enabled": "is_twin_enabled",
    "canceled": "is_canceled",
}
"""Fields of envelopes and events whose columns have other names."""

_NAMES_OF_PARTS = {
    "content": {"data": "content", "coap_content_format": "content_format"},
    "event_metadata": {
        "version": "told_version",
        "timestamp": "event_ns",
        "connection_id": "origin_id",
        "sequence": "origin_sequence",
    },
    "connection": {"status": "is_online", "id": "connection_id", "connected_at": "connected_at_ns"},
    "twin_synchronization": {
        "state": "twin_state",
        "syncing_at": "syncing_at_ns",
        "in_sync_at": "in_sync_at_ns",
        "force_synchronization_at": "forced_at_ns",
    },
}
"""The same for the parts of events."""

_PARTS = {
    "resource_id": plans.RESOURCE_ID,
    "content": plans.CONTENT,
    "audit_context": plans.AUDIT,
    "event_metadata": plans.METADATA,
    "connection": plans.CONNECTION,
    "twin_synchronization": plans.TWIN,
}

OWN_METADATA = "own_metadata"
"""The metadata of a snapshot itself, among the places of parts."""

_NOTHING = np.uint64(VERSION_MAX * 2 + 1)
"""The version of a snapshot that tells nothing; as a signed number it is -1."""


class EventScan:
    """One batch. First the envelopes are read, then events of one type after the other, then their parts."""

    def __init__(self, payloads: "pa.Array") -> None:
        self._count = len(payloads)
        self._numbers: dict[str, Numbers] = {}
        self._pieces: dict[str, tuple[Numbers, Numbers]] = {}
        self._parts: dict[str, tuple[Numbers, Numbers]] = {}
        self._codes: dict[str, Numbers] = {}
        self._repeated: dict[str, list[tuple[Numbers, Repeated]]] = {}
        data, start, end = _places(payloads)
        everything = np.arange(self._count)
        envelopes = scan(data, start, end, plans.ENVELOPE.wanted)
        self._keep(plans.ENVELOPE, envelopes, everything, _NAMES)
        block = envelopes.fields[plans.ENVELOPE.numbers["data"]]
        lacking = [self.piece(name)[1] == 0 for name in ("event_type", "device_id", "aggregate_id")]
        inflated = inflate(data, block.offset, block.length, envelopes.odd | np.logical_or.reduce(lacking))
        # The contents of the envelopes stay where they are: inflated events come after them.
        self.data, self._start, self._end = inflated.data, inflated.start, inflated.end
        self.odd = inflated.odd | (self.number("version") > VERSION_MAX)
        self.number("own_version")[:] = self.number("version")

    def read_events(self, rows: Numbers, generation: Generation, event_type: str) -> None:
        """Scan these events, which are all of one type."""
        plan = plans.event_plan(generation, event_type)
        if plan is None:
            self.odd[rows] = True
            return
        found = self._read(plan, rows, self._start[rows], self._end[rows])
        if not plans.is_snapshot(event_type):
            return
        own_plan = plans.own_metadata_plan(generation, event_type)
        own = scan(self.data, self._start[rows], self._end[rows], own_plan.wanted)
        self.odd[rows[own.odd]] = True
        metadata = own.fields[own_plan.numbers["event_metadata"]]
        offset, length = self._place(self._parts, OWN_METADATA)
        offset[rows], length[rows] = metadata.offset, metadata.length
        told = next(found.fields[plan.numbers[name]] for name in plans.TOLD if name in plan.numbers)
        start = told.offset[told.present]
        inside = rows[told.present]
        self._read(plans.told_plan(generation, event_type), inside, start, start + told.length[told.present])
        self.number("version")[rows] = _NOTHING
        self._flag("is_told")[inside] = True

    def read_parts(self) -> None:
        """Scan what the events have in common."""
        for name, plan in _PARTS.items():
            if name not in self._parts:
                continue
            offset, length = self._parts[name]
            rows = np.flatnonzero((length > 0) & ~self.odd)
            found = scan(self.data, offset[rows], offset[rows] + length[rows], plan.wanted, plan.repeated)
            self.odd[rows[found.odd]] = True
            self._keep(plan, found, rows, _NAMES_OF_PARTS.get(name, {}))
        self._read_own_times()
        told = np.flatnonzero(self._flag("is_told"))
        self.number("version")[told] = self.number("told_version")[told]
        self.odd[told] |= self.number("version")[told] > VERSION_MAX

    def _read_own_times(self) -> None:
        """Note when each event itself was made: a snapshot later than the event that it tells."""
        self.number("own_ns")[:] = self.number("event_ns")
        offset, length = self._place(self._parts, OWN_METADATA)
        rows = np.flatnonzero((length > 0) & ~self.odd)
        found = scan(self.data, offset[rows], offset[rows] + length[rows], plans.METADATA.wanted)
        self.odd[rows[found.odd]] = True
        self.number("own_ns")[rows] = found.fields[plans.METADATA.numbers["timestamp"]].value

    def number(self, name: str) -> Numbers:
        """Return a number of each event; 0 where it has none."""
        return self._numbers.setdefault(name, np.zeros(self._count, np.uint64))

    def piece(self, name: str) -> tuple[Numbers, Numbers]:
        """Return where a text of each event begins, and its length."""
        return self._place(self._pieces, name)

    def code(self, name: str) -> Numbers:
        """Return the number of an enumeration's name; one more than there are where an event has no such field."""
        absent = len(ENUMERATIONS[name])
        return self._codes.setdefault(name, np.full(self._count, absent, np.int64))

    def repeated(self, name: str) -> tuple[Numbers, Numbers, Numbers]:
        """Return the event, the place and the length of each element, in the order of events."""
        nothing = np.zeros(0, np.int64)
        kept = self._repeated.get(name, [])
        rows = np.concatenate([nothing, *(np.repeat(rows, found.counts) for rows, found in kept)])
        offset = np.concatenate([nothing, *(found.offset for _, found in kept)])
        length = np.concatenate([nothing, *(found.length for _, found in kept)])
        order = np.argsort(rows, kind="stable")
        return rows[order], offset[order], length[order]

    def _read(self, plan: EventScanPlan, rows: Numbers, start: Numbers, end: Numbers) -> Scan:
        found = scan(self.data, start, end, plan.wanted, plan.repeated)
        self.odd[rows[found.odd]] = True
        for name in _PARTS:
            if name in plan.numbers:
                part = found.fields[plan.numbers[name]]
                offset, length = self._place(self._parts, name)
                offset[rows], length[rows] = part.offset, part.length
        if "status" in plan.numbers:
            self.code("status")[rows] = 0
        if "connection" in plan.numbers:
            self.code("protocol")[rows] = self.code("twin_state")[rows] = 0
        self._keep(plan, found, rows, _NAMES)
        return found

    def _keep(self, plan: EventScanPlan, found: Scan, rows: Numbers, names: dict[str, str]) -> None:
        """Keep the fields of messages, by the names of their columns."""
        for own_name, number in plan.numbers.items():
            name = names.get(own_name, own_name)
            if number in plan.repeated:
                self._repeated.setdefault(name, []).append((rows, found.repeated[number]))
                continue
            if own_name in _PARTS or own_name in plans.TOLD:
                continue
            field = found.fields[number]
            if plan.wanted[number] == BYTES:
                offset, length = self.piece(name)
                offset[rows], length[rows] = field.offset, field.length
            elif name in ENUMERATIONS:
                # A name of the future is read one by one.
                unknown = field.value >= len(ENUMERATIONS[name])
                self.code(name)[rows] = np.where(unknown, 0, field.value).astype(np.int64)
                self.odd[rows[unknown]] = True
            else:
                self.number(name)[rows] = field.value

    def _place(self, places: dict[str, tuple[Numbers, Numbers]], name: str) -> tuple[Numbers, Numbers]:
        if name not in places:
            places[name] = (np.zeros(self._count, np.int64), np.zeros(self._count, np.int64))
        return places[name]

    def _flag(self, name: str) -> Numbers:
        return self._numbers.setdefault(name, np.zeros(self._count, bool))


def _places(payloads: "pa.Array") -> tuple[Numbers, Numbers, Numbers]:
    """Return the bytes of all payloads, padded, and where each begins and ends; those that are NULL are empty."""
    _, ends, body = payloads.buffers()
    count = len(payloads)
    offsets = np.frombuffer(ends, np.int32)[payloads.offset : payloads.offset + count + 1].astype(np.int64)
    first, last = (int(offsets[0]), int(offsets[-1])) if count else (0, 0)
    data = np.zeros(0, np.uint8) if body is None else np.frombuffer(body, np.uint8)[first:last]
    offsets -= first
    start, end = offsets[:-1], offsets[1:]
    if payloads.null_count:
        end = np.where(payloads.is_null().to_numpy(zero_copy_only=False), start, end)
    return padded(data), start, end
