"""`jetlake submit`, which puts a message into a spool, and `jetlake submission`, which delivers what is there."""

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jetlake.cli.choria_settings import CollectiveOption, ConfigOption, LineSettings, choria_settings
from jetlake.cli.invocation import current
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, print_facts, print_json
from jetlake.cli.run import fail, refusals
from jetlake.errors import ConfigurationError, reason_of
from jetlake.presentation.quantities import SECOND
from jetlake.submission.message import LOWEST_PRIORITY, PAYLOAD_BYTES_MAX, PRIORITIES
from jetlake.submission.sender import SenderOptions, run_sender
from jetlake.submission.spool import DEFAULT_MESSAGES_MAX, Spool
from jetlake.submission.statistics import SenderStatistics, prometheus_text, read
from jetlake.submission.submitting import SPOOL_VARIABLE
from jetlake.submission.submitting import submit as submit_message

application = typer.Typer(help="Deliver the messages of a spool.", no_args_is_help=True)

TTL_NS = 24 * 3600 * SECOND
TRIES = 100
STANDARD_INPUT = "-"

SpoolOption = Annotated[
    str,
    typer.Option("--spool", help=f"The folder; {SPOOL_VARIABLE} or the configuration unless given.", metavar="FOLDER"),
]
SizeOption = Annotated[
    int | None,
    typer.Option(
        "--max-spool-size",
        min=1,
        help="Largest number of waiting messages per priority, 500 unless given.",
        show_default=False,
    ),
]


def submit(
    subject: Annotated[str, typer.Argument(help="Published to <collective>.submission.in.SUBJECT.", metavar="SUBJECT")],
    payload: Annotated[str, typer.Argument(help="The file with the payload; - for standard input.", metavar="FILE")],
    reliable: Annotated[bool, typer.Option("--reliable", help="Try until a stream acknowledges it, in order.")] = False,
    priority: Annotated[
        int, typer.Option(min=0, max=LOWEST_PRIORITY, help="0 is sent first, 4 last.")
    ] = LOWEST_PRIORITY,
    ttl: Annotated[
        int, typer.Option(parser=parse_duration, metavar="TIME", help="Give up after this time.", show_default="24h")
    ] = TTL_NS,
    tries: Annotated[int, typer.Option(min=1, help="Give up after N tries.")] = TRIES,
    sender: Annotated[
        str, typer.Option(help="The name of the sending program; the user unless given.", show_default=False)
    ] = "",
    sign: Annotated[bool, typer.Option("--sign", help="Have the sender sign it.")] = False,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", help="A header; may be repeated.", metavar="NAME=VALUE")
    ] = None,
    spool: SpoolOption = "",
    max_spool_size: SizeOption = None,
    config: ConfigOption = None,
) -> None:
    """Put a message into the spool of a sender, and print its id. Needs no connection."""
    with refusals():
        settings = choria_settings(config)
        place = _spool(spool, max_spool_size, settings)
        message_id = submit_message(
            subject,
            _read_payload(payload, place.payload_bytes_max),
            spool=place,
            reliable=reliable,
            priority=priority,
            ttl_s=ttl / SECOND,
            max_tries=tries,
            sender=sender or f"user {os.geteuid()}",
            identity=settings.identity,
            headers=_read_headers(header),
            sign=sign,
        )
    typer.echo(message_id)


@application.callback()
def submission() -> None:
    """Deliver the messages of a spool.

    `jetlake submit`, any program that writes a file and Choria put messages there.
    """


@application.command()
def run(
    spool: SpoolOption = "",
    collective: CollectiveOption = "",
    max_spool_size: SizeOption = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Serve figures for Prometheus here.", show_default=False)
    ] = None,
    seed: Annotated[
        Path | None, typer.Option(help="The ed25519 seed that signs messages, in hexadecimal.", metavar="FILE")
    ] = None,
    jwt: Annotated[Path | None, typer.Option(help="The token that goes with the seed.", metavar="FILE")] = None,
    config: ConfigOption = None,
) -> None:
    """Run the sender of a spool until it is interrupted.

    Only one sender works on a spool; a second one waits for the first to end.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s", stream=sys.stderr)
    with refusals():
        settings = choria_settings(config, collective=collective)
        place = _spool(spool, max_spool_size, settings)
        options = SenderOptions(
            spool=place.folder,
            access=current().access(),
            collective=settings.collective,
            messages_max=place.messages_max,
            seed_file=seed,
            token_file=jwt,
            metrics_port=metrics_port,
        )
        asyncio.run(_run_until_signalled(options))


@application.command()
def status(
    spool: SpoolOption = "",
    config: ConfigOption = None,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="Print Prometheus' text format.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what waits in a spool, and what its sender has done. Needs no connection."""
    with refusals():
        place = _spool(spool, None, choria_settings(config))
        if not place.folder.is_dir():
            raise ConfigurationError(f"there is no spool {place.folder}: check the folder, or submit something first")
        figures = read(place.folder) or SenderStatistics()
        figures.spooled = [len(place.names(priority)) for priority in range(PRIORITIES)]
        with place.sender_lock() as is_free:
            is_running = not is_free
    figures.connected = figures.connected and is_running
    if prometheus:
        typer.echo(prometheus_text(figures), nl=False)
    elif as_json:
        print_json({"running": is_running, **_fields(figures)})
    else:
        print_facts(f"Spool {place.folder}", {"Spool": _spool_facts(figures), "Sender": _facts(figures, is_running)})


async def _run_until_signalled(options: SenderOptions) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await run_sender(options, stop=stop)


def _spool(folder: str, messages_max: int | None, settings: LineSettings) -> Spool:
    """Return the spool of a line: its own flag, its configuration, the environment, in this order."""
    chosen = folder or settings.spool or os.environ.get(SPOOL_VARIABLE, "")
    return Spool(chosen, messages_max=messages_max or settings.spool_messages_max or DEFAULT_MESSAGES_MAX)


def _read_payload(name: str, bytes_max: int) -> bytes:
    """Return the payload; no more is read than shows that it is too large."""
    assert bytes_max >= PAYLOAD_BYTES_MAX, "a message may be as large as servers take"
    try:
        if name == STANDARD_INPUT:
            return sys.stdin.buffer.read(bytes_max + 1)
        with open(name, "rb") as file:
            return file.read(bytes_max + 1)
    except FileNotFoundError as error:
        fail(f"payload {name} does not exist", error)
    except OSError as error:
        fail(f"payload {name} cannot be read: {reason_of(error)}", error)


def _read_headers(given: list[str] | None) -> dict[str, str]:
    headers = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigurationError(f"header {text!r} has no value: write NAME=VALUE")
        headers[name.strip()] = value.strip()
    return headers


def _spool_facts(figures: SenderStatistics) -> dict[str, Any]:
    return {f"Priority {number}": count for number, count in enumerate(figures.spooled)}


def _facts(figures: SenderStatistics, is_running: bool) -> dict[str, Any]:
    return {
        "Running": is_running,
        "Connected": figures.connected,
        "Delivered": figures.delivered,
        "Duplicates": figures.duplicates,
        "Published": figures.published,
        "Retries": figures.retries,
        "Expired": figures.expired,
        "Rejected": figures.rejected,
        "Disk errors": figures.disk_errors,
        "Last error": figures.last_error or None,
    }


def _fields(figures: SenderStatistics) -> dict[str, Any]:
    import msgspec

    return msgspec.structs.asdict(figures)
