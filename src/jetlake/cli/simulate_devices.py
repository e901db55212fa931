"""`jetlake simulate devices`: devices with sensors and switches that come, go and obey commands."""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.hosted import Stop
from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_json, progress_bar
from jetlake.cli.run import refusals

if TYPE_CHECKING:
    from jetlake.client.access import Access
    from jetlake.devices.simulator.simulation import Simulation

SECOND = 1_000_000_000


def devices(
    count: Annotated[int, typer.Option("--devices", min=1, help="Number of devices.")] = 2000,
    seconds: Annotated[float, typer.Option(min=0.001, help="Simulated time in seconds.")] = 60.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same events.")] = 1,
    truth: Annotated[Path | None, typer.Option(help="Write what happened to this file.", metavar="FILE")] = None,
    speed: Annotated[float, typer.Option(min=0, help="Simulated seconds per second (0: as fast as possible).")] = 1.0,
    as_json: JsonOption = False,
) -> None:
    """Simulate devices on the device event bus: sensors, switches, disconnects, command round trips.

    Creates the stream EVENTS unless some stream listens on events.>.
    """
    with refusals():
        from jetlake.cli.device_serve import need_extra

        need_extra()
        from jetlake.client.raw_settings import settings_of
        from jetlake.devices.simulator.run import run_simulation
        from jetlake.devices.simulator.simulation import Simulation, SimulationOptions

        # What goes faster than time is history, so that nothing lies in the future.
        start_ns = time.time_ns() - (0 if speed == 1.0 else round(seconds * SECOND))
        simulation = Simulation(SimulationOptions(devices=count, seconds=seconds, seed=seed, start_ns=start_ns))
        access = current().access()
        stream = asyncio.run(_prepare(access, simulation))
        with Stop() as stop, progress_bar("events", None) as advance:
            report = run_simulation(
                simulation,
                settings_of(access, name="jetlake simulate devices"),
                stream=stream,
                speed=speed,
                is_stopping=stop.is_set,
                progress=advance,
            )
        if truth is not None and report.is_complete:
            simulation.truth.write(truth, simulation.devices)
    rate = report.stored / max(report.duration_s, 1e-9)
    if as_json:
        print_json(
            {
                "stored": report.stored,
                "seconds": round(report.duration_s, 3),
                "complete": report.is_complete,
                "events": dict(simulation.truth.events),
            }
        )
        return
    typer.echo(f"Stored {report.stored:,} events of {count:,} devices in {report.duration_s:.1f} s ({rate:,.0f}/s)")
    if truth is not None:
        typer.echo(
            f"Wrote {truth}" if report.is_complete else f"{truth} is not written: the simulation was interrupted"
        )


async def _prepare(access: "Access", simulation: "Simulation") -> str:
    from jetlake.client.api import open_api
    from jetlake.devices.simulator.run import check_unused
    from jetlake.devices.stream import ensure_streams

    async with open_api(access) as api:
        stream = await ensure_streams(api)
        await check_unused(api, stream, simulation)
    return stream
