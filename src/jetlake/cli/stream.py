"""`jetlake stream`: what can be done with streams. What makes them, reads them and saves them is in `stream_*`."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli import stream_archive, stream_change, stream_graph, stream_messages
from jetlake.cli.choose import INTERNAL, StreamArgument, choose_stream
from jetlake.cli.invocation import current
from jetlake.cli.option_values import given
from jetlake.cli.output import (
    ForceOption,
    JsonOption,
    confirm,
    print_facts,
    print_json,
    print_list,
    print_names,
    print_note,
    print_table,
)
from jetlake.cli.readers import outlive_readers
from jetlake.cli.run import refusals, run
from jetlake.client.api import token
from jetlake.presentation.cells import Bytes, Cell
from jetlake.presentation.stream_facts import config_facts, state_facts
from jetlake.presentation.timestamps import age_of

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Create, inspect and manage streams.", no_args_is_help=True)

SUBJECTS_PAGES_MAX = 10_000
"""Pages of subjects: a server whose total never ends must not keep us for ever."""

AllOption = Annotated[bool, typer.Option("--all", "-a", help="Include the streams of buckets, object stores and MQTT.")]
SubjectOption = Annotated[str, typer.Option(help="Only streams that listen on this subject.")]


@application.callback()
def stream() -> None:
    """Create, inspect and manage streams."""


@application.command("ls")
def list_all(
    subject: SubjectOption = "",
    names: Annotated[bool, typer.Option("--names", "-n", help="Names only.")] = False,
    everything: AllOption = False,
    as_json: JsonOption = False,
) -> None:
    """List the streams."""
    found = [info for info in run(lambda api: api.streams(subject)) if everything or not _is_internal(info)]
    if print_list(found, lambda info: str(info["config"]["name"]), dict, names=names, as_json=as_json):
        return
    rows: list[tuple[Cell, ...]] = [
        (
            info["config"]["name"],
            ", ".join(info["config"].get("subjects") or []),
            info["state"]["messages"],
            Bytes(info["state"]["bytes"]),
            info["state"].get("consumer_count", 0),
            age_of(info["state"].get("last_ts")),
        )
        for info in found
    ]
    print_table(("stream", "subjects", "messages", "bytes", "consumers", "last message"), rows)


@application.command()
def info(
    name: StreamArgument = "",
    state: Annotated[bool, typer.Option("--state", help="Show the state only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the configuration and the state of a stream."""
    found = run(lambda api: _info(api, name))
    if as_json:
        print_json(found["state"] if state else found)
        return
    title = f"Stream {found['config']['name']}, created {found.get('created', '')}"
    print_facts(title, (state_facts(found)) if state else config_facts(found["config"]) | state_facts(found))


@application.command("state")
def show_state(name: StreamArgument = "", as_json: JsonOption = False) -> None:
    """Show the state of a stream."""
    info(name, state=True, as_json=as_json)


