"""`jetlake pub`: send messages, to subscribers or to a stream that acknowledges them."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple
from uuid import uuid4

import msgspec
import typer

from jetlake.cli.message_text import filled, payload_of, read_bodies, read_headers
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, print_json, print_note, progress_bar
from jetlake.cli.run import run
from jetlake.errors import ApiError, ClientError
from jetlake.presentation.quantities import SECOND, shown_duration
from jetlake.shared.subjects import publishable

if TYPE_CHECKING:
    from jetlake.client.api import Api


class SendOn(StrEnum):
    """When what standard input brings is sent."""

    EOF = "eof"
    NEWLINE = "newline"


ATOMIC_MAX = 1000
"""Messages of an atomic batch that servers accept unless they are configured otherwise."""

SHOWN_MAX = 20
"""Lines of what was sent; more are summed up."""


@dataclass
class Sent:
    """What became of the messages: each of the first ones, and sums."""

    outcomes: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    count_bytes: int = 0

    def add(self, outcome: dict[str, Any], *, keep: bool) -> None:
        """Count a message; `keep` remembers it however many there are."""
        self.count += 1
        self.count_bytes += outcome["bytes"]
        if keep or self.count <= SHOWN_MAX:
            self.outcomes.append(outcome)


HeaderOption = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", help="A header, Name:Value; may be repeated.", metavar="NAME:VALUE"),
]
TemplatesOption = Annotated[bool, typer.Option(help="Fill in {{Count}}, {{Time}}, {{ID}} and other templates.")]
SendOnOption = Annotated[SendOn, typer.Option(help="Standard input is one message, or each line is.")]
StdinOption = Annotated[bool, typer.Option("--force-stdin", help="Read standard input even if a body is given.")]
SleepOption = Annotated[int, typer.Option(parser=parse_duration, metavar="TIME", help="Wait between two messages.")]


def pub(
    subject: Annotated[str, typer.Argument(help="Subject to publish to; templates are filled in.")],
    body: Annotated[
        str | None, typer.Argument(help="Payload; standard input unless given.", show_default=False)
    ] = None,
    reply: Annotated[str, typer.Option(help="The subject to reply to.")] = "",
    header: HeaderOption = None,
    count: Annotated[int, typer.Option(min=1, help="Number of messages to send.")] = 1,
    sleep: SleepOption = 0,
    jetstream: Annotated[
        bool, typer.Option("--jetstream", "-J", help="Wait for the stream's acknowledgement.")
    ] = False,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="Store all messages or none, as one batch; the stream must allow it.")
    ] = False,
    schedule_after: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Publish to --schedule-dest after this time.")
    ] = 0,
    schedule_at: Annotated[str, typer.Option(help="Publish to --schedule-dest at this time, RFC 3339.")] = "",
    schedule_every: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Publish to --schedule-dest at this interval.")
    ] = 0,
    schedule_cron: Annotated[str, typer.Option(help="Publish to --schedule-dest by this cron line of 6 fields.")] = "",
    schedule_dest: Annotated[str, typer.Option(help="Subject that a scheduled message is published to.")] = "",
    schedule_ttl: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="How long a published message lives.")
    ] = 0,
    templates: TemplatesOption = True,
    send_on: SendOnOption = SendOn.EOF,
    force_stdin: StdinOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing when all is well.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Publish messages.

    In bodies, subjects and headers {{Count}} is the number of the message, {{ID}} a unique id, {{Time}}, {{TimeStamp}},
    {{Unix}} and {{UnixNano}} the time, {{Random 10 100}} random letters.
    """
    schedule = schedule_headers(
        Schedule(schedule_after, schedule_at, schedule_every, schedule_cron, schedule_dest, schedule_ttl)
    )
    bodies = read_bodies(body, by_line=send_on is SendOn.NEWLINE, force=force_stdin)
    total = count * len(bodies)
    if atomic and total > ATOMIC_MAX:
        raise typer.BadParameter(f"a batch has at most {ATOMIC_MAX:,} messages, and these are {total:,}")
    batch = uuid4().hex if atomic else ""

    async def work(api: "Api") -> Sent:
        sent = Sent()
        with progress_bar("publishing", total) as advance:
            for number in range(total):
                if number and sleep:
                    await asyncio.sleep(sleep / SECOND)
                payload = payload_of(bodies[number % len(bodies)], number + 1, templates=templates)
                target = publishable(filled(subject, number + 1) if templates else subject)
                headers = {**(read_headers(header, number + 1) or {}), **schedule} or None
                outcome: dict[str, Any] = {"subject": target, "bytes": len(payload)}
                if atomic:
                    outcome |= await add_to_batch(api, target, payload, headers, (batch, number + 1, total))
                elif jetstream or schedule:
                    outcome |= await store(api, target, payload, headers)
                else:
                    await api.connection.publish(target, payload, reply=reply, headers=headers)
                sent.add(outcome, keep=as_json)
                advance(1)
        await api.flush()
        return sent

    sent = run(work)
    if as_json:
        print_json(sent.outcomes)
    elif not quiet:
        show(sent)


