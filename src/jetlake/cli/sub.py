"""`jetlake sub`: print the messages that come, live or from a stream."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.message_text import is_stored
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, is_terminal, print_note
from jetlake.cli.received import Counted, Drawn, Manner, Printed, Receiver
from jetlake.cli.run import run
from jetlake.errors import ClientError
from jetlake.presentation.quantities import SECOND
from jetlake.presentation.timestamps import before_now
from jetlake.shared.subjects import matches

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.client.api import Api
    from jetlake.client.pulls import Start

QUEUED_MAX = 100_000
"""Messages that wait to be printed; what comes faster than it can be read is lost, as with every subscriber."""


def sub(
    subjects: Annotated[list[str] | None, typer.Argument(help="Subject to subscribe to; may have wildcards.")] = None,
    queue: Annotated[str, typer.Option(help="Join this queue group.")] = "",
    raw: Annotated[bool, typer.Option("--raw", "-r", help="Print payloads only.")] = False,
    headers_only: Annotated[bool, typer.Option("--headers-only", help="Print no payloads.")] = False,
    subjects_only: Annotated[bool, typer.Option("--subjects-only", help="Print subjects only.")] = False,
    timestamp: Annotated[bool, typer.Option("--timestamp", "-t", help="Print the time each message arrived.")] = False,
    count: Annotated[int, typer.Option(min=0, help="Stop after N messages (0: run until interrupted).")] = 0,
    wait: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Stop after this long without a message.")
    ] = 0,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge JetStream messages.")] = False,
    inbox: Annotated[bool, typer.Option("--inbox", "-i", help="Subscribe to a new inbox.")] = False,
    ignore_subject: Annotated[
        list[str] | None, typer.Option("--ignore-subject", "-I", help="Do not print these; may have wildcards.")
    ] = None,
    translate: Annotated[str, typer.Option(help="Shell command that each payload is piped through.")] = "",
    dump: Annotated[Path | None, typer.Option(help="Write each payload to a file in this folder.")] = None,
    report_subjects: Annotated[
        bool, typer.Option("--report-subjects", help="Count messages by subject instead of printing them.")
    ] = False,
    report_top: Annotated[int, typer.Option(min=1, help="Number of subjects to report.")] = 10,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw the rate of messages and bytes instead of printing them.")
    ] = False,
    stream: Annotated[str, typer.Option(help="Read from this stream.")] = "",
    durable: Annotated[str, typer.Option(help="Use this existing consumer of the stream.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="From a stream: all messages, then new ones.")] = False,
    new: Annotated[bool, typer.Option("--new", help="From a stream: new messages only.")] = False,
    last: Annotated[bool, typer.Option("--last", help="From a stream: the last message, then new ones.")] = False,
    last_per_subject: Annotated[
        bool, typer.Option("--last-per-subject", help="From a stream: the last message of each subject, then new ones.")
    ] = False,
    since: Annotated[
        int,
        typer.Option(
            parser=parse_duration, metavar="TIME", help="From a stream: messages younger than this, then new ones."
        ),
    ] = 0,
    start_sequence: Annotated[int, typer.Option(min=0, help="From a stream: from this sequence on.")] = 0,
    terminate_at_end: Annotated[
        bool, typer.Option("--terminate-at-end", "-T", help="From a stream: stop when all were read.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Subscribe and print messages until Ctrl-C.

    With --stream, --durable, --all, --new, --last, --last-per-subject, --since or --start-sequence messages are read
    from the stream that stores them. With --json each message is one line.
    """
    if not (subjects or inbox or stream):
        raise typer.BadParameter("nothing to listen to: give a subject, --inbox or --stream")
    if graph and report_subjects:
        raise typer.BadParameter("--graph and --report-subjects exclude each other: give one of them")
    manner = Manner(
        raw=raw,
        headers_only=headers_only,
        subjects_only=subjects_only,
        timestamp=timestamp,
        translate=translate,
        dump=dump,
        as_json=as_json,
    )
    receiver = _receiver(
        manner, report_top if report_subjects else 0, graph=graph, name=", ".join(subjects or [stream])
    )
    from_stream = bool(stream or durable or everything or new or last or last_per_subject or since or start_sequence)

    def source(api: "Api") -> AsyncGenerator["Msg", None]:
        if not from_stream:
            return live(api, [*(subjects or []), *([api.connection.new_inbox()] if inbox else [])], queue)
        from jetlake.client.pulls import Start

        moment = before_now(since) if since else ""
        start = Start(sequence=start_sequence, time=moment, new=new, last=last, last_per_subject=last_per_subject)
        return stored(api, subjects or [], stream, durable, start, to_end=terminate_at_end, count=count)

    async def work(api: "Api") -> None:
        number = 0
        async with receiver, aclosing(source(api)) as given:
            async for message in within(given, wait / SECOND if wait else None):
                if any(matches(pattern, message.subject) for pattern in ignore_subject or []):
                    continue
                number += 1
                receiver.receive(message, number)
                if (ack or durable) and is_stored(message):
                    await message.ack()
                if count and number >= count:
                    break
        if ack or durable:
            await api.flush()

    run(work, reconnect=True)


def _receiver(manner: Manner, top: int, *, graph: bool, name: str) -> Receiver:
    """Return what becomes of the messages."""
    if top:
        return Counted(top)
    return Drawn(name or "inbox") if graph else Printed(manner)


async def live(api: "Api", subjects: list[str], queue: str) -> AsyncGenerator["Msg", None]:
    """Yield the messages of subjects as they are published."""
    from nats.aio.msg import Msg

    arrived: asyncio.Queue[Msg] = asyncio.Queue(QUEUED_MAX)

    async def receive(message: Msg) -> None:
        await arrived.put(message)

    for subject in subjects:
        await api.connection.subscribe(subject, queue=queue, cb=receive)
    await api.flush()
    if is_terminal():
        print_note(f"Listening on {', '.join(subjects)}", style="dim")
    while True:
        yield await arrived.get()


async def stored(
    api: "Api", subjects: list[str], stream: str, durable: str, start: "Start", *, to_end: bool, count: int
) -> AsyncGenerator["Msg", None]:
    """Yield the messages that a stream keeps: of the one named, or of the one that takes the subject."""
    from jetlake.client.pulls import BATCH, pull, read

    if not stream:
        if len(subjects) != 1:
            raise ClientError("one subject says which stream is meant; with several of them, or none, give --stream")
        names = await api.stream_names(subjects[0])
        if len(names) != 1:
            found = ", ".join(names) or "none"
            raise ClientError(f"streams with {subjects[0]!r}: {found}; choose one with --stream")
        stream = names[0]
    given = 0
    while durable:
        # Never more than will be acknowledged: the rest would be away from others until it is delivered again.
        batch = min(BATCH, count - given) if count else BATCH
        async with aclosing(pull(api, stream, durable, batch=max(1, batch), no_wait=to_end)) as messages:
            async for message in messages:
                given += 1
                yield message
        if to_end:
            return
    async with aclosing(read(api, stream, subjects=subjects, start=start, to_end=to_end)) as messages:
        async for message in messages:
            yield message


async def within(messages: AsyncGenerator["Msg", None], wait_s: float | None) -> AsyncGenerator["Msg", None]:
    """Yield messages until none has come for this long."""
    while True:
        try:
            yield await asyncio.wait_for(anext(messages), wait_s)
        except (TimeoutError, StopAsyncIteration):
            return
