"""`jetlake governor`: create, inspect and use concurrency governors; `governor_run` runs commands under one.

The output is that of Choria, whose governors these are.
"""

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jetlake.cli.choria_settings import CollectiveOption, ConfigOption, choria_settings
from jetlake.cli.governor_run import run as run_command
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import ForceOption, JsonOption, confirm, print_json, print_note, print_table
from jetlake.cli.run import refusals, run
from jetlake.errors import ApiError
from jetlake.governor import catalog, events
from jetlake.governor.layout import GovernorSettings
from jetlake.shared.go_text import duration_text

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Limit how many processes do something at once, network-wide.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The governor.", metavar="NAME")]

MILLISECOND_NS = 1_000_000


@application.callback()
def governor() -> None:
    """Limit how many processes do something at once, network-wide.

    A governor has a number of slots. Each holder of a slot has a lease, which expires if its holder crashes.
    """


@application.command()
def add(
    name: NameArgument,
    capacity: Annotated[int, typer.Argument(help="Number of slots.")],
    expire: Annotated[
        int, typer.Argument(parser=parse_duration, metavar="EXPIRE", help="When a lease expires: 20m; 0: never.")
    ],
    replicas: Annotated[int, typer.Argument(help="Number of replicas in a cluster.")] = 1,
    force: ForceOption = False,
    collective: CollectiveOption = "",
    config: ConfigOption = None,
) -> None:
    """Create a governor, or change one; the leases it has stay."""
    with refusals():
        chosen = choria_settings(config, collective=collective)
        wanted = GovernorSettings(
            name=name, capacity=capacity, expires_ns=expire, replicas=replicas, collective=chosen.collective
        )

    async def work(api: "Api") -> GovernorSettings:
        found = await catalog.find(api, name)
        if found is not None and found != wanted:
            _show_change(found, wanted)
            confirm(f"Update configuration for {name}?", force=force)
        try:
            return await catalog.add(api, wanted)
        except ApiError as error:
            if error.error_code != catalog.STANDALONE:
                raise
        typer.echo(f"warning: the server is not clustered: {name} has 1 replica instead of {replicas}", err=True)
        return await catalog.add(api, msgspec.structs.replace(wanted, replicas=1))

    made = run(work)
    typer.echo("Configuration:\n")
    for line in _fact_lines({"Capacity": f"{made.capacity}", **_times(made)}):
        typer.echo(line)
    typer.echo()


@application.command("ls")
@application.command("list", hidden=True)
def list_all(collective: CollectiveOption = "", config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the governors of a collective."""
    with refusals():
        chosen = choria_settings(config, collective=collective)
    names = run(lambda api: catalog.names(api, chosen.collective))
    if as_json:
        print_json(names)
    elif not names:
        print_note("No Governors found")
    else:
        typer.echo("Known Governors:\n")
        for name in names:
            typer.echo(f"\t{name}")


@application.command()
@application.command("info", hidden=True)
@application.command("show", hidden=True)
@application.command("v", hidden=True)
@application.command("s", hidden=True)
def view(name: NameArgument, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show a governor and its leases."""
    with refusals():
        choria_settings(config)
    found = run(lambda api: catalog.view(api, name))
    if as_json:
        print_json(found)
        return
    typer.echo(f"Configuration for Governor {name}\n")
    facts = {"Capacity": f"{found.settings.capacity}", **_times(found.settings), "Active Leases": len(found.leases)}
    for line in _fact_lines(facts):
        typer.echo(line)
    typer.echo()
    if found.leases:
        rows = [(lease.id, lease.holder, _age(lease.age_ns)) for lease in found.leases]
        print_table(("ID", "Process Name", "Age"), rows)


@application.command()
def evict(
    name: NameArgument,
    lease: Annotated[int, typer.Argument(help="The id of the lease, as `view` shows it.", metavar="ID")],
    force: ForceOption = False,
    config: ConfigOption = None,
) -> None:
    """End one lease. Its holder is not told and keeps running, unless it renews its lease."""
    with refusals():
        choria_settings(config)

    async def work(api: "Api") -> str:
        if not await catalog.leases(api, name):
            print_note("No lease entries to remove")
            raise typer.Exit(0)
        confirm(f"Evict lease {lease} from {name}?", force=force)
        return await catalog.evict(api, name, lease)

    holder = run(work)
    typer.echo(f'Evicted "{holder}" from slot {lease}')


@application.command()
def reset(name: NameArgument, force: ForceOption = False, config: ConfigOption = None) -> None:
    """End all leases."""
    with refusals():
        choria_settings(config)

    async def work(api: "Api") -> int:
        count = len(await catalog.leases(api, name))
        if not count:
            print_note("No lease entries to remove")
            raise typer.Exit(0)
        confirm(f"Reset {name} with {count} lease entries?", force=force)
        return await catalog.reset(api, name)

    typer.echo(f"Removed {run(work)} lease entries from {name}")


@application.command("rm")
@application.command("delete", hidden=True)
def remove(name: NameArgument, force: ForceOption = False, config: ConfigOption = None) -> None:
    """Delete a governor."""
    with refusals():
        choria_settings(config)

    async def work(api: "Api") -> None:
        count = len(await catalog.leases(api, name))
        confirm(f"Delete {name} with {count} active lease entries?", force=force)
        await catalog.remove(api, name)

    run(work)
    typer.echo(f"Deleted governor {name}")


@application.command()
def watch(
    name: Annotated[str, typer.Argument(help="Only this governor.", metavar="NAME", show_default=False)] = "",
    count: Annotated[int, typer.Option(min=0, help="Stop after N events (0: run until interrupted).")] = 0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show leases being taken and released, live.

    Leases that expire send no event.
    """
    with refusals():
        choria_settings(config)

    async def work(api: "Api") -> None:
        from jetlake.cli.sub import live

        shown = 0
        async for message in live(api, [f"{events.SUBJECT_PREFIX}.>"], ""):
            event = events.event_of(message.data)
            if event is None or (name and event.governor != name):
                continue
            typer.echo(event.encoded().decode() if as_json else str(event))
            shown += 1
            if count and shown >= count:
                return

    run(work, reconnect=True)


application.command("run", context_settings={"ignore_unknown_options": True})(run_command)


def _show_change(found: GovernorSettings, wanted: GovernorSettings) -> None:
    typer.echo("Existing configuration:\n")
    before = {"Capacity": f"{found.capacity}", **_times(found)}
    after = {"Capacity": f"{wanted.capacity}", **_times(wanted)}
    if found.collective != wanted.collective:
        before, after = before | {"Collective": found.collective}, after | {"Collective": wanted.collective}
    facts = {key: value if value == after[key] else f"{value} desired: {after[key]}" for key, value in before.items()}
    for line in _fact_lines(facts):
        typer.echo(line)
    typer.echo()


def _times(settings: GovernorSettings) -> dict[str, Any]:
    return {"Expires": duration_text(settings.expires_ns), "Replicas": settings.replicas}


def _fact_lines(facts: dict[str, Any]) -> list[str]:
    """Return the lines of facts with their colons below each other, two blanks before the longest name."""
    width = max(map(len, facts)) + 2
    return [f"{key:>{width}}: {value}" for key, value in facts.items()]


def _age(age_ns: int) -> str:
    return duration_text(round(age_ns / MILLISECOND_NS) * MILLISECOND_NS)
