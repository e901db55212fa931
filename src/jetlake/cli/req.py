"""`jetlake req`: ask, and print what is answered."""

import asyncio
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.message_text import (
    filled,
    message_facts,
    payload_of,
    print_headers,
    print_payload,
    read_bodies,
    read_headers,
    translated,
)
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, print_json
from jetlake.cli.pub import HeaderOption, SendOn, SendOnOption, StdinOption, TemplatesOption
from jetlake.cli.run import run
from jetlake.errors import ClientError
from jetlake.presentation.quantities import SECOND, shown_duration
from jetlake.shared.subjects import publishable

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.client.api import Api

REPLY_TIMEOUT_NS = 300_000_000
NO_RESPONDERS = "503"


def req(
    subject: Annotated[str, typer.Argument(help="Subject to send the request to.")],
    body: Annotated[
        str | None, typer.Argument(help="Payload; standard input unless given.", show_default=False)
    ] = None,
    header: HeaderOption = None,
    count: Annotated[int, typer.Option(min=1, help="Number of requests to send.")] = 1,
    replies: Annotated[int, typer.Option(min=0, help="Number of replies to wait for (0: all until the timeout).")] = 1,
    reply_timeout: Annotated[
        int,
        typer.Option(
            parser=parse_duration, metavar="TIME", help="Longest wait between two replies.", show_default="300ms"
        ),
    ] = REPLY_TIMEOUT_NS,
    wait_for_empty: Annotated[bool, typer.Option("--wait-for-empty", help="Stop at an empty reply.")] = False,
    raw: Annotated[bool, typer.Option("--raw", "-r", help="Print payloads only.")] = False,
    translate: Annotated[str, typer.Option(help="Shell command that each payload is piped through.")] = "",
    templates: TemplatesOption = True,
    send_on: SendOnOption = SendOn.EOF,
    force_stdin: StdinOption = False,
    as_json: JsonOption = False,
) -> None:
    """Send requests and print the answers. Ends with 1 when nobody answers."""
    bodies = read_bodies(body, by_line=send_on is SendOn.NEWLINE, force=force_stdin)
    wanted = 0 if wait_for_empty else replies
    shown: list[dict[str, Any]] = []

    def show(message: "Msg", elapsed_ns: int) -> None:
        payload = translated(message.data, translate, message.subject) if translate else message.data
        if as_json:
            shown.append(message_facts(message) | {"round_trip_ns": elapsed_ns})
            return
        if not raw:
            typer.echo(f"Received with rtt {shown_duration(elapsed_ns)}")
            print_headers(message.headers)
        print_payload(payload)

    async def work(api: "Api") -> None:
        for number in range(count * len(bodies)):
            payload = payload_of(bodies[number % len(bodies)], number + 1, templates=templates)
            target = publishable(filled(subject, number + 1) if templates else subject)
            begin_ns = time.monotonic_ns()
            received = 0
            async for message in answers(
                api, target, payload, read_headers(header, number + 1), wanted, reply_timeout / SECOND
            ):
                if wait_for_empty and not message.data:
                    received += 1
                    break
                received += 1
                show(message, time.monotonic_ns() - begin_ns)
            if not received:
                raise ClientError(f"nobody answered {target!r} within {api.access.timeout_s:g} s")

    run(work)
    if as_json:
        print_json(shown)


async def answers(
    api: "Api", subject: str, payload: bytes, headers: dict[str, str] | None, wanted: int, gap_s: float
) -> Any:
    """Yield the answers to one request: `wanted` of them, or with 0 all that come in time. Raises `ClientError`."""
    from nats.errors import TimeoutError as LibraryTimeoutError

    inbox = api.connection.new_inbox()
    subscription = await api.connection.subscribe(inbox)
    await api.connection.publish(subject, payload, reply=inbox, headers=headers)
    deadline = asyncio.get_running_loop().time() + api.access.timeout_s
    received = 0
    while wanted == 0 or received < wanted:
        left_s = deadline - asyncio.get_running_loop().time()
        try:
            message = await subscription.next_msg(
                max(0.001, min(left_s, gap_s) if received and wanted != 1 else left_s)
            )
        except (LibraryTimeoutError, TimeoutError):
            break
        if not message.data and (message.headers or {}).get("Status") == NO_RESPONDERS:
            raise ClientError(f"nobody listens on {subject!r}")
        received += 1
        yield message
    await subscription.unsubscribe()
    if not received and api.complaints:
        raise ClientError(api.complaints[-1])
