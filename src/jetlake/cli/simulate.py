"""`jetlake simulate`: made-up traffic with a written account of it, for demonstrations, tests and measurements."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from jetlake.cli.hosted import Stop
from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_json, progress_bar
from jetlake.cli.run import refusals
from jetlake.cli.simulate_devices import devices
from jetlake.presentation.timestamps import read_timestamp

application = typer.Typer(help="Simulate traffic.", no_args_is_help=True)
application.command()(devices)


@application.callback()
def simulate() -> None:
    """Publish made-up traffic, the same for the same seed, and write down what happened."""


def _seconds_of(text: str) -> int:
    try:
        return int(datetime.fromisoformat(read_timestamp(text)).timestamp())
    except ValueError as error:
        raise typer.BadParameter(f"--start: {error}") from error


@application.command()
def fleet(
    nodes: Annotated[int, typer.Option(min=1, help="Number of nodes at the beginning.")] = 1_000,
    seconds: Annotated[int, typer.Option(min=1, help="Simulated time in seconds.")] = 600,
    seed: Annotated[int, typer.Option(help="The same seed gives the same events.")] = 1,
    truth: Annotated[Path | None, typer.Option(help="Write what happened to this file.", metavar="FILE")] = None,
    speed: Annotated[float, typer.Option(min=0, help="Simulated seconds per second (0: as fast as possible).")] = 1.0,
    start: Annotated[
        str, typer.Option(help="Simulated time of the first event: 2026-01-31T12:00:00Z; now unless given.")
    ] = "",
    target: Annotated[str, typer.Option(help="Subject that nodes register on.")] = "choria.discovery",
    interval: Annotated[int, typer.Option(min=1, help="Seconds between registrations of a node.")] = 300,
    check_interval: Annotated[int, typer.Option(min=1, help="Seconds between runs of a check.")] = 60,
    late: Annotated[float, typer.Option(min=0, max=1, help="Share of events published late.")] = 0.0,
    duplicates: Annotated[float, typer.Option(min=0, max=1, help="Share of events published twice.")] = 0.0,
    as_json: JsonOption = False,
) -> None:
    """Simulate a fleet of Choria's nodes: registration, lifecycle, machine, check and governor events, with churn."""
    import time

    from jetlake.client.raw_connection import RawConnection
    from jetlake.client.raw_settings import settings_of
    from jetlake.simulation.fleet import Fleet, FleetOptions
    from jetlake.simulation.publisher import publish

    with refusals():
        options = FleetOptions(
            nodes=nodes,
            seconds=seconds,
            seed=seed,
            start_s=_seconds_of(start) if start else int(time.time()),
            target=target,
            register_interval_s=interval,
            check_interval_s=check_interval,
            late_share=late,
            duplicate_share=duplicates,
        )
        made = Fleet(options)
        settings = settings_of(current().access(), name="jetlake simulate fleet")
        with Stop() as stop, RawConnection(settings) as connection, progress_bar("events", None) as advance:
            began_s = time.monotonic()
            count = publish(
                made.events(),
                connection,
                speed=speed,
                is_stopping=stop.is_set,
                progress=advance,
            )
            took_s = time.monotonic() - began_s
            is_complete = not stop.is_set()
        if truth is not None and is_complete:
            made.truth.write(truth)
    summary = {
        "published": count,
        "seconds": round(took_s, 3),
        "complete": is_complete,
        "counts": dict(made.truth.counts),
    }
    if as_json:
        print_json(summary)
    else:
        typer.echo(
            f"Published {count:,} events of {nodes:,} nodes in {took_s:.1f} s ({count / max(took_s, 1e-9):,.0f}/s)"
        )
        if truth is not None:
            typer.echo(f"Wrote {truth}" if is_complete else f"{truth} is not written: the simulation was interrupted")