class Schedule(NamedTuple):
    """When a message is published, as the line says; times in nanoseconds."""

    after: int
    at: str
    every: int
    cron: str
    destination: str
    ttl: int


def schedule_headers(schedule: Schedule) -> dict[str, str]:
    """Return the headers that make a stream publish a message later; none without a schedule."""
    ways = [schedule.after, schedule.at, schedule.every, schedule.cron]
    if not any(ways):
        if schedule.destination or schedule.ttl:
            raise typer.BadParameter(
                "--schedule-dest and --schedule-ttl need a time: --schedule-after, -at, -every or -cron"
            )
        return {}
    if sum(map(bool, ways)) > 1:
        raise typer.BadParameter("give one of --schedule-after, --schedule-at, --schedule-every and --schedule-cron")
    if not schedule.destination:
        raise typer.BadParameter("a scheduled message needs --schedule-dest, the subject it is published to")
    when = schedule.cron
    if schedule.every:
        when = f"@every {_whole_seconds('--schedule-every', schedule.every)}"
    if schedule.after or schedule.at:
        moment = schedule.at or (datetime.now(UTC) + timedelta(microseconds=schedule.after / 1000)).isoformat()
        when = f"@at {moment.replace('+00:00', 'Z')}"
    headers = {"Nats-Schedule": when, "Nats-Schedule-Target": schedule.destination}
    return headers | ({"Nats-Schedule-TTL": _whole_seconds("--schedule-ttl", schedule.ttl)} if schedule.ttl else {})


def _whole_seconds(flag: str, time_ns: int) -> str:
    """Return a time as servers count it. Raises `BadParameter` for one that they would change."""
    if time_ns < SECOND or time_ns % SECOND:
        shown = shown_duration(time_ns) if time_ns > 0 else "-1"
        raise typer.BadParameter(f"{flag} is {shown}: it must be whole seconds, and at least 1s")
    return f"{time_ns // SECOND}s"


async def add_to_batch(
    api: "Api", subject: str, payload: bytes, headers: dict[str, str] | None, place: tuple[str, int, int]
) -> dict[str, Any]:
    """Send one message of an atomic batch; the last one commits it and returns what was stored."""
    batch, number, total = place
    fields = {**(headers or {}), "Nats-Batch-Id": batch, "Nats-Batch-Sequence": str(number)}
    if number == total:
        return await store(api, subject, payload, fields | {"Nats-Batch-Commit": "1"})
    if number > 1:
        await api.connection.publish(subject, payload, headers=fields)
        return {}
    # The first one is answered: with nothing, or with a refusal of the whole batch.
    answer = await _acknowledged(api, subject, payload, fields)
    if answer:
        _read_acknowledgement(answer, subject)
    return {}


async def store(api: "Api", subject: str, payload: bytes, headers: dict[str, str] | None) -> dict[str, Any]:
    """Publish to a stream and return its acknowledgement. Raises `ClientError`."""
    return _read_acknowledgement(await _acknowledged(api, subject, payload, headers), subject)


async def _acknowledged(api: "Api", subject: str, payload: bytes, headers: dict[str, str] | None) -> bytes:
    from nats.errors import NoRespondersError

    try:
        message = await api.connection.request(subject, payload, timeout=api.access.timeout_s, headers=headers)
    except NoRespondersError as error:
        raise ClientError(
            f"no stream is listening on subject {subject!r}; create one with `jetlake stream add`, "
            "or leave out --jetstream"
        ) from error
    except TimeoutError as error:
        raise ClientError(f"no stream acknowledged {subject!r} within {api.access.timeout_s:g} s") from error
    return message.data


def _read_acknowledgement(data: bytes, subject: str) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"the reply to {subject!r} did not come from a stream") from error
    refusal = answer.get("error")
    if isinstance(refusal, dict):
        raise ApiError(
            int(refusal.get("code", 0)), int(refusal.get("err_code", 0)), str(refusal.get("description", "refused"))
        )
    return {
        "stream": answer.get("stream", ""),
        "sequence": answer.get("seq", 0),
        "duplicate": bool(answer.get("duplicate", False)),
    }


def show(sent: Sent) -> None:
    """Print what became of the messages."""
    for message in sent.outcomes[:SHOWN_MAX]:
        text = f'Published {message["bytes"]:,} bytes to "{message["subject"]}"'
        if "stream" in message:
            text = f"Stored in {message['stream']} as {message['sequence']:,}: {message['bytes']:,} bytes"
            text += f' of "{message["subject"]}"' + (" (a duplicate)" if message["duplicate"] else "")
        print_note(text)
    if sent.count > SHOWN_MAX:
        print_note(f"and {sent.count - SHOWN_MAX:,} more, {sent.count_bytes:,} bytes in all")
