"""One simulated device: what it measures, what can be switched, how it behaves.

Invariant: `values` is the physical state, changed by the device itself; what the bus knows of it can be older.
"""

import random
from typing import Any, NamedTuple
from uuid import UUID

from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.twin import DEVICE_HREF

OBSERVABLE = 3
"""The bits of a link's policy: discoverable and observable."""


class Sensor(NamedTuple):
    """A resource that measures."""

    href: str
    resource_type: str
    property: str
    start: float
    # How far one reading may be from the last. Readings are rounded: many of them equal the last one.
    step: float
    digits: int
    interval_s: float


class Switch(NamedTuple):
    """A resource that can be set."""

    href: str
    resource_type: str
    property: str
    values: tuple[Any, ...]


class Model(NamedTuple):
    """A kind of device."""

    name: str
    resource_type: str
    sensors: tuple[Sensor, ...]
    switches: tuple[Switch, ...]


MODELS = (
    Model(
        "lamp",
        "oic.d.light",
        (),
        (
            Switch("/light/switch", "oic.r.switch.binary", "value", (True, False)),
            Switch("/light/dimming", "oic.r.light.dimming", "dimmingSetting", (10, 25, 50, 75, 100)),
        ),
    ),
    Model(
        "thermostat",
        "oic.d.thermostat",
        (
            Sensor("/temperature", "oic.r.temperature", "temperature", 21.0, 0.3, 1, 10.0),
            Sensor("/humidity", "oic.r.humidity", "humidity", 45.0, 1.0, 0, 30.0),
        ),
        (Switch("/target", "oic.r.temperature", "temperature", (18, 19, 20, 21, 22, 23)),),
    ),
    Model(
        "meter",
        "oic.d.energymonitor",
        (Sensor("/power", "oic.r.energy.consumption", "power", 400.0, 60.0, 0, 5.0),),
        (),
    ),
    Model(
        "plug",
        "oic.d.smartplug",
        (Sensor("/power", "oic.r.energy.consumption", "power", 30.0, 8.0, 0, 15.0),),
        (Switch("/switch", "oic.r.switch.binary", "value", (True, False)),),
    ),
)


class SimulatedDevice:
    """One device with a chance of its own."""

    def __init__(self, number: int, seed: int) -> None:
        self.number = number
        self.chance = random.Random(f"{seed}/{number}")
        self.device_id = str(UUID(int=self.chance.getrandbits(128), version=4))
        self.model = MODELS[self.chance.randrange(len(MODELS))]
        self.name = f"{self.model.name} {number}"
        self.values: dict[str, Any] = {DEVICE_HREF: {"n": self.name, "di": self.device_id}}
        for sensor in self.model.sensors:
            self.values[sensor.href] = {sensor.property: round(sensor.start, sensor.digits)}
        for switch in self.model.switches:
            self.values[switch.href] = {switch.property: self.chance.choice(switch.values)}
        self.is_online = False
        self.connection_number = 0
        self.sequence = 0
        # Commands that came while it was offline are answered when it is back.
        self.waiting: list[Any] = []

    @property
    def connection_id(self) -> str:
        port = 40_000 + (self.number * 7 + self.connection_number) % 20_000
        return f"10.{self.number >> 16 & 255}.{self.number >> 8 & 255}.{self.number & 255}:{port}"

    def next_sequence(self) -> int:
        self.sequence += 1
        return self.sequence

    def connect(self) -> None:
        """Begin a new connection; its sequences start again."""
        self.is_online = True
        self.connection_number += 1
        self.sequence = 0

    def read(self, sensor: Sensor) -> None:
        """Measure: a walk that tends to where it started."""
        last = float(self.values[sensor.href][sensor.property])
        drift = (sensor.start - last) * 0.05 + self.chance.uniform(-sensor.step, sensor.step)
        self.values[sensor.href] = {sensor.property: max(0, round(last + drift, sensor.digits))}

    def set(self, switch: Switch, value: Any) -> None:
        """Set a switch to a value."""
        self.values[switch.href] = {switch.property: value}

    def links(self) -> list[events.Resource]:
        """Return what the device has."""
        described = [(DEVICE_HREF, ["oic.wk.d", self.model.resource_type])]
        described += [(sensor.href, [sensor.resource_type]) for sensor in self.model.sensors]
        described += [(switch.href, [switch.resource_type]) for switch in self.model.switches]
        return [
            events.Resource(
                href=href,
                device_id=self.device_id,
                resource_types=types,
                interfaces=["oic.if.baseline"],
                policy=events.Policy(bit_flags=OBSERVABLE),
            )
            for href, types in described
        ]
