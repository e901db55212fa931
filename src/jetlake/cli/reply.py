"""`jetlake reply`: answer requests, with a text, an echo or what a command prints."""

import asyncio
import os
import re
import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.message_text import filled, print_payload, read_headers
from jetlake.cli.output import print_note
from jetlake.cli.pub import HeaderOption, SleepOption
from jetlake.cli.run import run
from jetlake.errors import reason_of
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from jetlake.client.api import Api

QUEUE = "NATS-RPLY-22"
"""The group that NATS' own command line answers in: the two share the work."""

COMMAND_S_MAX = 60.0
"""For a command that answers one request."""


def reply(
    subject: Annotated[str, typer.Argument(help="Subject to answer; may have wildcards.")],
    body: Annotated[str, typer.Argument(help="The answer; templates are filled in, {{Request}} too.")] = "",
    echo: Annotated[bool, typer.Option("--echo", help="Answer with the request.")] = False,
    command: Annotated[
        str,
        typer.Option(
            help="Answer with what this command prints. {{1}} is the first token of the subject that a wildcard took, "
            "{{Request}} the request; NATS_REQUEST_SUBJECT and NATS_REQUEST_BODY are set."
        ),
    ] = "",
    queue: Annotated[str, typer.Option("--queue", "-q", help="Queue group that shares the requests.")] = QUEUE,
    header: HeaderOption = None,
    sleep: SleepOption = 0,
    count: Annotated[int, typer.Option(min=0, help="Stop after N requests (0: run until interrupted).")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print the requests.")] = False,
) -> None:
    """Answer requests until Ctrl-C."""
    check_answer(command, is_given=bool(body or echo))

    async def work(api: "Api") -> None:
        subscription = await api.connection.subscribe(subject, queue=queue)
        await api.flush()
        if not quiet:
            print_note(f'Listening on "{subject}" in group "{queue}"')
        answered = 0
        async for message in subscription.messages:
            if not message.reply:
                continue
            answered += 1
            if not quiet:
                typer.echo(f'[#{answered}] Received on subject "{message.subject}":')
                print_payload(message.data)
            if sleep:
                await asyncio.sleep(sleep / SECOND)
            payload = await answer(message, answered)
            await api.connection.publish(message.reply, payload, headers=read_headers(header, answered))
            if count and answered >= count:
                break
        await api.flush()

    async def answer(message: "Msg", number: int) -> bytes:
        if echo:
            return message.data
        request = message.data.decode(errors="replace")
        if not command:
            return with_request(filled(body, number), message.subject, request).encode()
        return await printed(command, number, message.subject, request)

    run(work, reconnect=True)


def with_request(text: str, subject: str, request: str) -> str:
    """Return a text with the request and tokens of its subject put in: {{1}} is the second one, as in `weather.*`."""
    tokens = subject.split(".")

    def token(found: re.Match[str]) -> str:
        number = int(found[1])
        return tokens[number] if number < len(tokens) else ""

    text = re.sub(r"\{\{\s*(\d{1,4})\s*\}\}", token, text)
    return re.sub(r"\{\{\s*\.?Request\s*\}\}", lambda _found: request, text)


def check_answer(command: str, *, is_given: bool) -> None:
    """Refuse to answer with nothing, and a command that cannot be run, or whose program the requests would choose."""
    if not command:
        if not is_given:
            raise typer.BadParameter("nothing to answer with: give a body, --echo or --command")
        return
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise typer.BadParameter(f"--command cannot be taken apart into words: {error}") from error
    if not words or "{{" in words[0]:
        raise typer.BadParameter("--command must name its program itself: a request must not choose what is run")


async def printed(command: str, number: int, subject: str, request: str) -> bytes:
    """Run a command and return what it prints; what goes wrong is the answer, so that the one who asks sees it."""
    words = [filled(word, number) for word in shlex.split(command)]
    given, words = words, [with_request(word, subject, request) for word in words]
    if any(word.startswith("-") and not before.startswith("-") for word, before in zip(words, given, strict=True)):
        # A request is a value: as an option it could make the command do something else.
        return b"refused: a request must not begin with '-', where the command would take it for an option"
    environment = os.environ | {"NATS_REQUEST_SUBJECT": subject, "NATS_REQUEST_BODY": request}
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            env=environment,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        return f"cannot run {words[0]!r}: {reason}".encode()
    try:
        output, _ = await asyncio.wait_for(process.communicate(), COMMAND_S_MAX)
    except TimeoutError:
        process.kill()
        await process.wait()
        return f"{words[0]!r} did not end within {COMMAND_S_MAX:g} s".encode()
    return output
