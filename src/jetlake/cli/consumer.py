"""`jetlake consumer`: what can be done with consumers.

What makes and changes them is in `consumer_change`, what takes messages from them in `consumer_messages`.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli import consumer_change, consumer_messages
from jetlake.cli.choose import (
    ConsumerArgument,
    NamedConsumer,
    NamedStream,
    StreamArgument,
    choose_stream,
)
from jetlake.cli.consumer_change import find_consumer, show_consumer
from jetlake.cli.output import ForceOption, JsonOption, confirm, print_json, print_names, print_note, print_table
from jetlake.cli.run import run
from jetlake.client.api import token
from jetlake.presentation.cells import Cell, Nanoseconds
from jetlake.presentation.consumer_facts import filters, mode
from jetlake.presentation.timestamps import read_timestamp

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Create, inspect and manage consumers.", no_args_is_help=True)


@application.callback()
def consumer() -> None:
    """Create, inspect and manage consumers."""


application.command("add")(consumer_change.add)


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
        print_names(info["name"] for info in found)
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
    found = run(lambda api: find_consumer(api, stream, name))
    show_consumer(found, "", as_json=as_json)


application.command("edit")(consumer_change.edit)
application.command("copy")(consumer_change.copy)


@application.command("rm")
def rm(stream: StreamArgument = "", name: ConsumerArgument = "", force: ForceOption = False) -> None:
    """Delete a consumer; the messages stay in their stream."""

    async def work(api: "Api") -> str:
        found = await find_consumer(api, stream, name, force=force)
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
        moment = read_timestamp(until)
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
        await find_consumer(api, stream, name)
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


application.command("next")(consumer_messages.receive)
application.command("sub")(consumer_messages.listen)
application.command("create", hidden=True)(consumer_change.add)
application.command("new", hidden=True)(consumer_change.add)
application.command("list", hidden=True)(list_all)
application.command("i", hidden=True)(show_info)
application.command("nfo", hidden=True)(show_info)
application.command("update", hidden=True)(consumer_change.edit)
application.command("cp", hidden=True)(consumer_change.copy)
application.command("delete", hidden=True)(rm)
application.command("del", hidden=True)(rm)
