"""`jetlake consumer`: what can be done with consumers. What takes messages from them is in `consumer_messages`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli import consumer_messages
from jetlake.cli.choose import (
    ConsumerArgument,
    NamedConsumer,
    NamedStream,
    StreamArgument,
    choose_consumer,
    choose_stream,
)
from jetlake.cli.consumer_settings import CONSUMER_SETTINGS, EDIT_SETTINGS, normalised
from jetlake.cli.difference import is_wanted
from jetlake.cli.output import ForceOption, JsonOption, ask, confirm, print_facts, print_json, print_note, print_table
from jetlake.cli.run import refusals, run
from jetlake.cli.settings import accepts, edited, merged, read_config, write_config
from jetlake.client.api import token
from jetlake.client.schemas import CONSUMER_CONFIGURATION, require_valid
from jetlake.errors import ClientError
from jetlake.presentation.cells import Cell, Nanoseconds
from jetlake.presentation.consumer_facts import consumer_facts, filters, mode
from jetlake.presentation.moments import read_moment

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Create, inspect and manage consumers.", no_args_is_help=True)

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="A JSON file with the configuration; flags win over it.", metavar="FILE")
]


@application.callback()
def consumer() -> None:
    """Create, inspect and manage consumers."""


@application.command("add")
@accepts(CONSUMER_SETTINGS)
def add(
    stream: StreamArgument = "",
    name: ConsumerArgument = "",
    config: ConfigOption = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
    validate: Annotated[bool, typer.Option("--validate", help="Only check the configuration.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the configuration here instead.", metavar="FILE")] = None,
    as_json: JsonOption = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Create a consumer.

    It is a durable pull consumer that starts with the first message and expects each to be acknowledged, unless flags
    say otherwise.
    """
    with refusals():
        given = read_config(config) if config is not None else {}
        is_ephemeral = settings.pop("_ephemeral", False)
        if settings.pop("_pull", False) and settings.get("deliver_subject"):
            raise ClientError("--pull and --target exclude each other: a consumer is asked, or sends by itself")
        wanted = merged(
            {"deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"} | given,
            normalised(settings),
        )
        name = name or str(wanted.get("name") or wanted.get("durable_name") or "")
        if not name and not is_ephemeral:
            name = ask("Name of the consumer", flag="CONSUMER") if not defaults else ""
            if not name:
                raise ClientError("the consumer has no name: give one, or --ephemeral")
        if name:
            wanted["name"] = name
        if name and not is_ephemeral:
            wanted["durable_name"] = name
        if validate or output is not None:
            require_valid(wanted, CONSUMER_CONFIGURATION)
        if output is not None:
            write_config(output, wanted)
            print_note(f"Configuration written to {output}")
            return
    if validate:
        print_note("The configuration is valid")
        return

    async def work(api: "Api") -> dict[str, Any]:
        chosen = await choose_stream(api, stream)
        return await create(api, chosen, wanted, "create")

    made = run(work)
    _show(made, f"Created consumer {made['name']} of stream {made['stream_name']}", as_json=as_json)


