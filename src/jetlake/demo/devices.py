"""Simulated devices on the device event bus, and their state rebuilt from the events.

The simulator keeps an account of what it decided. Invariant: what the events tell about every device is what the
account says about it.
"""

import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from jetlake.client.api import Api
from jetlake.client.raw_settings import settings_of
from jetlake.demo.scene import Scene, ScenePart, Script
from jetlake.demo.stage import Stage
from jetlake.errors import MissingDependencyError

if TYPE_CHECKING:
    from jetlake.devices.twin import DeviceView, Twin

__all__ = ["SCRIPTS"]

SIMULATED_S = 120.0
SEED = 7
SECOND_NS = 1_000_000_000
SHOWN = 4


def _devices(stage: Stage, scene: Scene) -> None:
    try:
        from jetlake.devices.simulator.run import run_simulation
        from jetlake.devices.simulator.simulation import Simulation, SimulationOptions
        from jetlake.devices.stream import ensure_streams
    except ImportError as error:
        raise MissingDependencyError(
            f"the device event bus needs the extra `devices` ({error}): run `pip install 'jetlake[devices]'`"
        ) from error
    # What goes faster than time is history, so that nothing lies in the future.
    start_ns = time.time_ns() - round(SIMULATED_S * SECOND_NS)
    count = stage.scale.count(7, 20, 2_000)
    simulation = Simulation(SimulationOptions(devices=count, seconds=SIMULATED_S, seed=SEED, start_ns=start_ns))
    stream = stage.with_api(ensure_streams)
    told = 0

    def advance(number: int) -> None:
        nonlocal told
        told += number
        stage.tell(f"{told:,} events of {count} devices")

    report = run_simulation(
        simulation,
        settings_of(stage.access, name="jetlake demo devices"),
        stream=stream,
        speed=SIMULATED_S / stage.scale.devices_s,
        progress=advance,
    )
    truth = simulation.truth.as_json(simulation.devices)
    stored = stage.count_messages(stream, report.stored)
    stage.tell("rebuilding the state of every device from its events")
    twin = stage.with_api(lambda api: _rebuilt(api, stream))
    views = {view.device_id: view for view in twin.devices()}
    scene.rows += [
        ("devices", count),
        ("events stored", stored),
        ("connections of devices", truth["sessions"]),
        ("commands that devices confirmed", truth["commands"].get("ok", 0)),
        ("devices online now", sum(view.is_online() for view in views.values())),
    ]
    shown = [(view.name, "online" if view.is_online() else "offline", _text(view)) for view in views.values()]
    scene.parts.append(ScenePart("Some of them", ("device", "state", "resources"), shown[:SHOWN]))
    accounts = [(views[device], account) for device, account in truth["devices"].items() if device in views]
    online = sum(view.is_online() == account["online"] for view, account in accounts)
    same = sum(_held(view) == account["values"] for view, account in accounts)
    scene.check("every event is in the stream", expected=report.stored, found=stored)
    scene.check("devices whose connection is as simulated", expected=count, found=online)
    scene.check("devices whose content is as simulated", expected=count, found=same)
    stage.truths["devices"] = truth


async def _rebuilt(api: Api, stream: str) -> "Twin":
    from jetlake.devices.consumer import read_events
    from jetlake.devices.twin import Twin

    twin = Twin()
    async with aclosing(read_events(api, stream, to_end=True)) as events:
        async for event in events:
            await twin.apply(event)
    return twin


def _held(view: "DeviceView") -> dict[str, Any]:
    """Return what the resources of a device hold, by their href."""
    from jetlake.devices.content import value_of

    return {
        href: value_of(resource.latest.content)
        for href, resource in sorted(view.resources.items())
        if resource.latest is not None
    }


def _text(view: "DeviceView") -> str:
    """Return the same for people, without what a device says about itself."""
    from jetlake.devices.twin import DEVICE_HREF

    return ", ".join(f"{href} {_only(value)}" for href, value in _held(view).items() if href != DEVICE_HREF)


def _only(value: Any) -> Any:
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


SCRIPTS = (
    Script(
        "devices",
        "Devices",
        "Two minutes of simulated devices, faster than time: sensors, switches, lost connections, commands with "
        "confirmations. Everything is an event in a stream; the state of each device is rebuilt from its events.",
        ("what", "count"),
        _devices,
    ),
)
