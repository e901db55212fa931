"""Many devices in simulated time: decides what happens and when, and yields the events in order.

The events are decided by the same aggregates as those of the service, so versions, snapshots and deduplication are the
real ones.

Invariant: the same options yield the same events; nothing depends on the clock or on the order of a dictionary.
"""

import heapq
import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jetlake.devices.aggregate.model import Aggregate, Caller
from jetlake.devices.aggregate.resource import CommandKind
from jetlake.devices.content import of_value, value_of
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.settings import SNAPSHOT_THRESHOLD
from jetlake.devices.simulator.device import Sensor, SimulatedDevice, Switch
from jetlake.devices.simulator.truth import Truth
from jetlake.devices.store.contract import new_aggregate
from jetlake.devices.subjects import AggregateKey, Family
from jetlake.devices.twin import DEVICE_HREF
from jetlake.errors import ConfigurationError

SECOND = 1_000_000_000
DEVICES_MAX = 1_000_000
"""All their aggregates are in memory: some fifty kilobytes for each device."""

ONBOARDING_S = 5.0
"""Devices come online one after the other in the first seconds, or in the first half of a short simulation."""

SESSION_S = 600.0
"""Mean length of a connection."""

ABSENCE_S = 20.0
"""Mean time between two connections."""

TAKEOVER_SHARE = 0.2
"""Connections whose end is never reported: the device just comes back with another one."""

LOCAL_USE_S = 90.0
"""Mean time between two hands on a switch."""

COMMAND_S = 120.0
"""Mean time between two commands to a device."""

ANSWER_S = 0.4
"""Mean time until a device answers."""

ERROR_SHARE = 0.03
RETRIEVE_SHARE = 0.2
CANCEL_SHARE = 0.02
TIME_TO_LIVE_S = 60

Twin = events.TwinSynchronization
Action = Callable[[], Iterator[Any]]


class SimulationOptions(NamedTuple):
    """What to simulate."""

    devices: int = 2000
    seconds: float = 60.0
    seed: int = 1
    start_ns: int = 0
    snapshot_threshold: int = SNAPSHOT_THRESHOLD


class TimedEvent(NamedTuple):
    """An event, and how far into the simulation it happens."""

    at_ns: int
    message: Any


