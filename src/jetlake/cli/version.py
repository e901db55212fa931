"""`jetlake version`: which Jetlake this is, and which nats-server it behaves like."""

import platform

import typer

from jetlake.client.load import build_profile, engine_version
from jetlake.config import NATS_VERSION


def version() -> None:
    """Show the versions of Jetlake, of its engine's build and of the nats-server it is compatible with."""
    typer.echo(f"jetlake {engine_version} (engine: {build_profile} build)")
    typer.echo(f"compatible with nats-server {NATS_VERSION}")
    typer.echo(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