@application.command()
def subjects(
    name: StreamArgument = "",
    pattern: Annotated[str, typer.Argument(metavar="FILTER", help="Only these; may have wildcards.")] = ">",
    names: Annotated[bool, typer.Option("--names", help="Names only.")] = False,
    by_name: Annotated[bool, typer.Option("--by-name", help="Sort by name instead of by messages.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the subjects of a stream's messages."""

    async def work(api: "Api") -> dict[str, int]:
        chosen = await choose_stream(api, name)
        found: dict[str, int] = {}
        for _ in range(SUBJECTS_PAGES_MAX):
            answer = await api.request(
                f"STREAM.INFO.{token(chosen)}", {"subjects_filter": pattern, "offset": len(found)}
            )
            page = answer["state"].get("subjects") or {}
            found |= page
            if not page or len(found) >= answer.get("total", 0):
                break
        return found

    found = run(work, while_read=True)
    ordered = sorted(found.items(), key=lambda item: item[0] if by_name else (-item[1], item[0]))
    if as_json:
        print_json([subject for subject, _ in ordered] if names else dict(ordered))
    elif names:
        print_names(subject for subject, _ in ordered)
    else:
        print_table(("subject", "messages"), ordered, totals=(f"{len(ordered):,} subjects", sum(found.values())))


@application.command()
def rm(name: StreamArgument = "", force: ForceOption = False, as_json: JsonOption = False) -> None:
    """Delete a stream with all its messages and consumers."""

    async def work(api: "Api") -> str:
        found = await _info(api, name, force=force)
        chosen = str(found["config"]["name"])
        confirm(f"Really delete {chosen} ({found['state']['messages']:,} messages)?", force=force)
        await api.request(f"STREAM.DELETE.{token(chosen)}")
        return chosen

    deleted = run(work)
    if as_json:
        print_json({"stream": deleted, "deleted": True})
    else:
        print_note(f"Deleted stream {deleted}")


@application.command()
def purge(
    name: StreamArgument = "",
    subject: Annotated[str | None, typer.Option(help="Only messages of this subject; may have wildcards.")] = None,
    sequence: Annotated[int | None, typer.Option("--seq", min=1, help="Only messages before this sequence.")] = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Keep this many of the newest messages.")] = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete all or some messages of a stream."""
    if sequence is not None and keep is not None:
        raise typer.BadParameter("--seq and --keep exclude each other")
    if subject == "":
        # An empty variable of a script: to servers no filter is all messages.
        raise typer.BadParameter("--subject is empty: leave it out to purge all messages")

    async def work(api: "Api") -> dict[str, Any]:
        chosen = await choose_stream(api, name, force=force)
        confirm(f"Really purge the stream {chosen}?", force=force)
        answer = await api.request(
            f"STREAM.PURGE.{token(chosen)}", given({"filter": subject, "seq": sequence, "keep": keep})
        )
        return {"stream": chosen, "purged": answer["purged"]}

    answer = run(work)
    if as_json:
        print_json(answer)
    else:
        print_note(f"{answer['purged']:,} messages of {answer['stream']} are deleted")


@application.command()
def seal(name: StreamArgument = "", force: ForceOption = False, as_json: JsonOption = False) -> None:
    """Seal a stream: no message can be added or removed. This cannot be undone."""

    async def work(api: "Api") -> str:
        found = await _info(api, name, force=force)
        chosen = str(found["config"]["name"])
        confirm(f"Really seal the stream {chosen}? This cannot be undone.", force=force)
        await api.request(f"STREAM.UPDATE.{chosen}", found["config"] | {"sealed": True})
        return chosen

    sealed = run(work)
    if as_json:
        print_json({"stream": sealed, "sealed": True})
    else:
        print_note(f"Sealed stream {sealed}")


SORTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda info: info["config"]["name"],
    "messages": lambda info: -info["state"]["messages"],
    "bytes": lambda info: -info["state"]["bytes"],
    "consumers": lambda info: -info["state"].get("consumer_count", 0),
}


@application.command()
def report(
    subject: SubjectOption = "",
    sort: Annotated[str, typer.Option(help="name, messages, bytes or consumers.")] = "bytes",
    everything: AllOption = True,
    as_json: JsonOption = False,
) -> None:
    """Compare all streams, with totals."""
    if sort not in SORTS:
        raise typer.BadParameter(f"--sort is {sort!r}: it must be one of {', '.join(SORTS)}")
    found = sorted(
        (info for info in run(lambda api: api.streams(subject)) if everything or not _is_internal(info)),
        key=SORTS[sort],
    )
    if as_json:
        print_json(found)
        return
    rows: list[tuple[Cell, ...]] = [
        (
            info["config"]["name"],
            info["config"].get("storage"),
            info["config"].get("num_replicas", 1),
            info["state"].get("consumer_count", 0),
            info["state"]["messages"],
            Bytes(info["state"]["bytes"]),
            info["state"].get("num_subjects", 0),
            info["state"].get("num_deleted", 0),
            (info.get("cluster") or {}).get("leader"),
        )
        for info in found
    ]
    sums = [sum(int(row[column] or 0) for row in rows) for column in (3, 4, 5, 6, 7)]
    totals = (f"{len(rows)} streams", None, None, sums[0], sums[1], Bytes(sums[2]), sums[3], sums[4], None)
    columns = ("stream", "storage", "replicas", "consumers", "messages", "bytes", "subjects", "deleted", "leader")
    print_table(columns, rows, totals=totals)


@application.command()
def fork(
    origin: Annotated[str, typer.Argument(help="The stream, and with @ the last sequence wanted: ORDERS@1000.")],
    name: Annotated[str, typer.Argument(help="Name of the new stream.")],
    subject: Annotated[list[str] | None, typer.Option(help="Subject of the new stream; its name unless given.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Create a writable copy of a stream as of a sequence; both share their files until one changes."""
    from jetlake.client import streams

    origin_name, _, sequence = origin.partition("@")
    if sequence and not sequence.isdecimal():
        raise typer.BadParameter(f"{sequence!r} is not a sequence; write ORDERS@1000, or ORDERS for all of it")
    with refusals():
        wanted = streams.fork(current().access(), origin_name, name, last_sequence=int(sequence or 0), subjects=subject)
        answer = asyncio.run(wanted)
    outlive_readers()
    if as_json:
        print_json(answer)
        return
    state = answer["state"]
    facts = {
        "stream": name,
        "copy of": origin_name,
        "messages": state["messages"],
        "last sequence": state["last_seq"],
        "subjects": ", ".join(answer["config"].get("subjects", [])),
    }
    print_facts("", {"": facts})


application.command("add")(stream_change.add)
application.command("create", hidden=True)(stream_change.add)
application.command("new", hidden=True)(stream_change.add)
application.command("edit")(stream_change.edit)
application.command("update", hidden=True)(stream_change.edit)
application.command("copy")(stream_change.copy)
application.command("cp", hidden=True)(stream_change.copy)
application.command("view")(stream_messages.view)
application.command("get")(stream_messages.get)
application.command("rm-msg")(stream_messages.rm_msg)
application.command("rmm", hidden=True)(stream_messages.rm_msg)
application.command("backup")(stream_archive.backup)
application.command("snapshot", hidden=True)(stream_archive.backup)
application.command("restore")(stream_archive.restore)
application.command("verify")(stream_archive.verify)
application.command("graph")(stream_graph.graph)
application.command("list", hidden=True)(list_all)
application.command("l", hidden=True)(list_all)
application.command("i", hidden=True)(info)
application.command("delete", hidden=True)(rm)
application.command("del", hidden=True)(rm)


async def _info(api: "Api", name: str, *, force: bool = False) -> dict[str, Any]:
    return await api.request(f"STREAM.INFO.{token(await choose_stream(api, name, force=force))}")


def _is_internal(found: dict[str, Any]) -> bool:
    return str(found["config"]["name"]).startswith(INTERNAL)
