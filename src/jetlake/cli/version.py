"""`jetlake version`: which Jetlake this is, and which nats-server it behaves like."""

import platform

import typer

from jetlake.cli.output import JsonOption, print_json
from jetlake.client.load import build_profile, engine_version
from jetlake.config import NATS_VERSION


def version(as_json: JsonOption = False) -> None:
    """Show the versions of Jetlake, of its engine's build and of the nats-server it is compatible with."""
    machine = f"{platform.system()} {platform.machine()}"
    if as_json:
        print_json(
            {
                "jetlake": engine_version,
                "engine_build": build_profile,
                "nats_server": NATS_VERSION,
                "python": platform.python_version(),
                "machine": machine,
            }
        )
        return
    typer.echo(f"jetlake {engine_version} (engine: {build_profile} build)")
    typer.echo(f"compatible with nats-server {NATS_VERSION}")
    typer.echo(f"Python {platform.python_version()}, {machine}")
