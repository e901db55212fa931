"""`jetlake stream view`, `get` and `rm-msg`: single messages of a stream."""

import base64
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choose import StreamArgument, choose_stream
from jetlake.cli.message_text import data_facts, print_headers, print_payload, translated
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import ForceOption, JsonOption, confirm, is_terminal, print_json, print_note
from jetlake.cli.received import Manner
from jetlake.cli.received import show as show_message
from jetlake.cli.run import run
from jetlake.client.api import encoded, token
from jetlake.errors import ClientError
from jetlake.presentation.timestamps import before_now

if TYPE_CHECKING:
    from jetlake.client.api import Api

PAGE = 10

DIRECT_HEADERS = ("Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Num-Pending")
"""What a server adds to the headers of a message that it gives directly."""

TranslateOption = Annotated[str, typer.Option(help="Shell command that each payload is piped through.")]


def view(
    name: StreamArgument = "",
    size: Annotated[int, typer.Argument(min=1, help="Messages per page.")] = PAGE,
    sequence: Annotated[int, typer.Option("--id", min=0, help="Start with this sequence.")] = 0,
    since: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Start with messages younger than this.")
    ] = 0,
    subject: Annotated[str, typer.Option(help="Only messages of this subject; may have wildcards.")] = "",
    raw: Annotated[bool, typer.Option("--raw", help="Print payloads only.")] = False,
    translate: TranslateOption = "",
    as_json: JsonOption = False,
) -> None:
    """Show messages, oldest first, page by page on a terminal, one page elsewhere. Consumers notice nothing."""
    from jetlake.client.pulls import Start, read

    moment = before_now(since) if since else ""
    manner = Manner(raw=raw, translate=translate, as_json=as_json)

    async def work(api: "Api") -> None:
        chosen = await choose_stream(api, name)
        number = 0
        start = Start(sequence=sequence, time=moment)
        filters = [subject] if subject else []
        async with aclosing(read(api, chosen, subjects=filters, start=start, to_end=True)) as messages:
            async for message in messages:
                if number and number % size == 0 and not _wants_more():
                    return
                number += 1
                show_message(message, number, manner)
        if not number:
            print_note(f"{chosen} has no such messages")

    run(work, while_read=True)


def get(
    name: StreamArgument = "",
    sequence: Annotated[int, typer.Argument(min=0, help="Its sequence.", show_default=False)] = 0,
    last_for: Annotated[str, typer.Option("--last-for", "-S", help="The last one of this subject.")] = "",
    direct: Annotated[
        bool, typer.Option("--direct", help="Use a direct get, which mirrors may answer; the stream must allow it.")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print the payload only.")] = False,
    translate: TranslateOption = "",
    as_json: JsonOption = False,
) -> None:
    """Print one message, by its sequence or the last one of a subject."""
    if bool(sequence) == bool(last_for):
        raise typer.BadParameter("give a sequence, or --last-for SUBJECT")

    async def work(api: "Api") -> dict[str, Any]:
        chosen = await choose_stream(api, name)
        body: dict[str, Any] = {"last_by_subj": last_for} if last_for else {"seq": sequence}
        answer = await _direct(api, chosen, body) if direct else await api.find(f"STREAM.MSG.GET.{token(chosen)}", body)
        if answer is None:
            which = f"message of {last_for!r}" if last_for else f"message {sequence:,}"
            raise ClientError(f"{chosen} has no {which}")
        message: dict[str, Any] = answer["message"]
        return message

    message = run(work)
    payload = base64.b64decode(message.get("data", ""))
    if translate:
        payload = translated(payload, translate, message["subject"])
    headers = _headers(base64.b64decode(message.get("hdrs", "")))
    if as_json:
        facts = {"subject": message["subject"], "sequence": message["seq"], "time": message["time"]}
        print_json(facts | ({"headers": headers} if headers else {}) | data_facts(payload))
        return
    if not raw:
        print_note(f"{message['subject']} / seq: {message['seq']} / {message['time']}", style="cyan")
        print_headers(headers)
        if headers:
            typer.echo()
    print_payload(payload)


async def _direct(api: "Api", stream: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """Return one message by a direct get, as STREAM.MSG.GET would answer; None if there is none."""
    from nats.errors import NoRespondersError

    subject = api.access.api_subject(f"DIRECT.GET.{token(stream)}")
    try:
        answer = await api.connection.request(subject, encoded(body), timeout=api.access.timeout_s)
    except NoRespondersError as error:
        raise ClientError(
            f"stream {stream} does not allow direct gets; `jetlake stream edit {stream} --allow-direct` changes that"
        ) from error
    headers = dict(answer.headers or {})
    if "Nats-Sequence" not in headers:
        return None
    own = {name: value for name, value in headers.items() if name not in DIRECT_HEADERS}
    block = "".join(f"{name}: {value}\r\n" for name, value in own.items())
    message = {
        "subject": headers["Nats-Subject"],
        "seq": int(headers["Nats-Sequence"]),
        "time": headers["Nats-Time-Stamp"],
        "data": base64.b64encode(answer.data).decode(),
        "hdrs": base64.b64encode(f"NATS/1.0\r\n{block}\r\n".encode()).decode() if own else "",
    }
    return {"message": message}


def rm_msg(
    name: StreamArgument = "",
    sequence: Annotated[int, typer.Argument(min=0, help="Its sequence.", show_default=False)] = 0,
    no_erase: Annotated[bool, typer.Option("--no-erase", help="Delete without overwriting the bytes on disk.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete one message; its bytes are overwritten on the disk."""
    if not sequence:
        raise typer.BadParameter("give the sequence of the message")

    async def work(api: "Api") -> str:
        chosen = await choose_stream(api, name, force=force)
        confirm(f"Really delete message {sequence:,} of {chosen}?", force=force)
        body = {"seq": sequence} | ({"no_erase": True} if no_erase else {})
        await api.request(f"STREAM.MSG.DELETE.{token(chosen)}", body)
        return chosen

    chosen = run(work)
    if as_json:
        print_json({"stream": chosen, "sequence": sequence, "deleted": True})
    else:
        print_note(f"Deleted message {sequence:,} of {chosen}")


def _wants_more() -> bool:
    """Ask for the next page; elsewhere than on a terminal there is none."""
    return sys.stdin.isatty() and is_terminal() and typer.confirm("Next page?", default=True)


def _headers(block: bytes) -> dict[str, str]:
    lines = block.decode(errors="replace").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {key: value.strip() for key, _, value in pairs}