class Simulation:
    """A population of devices, and the events it causes."""

    def __init__(self, options: SimulationOptions) -> None:
        if not 0 < options.devices <= DEVICES_MAX:
            raise ConfigurationError(f"{options.devices:,} devices cannot be simulated: 1 to {DEVICES_MAX:,} can")
        if options.seconds <= 0:
            raise ConfigurationError(f"{options.seconds:g} seconds cannot be simulated: give more than 0")
        self.options = options
        self.devices = [SimulatedDevice(number, options.seed) for number in range(options.devices)]
        self.truth = Truth()
        self._aggregates: dict[AggregateKey, Aggregate] = {}
        self._agenda: list[tuple[int, int, Action]] = []
        self._numbers = itertools.count()
        self._command_numbers = itertools.count(1)
        self._now_ns = 0

    def timed_events(self) -> Iterator[TimedEvent]:
        """Yield what happens, in order."""
        end_ns = round(self.options.seconds * SECOND)
        onboarding_s = min(ONBOARDING_S, self.options.seconds / 2)
        for device in self.devices:
            self._plan(device.chance.uniform(0, onboarding_s), self._coming(device))
        while self._agenda and self._agenda[0][0] <= end_ns:
            self._now_ns, _, action = heapq.heappop(self._agenda)
            for message in action():
                yield TimedEvent(self._now_ns, message)

    # What happens.

    def _coming(self, device: SimulatedDevice) -> Action:
        def come() -> Iterator[Any]:
            device.connect()
            self.truth.sessions += 1
            yield from self._metadata(
                device,
                connection=events.Connection(
                    status=events.Connection.ONLINE,
                    id=device.connection_id,
                    protocol=events.Connection.COAPS_TCP,
                    connected_at=self.options.start_ns + self._now_ns,
                ),
            )
            yield from self._links(device)
            sync_ns = self.options.start_ns + self._now_ns
            yield from self._metadata(device, twin_synchronization=Twin(state=Twin.SYNCING, syncing_at=sync_ns))
            for href in device.values:
                yield from self._notify(device, href)
            yield from self._metadata(device, twin_synchronization=Twin(state=Twin.IN_SYNC, in_sync_at=sync_ns + 1))
            for pending in device.waiting:
                self._plan(self._soon(device), self._answering(device, pending))
            device.waiting.clear()
            self._plan_session(device)

        return come

    def _plan_session(self, device: SimulatedDevice) -> None:
        number, chance = device.connection_number, device.chance
        self._plan(chance.expovariate(1 / SESSION_S), self._going(device, number))
        for sensor in device.model.sensors:
            self._plan(chance.expovariate(1 / sensor.interval_s), self._measuring(device, sensor, number))
        for switch in device.model.switches:
            self._plan(chance.expovariate(1 / LOCAL_USE_S), self._switching(device, switch, number))
        if device.model.switches and number == 1:
            self._plan(chance.expovariate(1 / COMMAND_S), self._commanding(device))

    def _going(self, device: SimulatedDevice, number: int) -> Action:
        def go() -> Iterator[Any]:
            if device.connection_number != number:
                return
            is_told = device.chance.random() >= TAKEOVER_SHARE
            if is_told:
                yield from self._metadata(
                    device, connection=events.Connection(status=events.Connection.OFFLINE, id=device.connection_id)
                )
                device.is_online = False
                self._plan(device.chance.expovariate(1 / ABSENCE_S), self._coming(device))
            else:
                # The other side did not notice; the next connection takes the place of this one.
                self._plan(0, self._coming(device))

        return go

    def _measuring(self, device: SimulatedDevice, sensor: Sensor, number: int) -> Action:
        def measure() -> Iterator[Any]:
            if device.connection_number != number or not device.is_online:
                return
            device.read(sensor)
            yield from self._notify(device, sensor.href)
            gap_s = sensor.interval_s * device.chance.uniform(0.8, 1.2)
            self._plan(gap_s, self._measuring(device, sensor, number))

        return measure

    def _switching(self, device: SimulatedDevice, switch: Switch, number: int) -> Action:
        def switch_it() -> Iterator[Any]:
            if device.connection_number != number or not device.is_online:
                return
            device.set(switch, device.chance.choice(switch.values))
            yield from self._notify(device, switch.href)
            self._plan(device.chance.expovariate(1 / LOCAL_USE_S), self._switching(device, switch, number))

        return switch_it

    def _commanding(self, device: SimulatedDevice) -> Action:
        def command() -> Iterator[Any]:
            chance = device.chance
            switch = chance.choice(device.model.switches)
            kind = CommandKind.RETRIEVE if chance.random() < RETRIEVE_SHARE else CommandKind.UPDATE
            name = f"command-{self.options.seed}-{next(self._command_numbers)}"
            request = api_pb2.ResourceCommandRequest(
                resource_id=events.ResourceId(device_id=device.device_id, href=switch.href),
                correlation_id=name,
                time_to_live=TIME_TO_LIVE_S * SECOND,
                command_metadata=events.CommandMetadata(connection_id="app"),
            )
            if kind is CommandKind.UPDATE:
                request.content.CopyFrom(of_value({switch.property: chance.choice(switch.values)}))
            (stored,) = yield from self._decide(
                self._resource(device, switch.href), request, lambda found, caller: found.command(kind, request, caller)
            )
            self.truth.open_commands[name] = device.device_id
            if device.is_online:
                self._plan(self._soon(device), self._answering(device, stored))
            elif chance.random() < CANCEL_SHARE:
                yield from self._cancel(device, stored)
            else:
                device.waiting.append(stored)
            self._plan(chance.expovariate(1 / COMMAND_S), self._commanding(device))

        return command

    def _answering(self, device: SimulatedDevice, pending: Any) -> Action:
        def answer() -> Iterator[Any]:
            if not device.is_online:
                device.waiting.append(pending)
                return
            kind = CommandKind.UPDATE if isinstance(pending, events.ResourceUpdatePending) else CommandKind.RETRIEVE
            href, name = pending.resource_id.href, pending.audit_context.correlation_id
            is_ok = device.chance.random() >= ERROR_SHARE
            if is_ok and kind is CommandKind.UPDATE:
                device.values[href] = value_of(pending.content)
            request = api_pb2.ResourceConfirmRequest(
                resource_id=pending.resource_id,
                correlation_id=name,
                status=events.OK if is_ok else events.ERROR,
                content=of_value(device.values[href]),
                command_metadata=self._command_metadata(device),
            )
            yield from self._decide(
                self._resource(device, href), request, lambda found, caller: found.confirm(kind, request, caller)
            )
            self.truth.commands["ok" if is_ok else "error"] += 1
            del self.truth.open_commands[name]
            yield from self._notify(device, href)

        return answer

    # How it becomes events.

    def _cancel(self, device: SimulatedDevice, pending: Any) -> Iterator[Any]:
        name = pending.audit_context.correlation_id
        request = api_pb2.CancelPendingCommandsRequest(
            resource_id=pending.resource_id,
            correlation_id_filter=[name],
            command_metadata=events.CommandMetadata(connection_id="app"),
        )
        yield from self._decide(
            self._resource(device, pending.resource_id.href),
            request,
            lambda found, caller: found.cancel(request, caller),
        )
        self.truth.commands["canceled"] += 1
        del self.truth.open_commands[name]

    def _notify(self, device: SimulatedDevice, href: str) -> Iterator[Any]:
        request = api_pb2.NotifyResourceChangedRequest(
            resource_id=events.ResourceId(device_id=device.device_id, href=href),
            content=of_value(device.values[href]),
            command_metadata=self._command_metadata(device),
        )
        stored = yield from self._decide(
            self._resource(device, href), request, lambda found, caller: found.notify(request, caller)
        )
        self.truth.unchanged += not stored and href != DEVICE_HREF

    def _links(self, device: SimulatedDevice) -> Iterator[Any]:
        request = api_pb2.PublishResourceLinksRequest(
            device_id=device.device_id, resources=device.links(), command_metadata=self._command_metadata(device)
        )
        key = AggregateKey(device.device_id, Family.LINKS)
        yield from self._decide((key, ""), request, lambda found, caller: found.publish(request, caller))

    def _metadata(self, device: SimulatedDevice, **update: Any) -> Iterator[Any]:
        request = api_pb2.UpdateDeviceMetadataRequest(
            device_id=device.device_id, command_metadata=self._command_metadata(device), **update
        )
        key = AggregateKey(device.device_id, Family.METADATA)
        yield from self._decide((key, ""), request, lambda found, caller: found.update(request, caller))

    def _decide(self, address: tuple[AggregateKey, str], request: Any, decision: Any) -> Any:
        """Yield what an aggregate decides, and return it without its snapshot."""
        key, href = address
        aggregate = self._aggregates.get(key)
        if aggregate is None:
            aggregate = self._aggregates[key] = new_aggregate(key, href)
        caller = Caller(user_id="simulator", now_ns=self.options.start_ns + self._now_ns)
        decided = decision(aggregate, caller)
        with_snapshot = decided
        if decided and aggregate.events_since_snapshot >= self.options.snapshot_threshold:
            with_snapshot = [aggregate.snapshot(caller), *decided]
        for message in aggregate.stamped(with_snapshot, request, caller):
            aggregate.apply(message)
            yield message
        for message in decided:
            self.truth.events[type(message).__name__] += 1
        return decided

    def _resource(self, device: SimulatedDevice, href: str) -> tuple[AggregateKey, str]:
        return AggregateKey.of_href(device.device_id, href), href

    def _command_metadata(self, device: SimulatedDevice) -> events.CommandMetadata:
        return events.CommandMetadata(connection_id=device.connection_id, sequence=device.next_sequence())

    def _soon(self, device: SimulatedDevice) -> float:
        return 0.05 + device.chance.expovariate(1 / ANSWER_S)

    def _plan(self, after_s: float, action: Action) -> None:
        heapq.heappush(self._agenda, (self._now_ns + round(after_s * SECOND), next(self._numbers), action))