@application.command("ls")
def list_all(
    stream: StreamArgument = "",
    names: Annotated[bool, typer.Option("--names", "-n", help="Names only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the consumers of a stream."""

    async def work(api: "Api") -> list[dict[str, Any]]:
        return await api.consumers(await choose_stream(api, stream))

    found = run(work)
    if as_json:
        print_json([info["name"] for info in found] if names else found)
    elif names:
        for info in found:
            typer.echo(info["name"])
    else:
        rows: list[tuple[Cell, ...]] = [
            (
                info["name"],
                mode(info["config"]),
                filters(info["config"]),
                info["config"].get("ack_policy"),
                info.get("num_ack_pending", 0),
                info.get("num_redelivered", 0),
                info.get("num_pending", 0),
            )
            for info in found
        ]
        print_table(("consumer", "mode", "filter", "ack", "outstanding", "redelivered", "unprocessed"), rows)


@application.command("info")
def show_info(stream: StreamArgument = "", name: ConsumerArgument = "", as_json: JsonOption = False) -> None:
    """Show the configuration and the state of a consumer."""
    found = run(lambda api: find(api, stream, name))
    _show(found, "", as_json=as_json)


@application.command("edit")
@accepts(EDIT_SETTINGS)
def edit(
    stream: StreamArgument = "",
    name: ConsumerArgument = "",
    config: ConfigOption = None,
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Edit it in your EDITOR.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Change a consumer; shows the difference and asks first."""
    with refusals():
        replacement = None if config is None else read_config(config)
    fields = normalised(settings)

    async def work(api: "Api") -> dict[str, Any] | None:
        found = await find(api, stream, name)
        before = found["config"]
        after = merged(before if replacement is None else replacement, fields)
        if interactive:
            after = edited(after)
        after |= {key: before[key] for key in ("name", "durable_name") if key in before}
        what = f"Consumer {found['name']}"
        if not is_wanted(what, before, after, dry_run=dry_run, force=force, as_json=as_json):
            return None
        return await create(api, found["stream_name"], after, "update")

    made = run(work)
    if made is not None and as_json:
        print_json(made)
    elif made is not None:
        print_note(f"Consumer {made['name']} was changed", style="green")


@application.command("copy")
@accepts(CONSUMER_SETTINGS)
def copy(
    stream: NamedStream,
    origin: Annotated[str, typer.Argument(help="The consumer whose configuration is copied.", metavar="CONSUMER")],
    destination: Annotated[str, typer.Argument(help="Name of the new consumer.")],
    as_json: JsonOption = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Create a consumer with the configuration of another; it starts where that one started."""
    is_ephemeral = settings.pop("_ephemeral", False)
    settings.pop("_pull", None)
    fields = normalised(settings)

    async def work(api: "Api") -> dict[str, Any]:
        given = (await find(api, stream, origin))["config"]
        kept = {key: value for key, value in given.items() if key not in ("durable_name", "metadata", "pause_until")}
        own = {key: value for key, value in (given.get("metadata") or {}).items() if not key.startswith("_nats.")}
        wanted = merged(kept | ({"metadata": own} if own else {}), fields) | {"name": destination}
        if not is_ephemeral:
            wanted["durable_name"] = destination
        return await create(api, stream, wanted, "create")

    made = run(work)
    _show(made, f"Created consumer {destination} with the configuration of {origin}", as_json=as_json)


@application.command("rm")
def rm(stream: StreamArgument = "", name: ConsumerArgument = "", force: ForceOption = False) -> None:
    """Delete a consumer; the messages stay in their stream."""

    async def work(api: "Api") -> str:
        found = await find(api, stream, name)
        confirm(f"Really delete the consumer {found['name']} of {found['stream_name']}?", force=force)
        await api.request(f"CONSUMER.DELETE.{token(found['stream_name'])}.{token(found['name'])}")
        return f"Consumer {found['name']} of {found['stream_name']}"

    print_note(f"{run(work)} is deleted")


@application.command("pause")
def pause(
    stream: NamedStream,
    name: NamedConsumer,
    until: Annotated[str, typer.Argument(help="How long, as 10m, or until when, as '2030-01-31 12:00:00'.")],
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Pause a consumer."""
    try:
        moment = read_moment(until)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error

    async def work(api: "Api") -> dict[str, Any]:
        confirm(f"Really pause the consumer {name} of {stream} until {moment}?", force=force)
        return await api.request(f"CONSUMER.PAUSE.{token(stream)}.{token(name)}", {"pause_until": moment})

    answer = run(work)
    if as_json:
        print_json(answer)
    elif answer.get("paused"):
        print_note(f"Consumer {name} of {stream} is paused until {answer.get('pause_until')}")
    else:
        print_note(f"Consumer {name} of {stream} goes on: {moment} is over")


@application.command("resume")
def resume(
    stream: NamedStream,
    name: NamedConsumer,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Resume a paused consumer."""

    async def work(api: "Api") -> dict[str, Any]:
        confirm(f"Really resume the consumer {name} of {stream}?", force=force)
        return await api.request(f"CONSUMER.PAUSE.{token(stream)}.{token(name)}", {})

    answer = run(work)
    if as_json:
        print_json(answer)
    else:
        print_note(f"Consumer {name} of {stream} goes on")


@application.command("reset")
def reset(
    stream: NamedStream,
    name: NamedConsumer,
    sequence: Annotated[
        int,
        typer.Option("--sequence", min=0, help="Sequence to start from; the first unacknowledged one unless given."),
    ] = 0,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reset a consumer, so that it delivers messages again."""

    async def work(api: "Api") -> dict[str, Any]:
        where = f"to sequence {sequence:,}" if sequence else "to the first message that is not acknowledged"
        confirm(f"Really reset the consumer {name} of {stream} {where}?", force=force)
        # Asked first, because a server says nothing to a reset of what is not there.
        await find(api, stream, name)
        body = {"seq": sequence} if sequence else None
        return await api.request(f"CONSUMER.RESET.{token(stream)}.{token(name)}", body)

    answer = run(work)
    if as_json:
        print_json(answer)
    else:
        print_note(f"Consumer {name} of {stream} begins again at {answer.get('reset_seq', sequence):,}")


@application.command("unpin")
def unpin(
    stream: NamedStream,
    name: NamedConsumer,
    group: Annotated[str, typer.Argument(help="The group of clients.")],
    force: ForceOption = False,
) -> None:
    """Release the pinned client so that another takes over."""

    async def work(api: "Api") -> None:
        confirm(f"Really unpin the client of group {group}?", force=force)
        await api.request(f"CONSUMER.UNPIN.{token(stream)}.{token(name)}", {"group": group})

    run(work)
    print_note(f"Group {group} of {name} is free")


@application.command("report")
def report(stream: StreamArgument = "", as_json: JsonOption = False) -> None:
    """Compare the progress and backlog of a stream's consumers."""

    async def work(api: "Api") -> tuple[dict[str, Any], list[dict[str, Any]]]:
        chosen = await choose_stream(api, stream)
        return await api.request(f"STREAM.INFO.{token(chosen)}"), await api.consumers(chosen)

    info, found = run(work)
    if as_json:
        print_json(found)
        return
    messages = max(1, info["state"]["messages"])
    rows: list[tuple[Cell, ...]] = [
        (
            each["name"],
            mode(each["config"]),
            each["config"].get("ack_policy"),
            Nanoseconds(each["config"].get("ack_wait", 0)),
            each.get("num_ack_pending", 0),
            each.get("num_redelivered", 0),
            each.get("num_pending", 0),
            f"{100 * each.get('num_pending', 0) / messages:.0f} %",
            each["ack_floor"]["stream_seq"],
        )
        for each in found
    ]
    sums = [sum(int(row[column] or 0) for row in rows) for column in (4, 5, 6)]
    columns = (
        "consumer", "mode", "ack", "ack wait", "outstanding", "redelivered", "unprocessed", "of stream", "acked up to",
    )  # fmt: skip
    title = f"{info['config']['name']}: {info['state']['messages']:,} messages"
    print_table(columns, rows, title=title, totals=(f"{len(rows)} consumers", None, None, None, *sums, None, None))


async def find(api: "Api", stream: str, name: str) -> dict[str, Any]:
    """Return the description of the consumer that is meant."""
    chosen = await choose_stream(api, stream)
    return await api.request(f"CONSUMER.INFO.{token(chosen)}.{token(await choose_consumer(api, chosen, name))}")


async def create(api: "Api", stream: str, config: dict[str, Any], action: str) -> dict[str, Any]:
    """Make or change a consumer."""
    body = {"stream_name": stream, "config": config, "action": action}
    if not config.get("name"):
        # Without a name in the subject the server gives one.
        return await api.request(f"CONSUMER.CREATE.{token(stream)}", body)
    return await api.request(f"CONSUMER.CREATE.{token(stream)}.{token(str(config['name']))}", body)


def _show(info: dict[str, Any], title: str, *, as_json: bool) -> None:
    if as_json:
        print_json(info)
        return
    if title:
        print_note(title, style="green")
        print_facts("", consumer_facts(info))
    else:
        created = f"created {info.get('created', '')}"
        print_facts(f"Consumer {info['name']} of {info['stream_name']}, {created}", consumer_facts(info))


application.command("next")(consumer_messages.receive)
application.command("sub")(consumer_messages.listen)
application.command("create", hidden=True)(add)
application.command("new", hidden=True)(add)
application.command("list", hidden=True)(list_all)
application.command("i", hidden=True)(show_info)
application.command("nfo", hidden=True)(show_info)
application.command("update", hidden=True)(edit)
application.command("cp", hidden=True)(copy)
application.command("delete", hidden=True)(rm)
application.command("del", hidden=True)(rm)
