"""`jetlake agent`: the agent on a node: registration, lifecycle events, machines, the sender of a spool."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from jetlake.cli.agent_machines import add_commands
from jetlake.cli.hosted import Stop, report_line
from jetlake.cli.invocation import current
from jetlake.cli.run import refusals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetlake.agents.machines.options import MachinesOptions
    from jetlake.agents.node import Part
    from jetlake.agents.options import NodeOptions
    from jetlake.client.access import Access

application = typer.Typer(help="Run the agent of a node.", no_args_is_help=True)

FileOption = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Configuration of the node: Choria's keys or YAML.", metavar="FILE"),
]
CONFIG_MISSING = "name the configuration of the node: -c FILE"


@application.callback()
def agent() -> None:
    """Run what a node needs in one process: registration, lifecycle events, machines, the sender of a spool."""


@application.command()
def run(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Folders of machines, besides those of the store.", metavar="FOLDER")
    ] = None,
    config: FileOption = None,
    facts: Annotated[Path | None, typer.Option(help="Facts for machines, JSON or YAML.", metavar="FILE")] = None,
    data: Annotated[Path | None, typer.Option(help="Data to start machines with, JSON.", metavar="FILE")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not connect to a server.")] = False,
) -> None:
    """Run the agent of a node until SIGTERM or Ctrl-C.

    Machines run at once, and without a server too. The other parts wait for the server, and come back when the
    connection is lost. A part that fails is started again; the others go on.
    """
    from jetlake.agents.node import NodeAgent

    with refusals():
        if config is None and not folders:
            fail_usage("name a configuration, -c FILE, or the folder of a machine")
        options, access = _read(config, facts)
        machines = _machines_options(options, folders or [])
        parts = parts_of(options, access, machines=machines, data=_given_data(data))
        node = NodeAgent(options, None if offline else access, parts, _report)
        with Stop() as stop:
            asyncio.run(_run_until(stop, node.run))


@application.command()
def register(config: FileOption = None) -> None:
    """Publish the registration of a node once, and end."""
    from jetlake.agents.node import LocalNode
    from jetlake.agents.registration import RegistrationPublisher
    from jetlake.client.access import connect
    from jetlake.errors import ConfigurationError

    with refusals():
        if config is None:
            fail_usage(CONFIG_MISSING)
        options, access = _read(config, None)
        publishers = [part for part in parts_of(options, access) if isinstance(part, RegistrationPublisher)]
        if not publishers:
            raise ConfigurationError(f"{config} configures no registration: write registration = file_content")

        async def publish() -> None:
            connection = await connect(access)
            try:
                node = LocalNode(options, connection, _report, access)
                for publisher in publishers:
                    await publisher.publish_once(node)
            finally:
                await connection.close()

        asyncio.run(publish())
        targets = ", ".join(publisher.target for publisher in options.registration.publishers)
        typer.echo(f"Registered {options.identity} on {targets}")


add_commands(application)


def parts_of(
    options: "NodeOptions",
    access: "Access",
    *,
    machines: "MachinesOptions | None" = None,
    data: dict[str, Any] | None = None,
) -> "list[Part]":
    """Return what the agent of a node hosts; here parts of several features come together."""
    from jetlake.agents.lifecycle import Lifecycle
    from jetlake.agents.machines.host import MachineHost
    from jetlake.agents.registration import registration_parts
    from jetlake.agents.submission import SubmissionSender, sender_options
    from jetlake.client.load import engine_version

    parts: list[Part] = []
    if options.lifecycle_events:
        parts.append(Lifecycle(options, version=engine_version))
    host = None
    if machines is not None and (machines.store is not None or machines.folders):
        host = MachineHost(machines, data=data)
        parts.append(host)
    parts += registration_parts(options, version=engine_version, machines=host.describe if host else None)
    if (sender := sender_options(options, access)) is not None:
        parts.append(SubmissionSender(sender))
    return parts


def fail_usage(text: str) -> NoReturn:
    """End the command because of a mistake in its line."""
    raise typer.BadParameter(text)


async def _run_until(stop: Stop, work: "Callable[[asyncio.Event], Awaitable[None]]") -> None:
    stopping = asyncio.Event()

    async def watch() -> None:
        await asyncio.to_thread(stop.wait)
        stopping.set()

    watcher = asyncio.create_task(watch())
    try:
        await work(stopping)
    finally:
        stop.set()
        await watcher


def _read(config: Path | None, facts: Path | None) -> "tuple[NodeOptions, Access]":
    import msgspec

    from jetlake.agents.options import read_node_file, read_node_options
    from jetlake.choria.settings import ChoriaSettings
    from jetlake.client.access import resolve

    # Without a configuration machines are tried out: no startup or shutdown event of a node is published.
    options = (
        read_node_options(ChoriaSettings({"lifecycle.enabled": "false"}, "the defaults"))
        if config is None
        else read_node_file(config)
    )
    if facts is not None:
        options = msgspec.structs.replace(options, facts_file=str(facts))
    invocation = current()
    from_file = {"url": ",".join(options.servers)} if options.servers else {}
    named = {"name": f"jetlake agent {options.identity}"} | from_file | invocation.options
    return options, resolve(named, context=invocation.context)


def _machines_options(options: "NodeOptions", folders: list[Path]) -> "MachinesOptions":
    import msgspec

    from jetlake.agents.machines.manifest import read_manifest
    from jetlake.agents.machines.options import read_machines_options

    # A user who names a machine on the command line wants to know at once that it cannot run.
    for folder in folders:
        read_manifest(folder)
    return msgspec.structs.replace(read_machines_options(options.settings), folders=tuple(folders))


def _given_data(path: Path | None) -> dict[str, Any]:
    import json

    from jetlake.choria.settings import read_text
    from jetlake.errors import ConfigurationError

    if path is None:
        return {}
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} does not hold a JSON object")
    return content


def _report(level: str, text: str) -> None:
    report_line(level, text, hosted=False)
