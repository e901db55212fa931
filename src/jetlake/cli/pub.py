"""`jetlake pub`: send messages, to whoever listens or to a stream that acknowledges them."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jetlake.cli.message_text import filled, payload_of, publishable, read_bodies, read_headers
from jetlake.cli.output import JsonOption, print_json, print_note, progress_bar
from jetlake.cli.quantities import SECOND, read_duration
from jetlake.cli.run import run
from jetlake.errors import ApiError, ClientError

if TYPE_CHECKING:
    from jetlake.client.api import Api


class SendOn(StrEnum):
    """When what standard input brings is sent."""

    EOF = "eof"
    NEWLINE = "newline"


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
TemplatesOption = Annotated[bool, typer.Option(help="Fill in {{Count}}, {{Time}}, {{ID}} and the others.")]
SendOnOption = Annotated[SendOn, typer.Option(help="Standard input is one message, or each line is.")]
StdinOption = Annotated[bool, typer.Option("--force-stdin", help="Read standard input although a body is given.")]
SleepOption = Annotated[int, typer.Option(parser=read_duration, metavar="TIME", help="Wait between two messages.")]


def pub(
    subject: Annotated[str, typer.Argument(help="Where to; templates are filled in.")],
    body: Annotated[str | None, typer.Argument(help="What; standard input unless given.", show_default=False)] = None,
    reply: Annotated[str, typer.Option(help="The subject to reply to.")] = "",
    header: HeaderOption = None,
    count: Annotated[int, typer.Option(min=1, help="Send so many.")] = 1,
    sleep: SleepOption = 0,
    jetstream: Annotated[bool, typer.Option("--jetstream", "-J", help="Wait for the stream to acknowledge.")] = False,
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
    bodies = read_bodies(body, by_line=send_on is SendOn.NEWLINE, force=force_stdin)

    async def work(api: "Api") -> Sent:
        sent = Sent()
        with progress_bar("publishing", count * len(bodies)) as advance:
            for number in range(count * len(bodies)):
                if number and sleep:
                    await asyncio.sleep(sleep / SECOND)
                payload = payload_of(bodies[number % len(bodies)], number + 1, templates=templates)
                target = publishable(filled(subject, number + 1) if templates else subject)
                headers = read_headers(header, number + 1)
                outcome: dict[str, Any] = {"subject": target, "bytes": len(payload)}
                if jetstream:
                    outcome |= await store(api, target, payload, headers)
                else:
                    await api.connection.publish(target, payload, reply=reply, headers=headers)
                sent.add(outcome, keep=as_json)
                advance(1)
        await api.settle()
        return sent

    sent = run(work)
    if as_json:
        print_json(sent.outcomes)
    elif not quiet:
        show(sent)


async def store(api: "Api", subject: str, payload: bytes, headers: dict[str, str] | None) -> dict[str, Any]:
    """Publish to a stream and return its acknowledgement. Raises `ClientError`."""
    from nats.errors import NoRespondersError

    try:
        message = await api.connection.request(subject, payload, timeout=api.access.timeout_s, headers=headers)
    except NoRespondersError as error:
        raise ClientError(
            f"no stream takes {subject!r}; `jetlake stream add` makes one, or leave out --jetstream"
        ) from error
    except TimeoutError as error:
        raise ClientError(f"nobody acknowledged {subject!r} within {api.access.timeout_s:g} s") from error
    try:
        answer = msgspec.json.decode(message.data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientError(f"{subject!r} was answered by somebody who is no stream") from error
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
