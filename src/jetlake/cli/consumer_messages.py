"""`jetlake consumer next` and `sub`: take messages from a consumer."""

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choose import ConsumerArgument, NamedStream, StreamArgument, choose_consumer, choose_stream
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption
from jetlake.cli.received import Manner, show
from jetlake.cli.run import run
from jetlake.client.api import token
from jetlake.client.pulls import pull, server_status
from jetlake.errors import ClientError
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.client.api import Api

BATCH = 10
"""Messages that `sub` asks for at once: few, because those that are not printed yet are away from others."""

AckOption = Annotated[bool, typer.Option(help="Acknowledge what is printed.")]
RawOption = Annotated[bool, typer.Option("--raw", "-r", help="Print payloads only.")]


def receive(
    stream: NamedStream,
    consumer: Annotated[str, typer.Argument(help="A pull consumer.", metavar="CONSUMER")],
    count: Annotated[int, typer.Option(min=1, help="Largest number of messages to fetch.")] = 1,
    ack: AckOption = True,
    nak: Annotated[bool, typer.Option("--nak", help="Reject the message (nak): it is delivered again.")] = False,
    term: Annotated[bool, typer.Option("--term", help="Terminate the message: it is not delivered again.")] = False,
    wait: Annotated[
        int,
        typer.Option(parser=parse_duration, metavar="TIME", help="Time to wait for messages; --timeout unless given."),
    ] = 0,
    raw: RawOption = False,
    as_json: JsonOption = False,
) -> None:
    """Receive the next messages. Ends with 1 when none comes in time."""
    if nak and term:
        raise typer.BadParameter("--nak and --term exclude each other")
    manner = Manner(raw=raw, as_json=as_json)

    async def work(api: "Api") -> None:
        number = 0
        wait_s = wait / SECOND if wait else api.access.timeout_s
        async with aclosing(pull(api, stream, consumer, batch=count, expires_s=wait_s)) as messages:
            async for message in messages:
                number += 1
                show(message, number, manner)
                await answer(message, ack=ack, nak=nak, term=term)
        await api.flush()
        if not number:
            raise ClientError(f"{consumer} of {stream} had no message within {wait_s:g} s")

    run(work)


def listen(
    stream: StreamArgument = "",
    consumer: ConsumerArgument = "",
    ack: AckOption = True,
    raw: RawOption = False,
    count: Annotated[int, typer.Option(min=0, help="Stop after N messages (0: run until interrupted).")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Receive messages from a pull or push consumer, until Ctrl-C."""
    manner = Manner(raw=raw, as_json=as_json)

    async def work(api: "Api") -> None:
        chosen = await choose_stream(api, stream)
        name = await choose_consumer(api, chosen, consumer)
        config = (await api.request(f"CONSUMER.INFO.{token(chosen)}.{token(name)}"))["config"]
        number = 0
        async with aclosing(
            _sent(api, config) if config.get("deliver_subject") else _asked(api, chosen, name, count)
        ) as given:
            async for message in given:
                number += 1
                show(message, number, manner)
                if ack and config.get("ack_policy") != "none":
                    await message.ack()
                if count and number >= count:
                    break
        await api.flush()

    run(work, reconnect=True)


async def answer(message: "Msg", *, ack: bool, nak: bool, term: bool) -> None:
    """Tell the server what became of a message."""
    if not message.reply:
        return
    if nak:
        await message.nak()
    elif term:
        await message.term()
    elif ack:
        await message.ack()


async def _asked(api: "Api", stream: str, consumer: str, count: int) -> Any:
    given = 0
    while True:
        batch = max(1, min(BATCH, count - given)) if count else BATCH
        async with aclosing(pull(api, stream, consumer, batch=batch)) as messages:
            async for message in messages:
                given += 1
                yield message


async def _sent(api: "Api", config: dict[str, Any]) -> Any:
    subscription = await api.connection.subscribe(config["deliver_subject"], queue=config.get("deliver_group", ""))
    async for message in subscription.messages:
        if server_status(message) is None:
            yield message
        elif message.reply:
            # A flow control request: the server waits until it is answered.
            await api.connection.publish(message.reply, b"")
