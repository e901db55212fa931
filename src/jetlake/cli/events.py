"""`jetlake events`: what servers and nodes report about themselves, as it happens, in words."""

import re
import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from jetlake.choria.events import decode, describe
from jetlake.cli.output import JsonOption, is_terminal, print_note
from jetlake.cli.run import run
from jetlake.cli.sub import live
from jetlake.presentation.cells import as_dict
from jetlake.presentation.quantities import shown_duration

if TYPE_CHECKING:
    from jetlake.client.api import Api

ADVISORIES = "$JS.EVENT.ADVISORY.>"
METRICS = "$JS.EVENT.METRIC.>"
SERVER = (
    "$SYS.ACCOUNT.*.CONNECT",
    "$SYS.ACCOUNT.*.DISCONNECT",
    "$SYS.SERVER.*.CLIENT.AUTH.ERR",
    "$SYS.SERVER.*.SHUTDOWN",
)

LIFECYCLE = "choria.lifecycle.event.>"
MACHINES = "choria.machine.>"
CHECKS = "choria.machine.watcher.nagios.state"
"""Events of Choria's nodes: they start and stop, their machines change, their checks find something."""

HEAD = {"type", "id", "timestamp", "server", "client", "subject", "response", "request", "domain", "account"}
"""What every event has, or what is too long for a line."""


def events(
    metrics: Annotated[bool, typer.Option("--js-metric", help="JetStream's metrics.")] = False,
    advisories: Annotated[bool, typer.Option("--js-advisory", help="JetStream's advisories.")] = False,
    server: Annotated[
        bool, typer.Option("--srv-advisory", help="Connections and servers; needs the system account.")
    ] = False,
    lifecycle: Annotated[
        bool, typer.Option("--lifecycle", help="Starts and stops of Choria's nodes and brokers.")
    ] = False,
    machines: Annotated[bool, typer.Option("--machines", help="Transitions of Choria's machines.")] = False,
    checks: Annotated[bool, typer.Option("--checks", help="Results of Choria's checks.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All of them.")] = False,
    subjects: Annotated[list[str] | None, typer.Option(help="Events on these subjects.")] = None,
    pattern: Annotated[str, typer.Option("--filter", help="Only events that match this regular expression.")] = "",
    count: Annotated[int, typer.Option(min=0, help="Stop after N events (0: run until interrupted).")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Show events as they happen, until Ctrl-C: advisories and metrics of JetStream unless flags choose.

    With --json every event is one line, as the server sent it.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise typer.BadParameter(f"{pattern!r} is not a regular expression: {error}") from error
    nothing_chosen = not (metrics or advisories or server or lifecycle or machines or checks or subjects)
    chosen = [
        *([ADVISORIES] if advisories or everything or nothing_chosen else []),
        *([METRICS] if metrics or everything or nothing_chosen else []),
        *(SERVER if server or everything else ()),
        *([LIFECYCLE] if lifecycle or everything else []),
        *([MACHINES] if machines or everything else []),
        *([CHECKS] if checks and not (machines or everything) else []),
        *(subjects or []),
    ]

    async def work(api: "Api") -> None:
        number = 0
        async for message in live(api, chosen, ""):
            text = message.data.decode(errors="replace")
            if not wanted.search(text):
                continue
            number += 1
            typer.echo(text) if as_json else show(text, message.subject)
            if count and number >= count:
                return

    run(work, reconnect=True)


def show(text: str, subject: str) -> None:
    """Print one event as a line."""
    body = decode(text.encode())
    if body is not None:
        is_critical = body.get("status") == "CRITICAL"
        print_note(
            f"{time.strftime('%H:%M:%S')} {describe(body)}",
            style="bold red" if is_terminal() and is_critical else "",
        )
        return
    try:
        event = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        print_note(f"{time.strftime('%H:%M:%S')} {subject}: {text}")
        return
    kind = str(event.get("type", subject)).rpartition(".")[2]
    when = str(event.get("timestamp", ""))[11:19] or time.strftime("%H:%M:%S")
    line = f"{when} [{kind.replace('_', ' ')}] {words(kind, event)}"
    print_note(line, style="bold red" if is_terminal() and is_bad(kind) else "")


def words(kind: str, event: dict[str, Any]) -> str:
    """Return what happened as a sentence; fields and values for what is not known here."""
    stream, consumer = event.get("stream", ""), event.get("consumer", "")
    client = as_dict(event.get("client"))
    who = client.get("name") or client.get("host") or client.get("user") or ""
    place = as_dict(event.get("server")).get("name", "")
    sentences = {
        "stream_action": f"{stream}: {event.get('action')}",
        "consumer_action": f"{consumer} of {stream}: {event.get('action')}",
        "max_deliver": f"{consumer} of {stream} gave up message {event.get('stream_seq')} "
        f"after {event.get('deliveries')} deliveries",
        "terminated": f"{consumer} of {stream}: message {event.get('stream_seq')} was given up"
        + (f", {event['reason']}" if event.get("reason") else ""),
        "nak": f"{consumer} of {stream}: message {event.get('stream_seq')} was refused, "
        f"delivery {event.get('deliveries')}",
        "consumer_ack": f"{consumer} of {stream}: message {event.get('stream_seq')} was acknowledged after "
        f"{shown_duration(int(event.get('ack_time', 0)))}, delivery {event.get('deliveries')}",
        "consumer_pause": f"{consumer} of {stream}: "
        + (f"paused until {event.get('pause_until')}" if event.get("paused") else "goes on"),
        "snapshot_create": f"{stream}: a backup begins",
        "snapshot_complete": f"{stream}: the backup is done",
        "restore_create": f"{stream}: a restore begins",
        "restore_complete": f"{stream}: restored, {event.get('bytes', 0):,} bytes",
        "api_audit": f"{event.get('subject')}" + (f" by {who}" if who else ""),
        "client_connect": f"{who or 'a client'} connected to {place}",
        "client_disconnect": f"{who or 'a client'} left {place}: {event.get('reason')}",
    }
    if kind in sentences:
        return sentences[kind]
    return ", ".join(f"{key}: {value}" for key, value in event.items() if key not in HEAD)


def is_bad(kind: str) -> bool:
    """Tell whether an event needs attention."""
    return kind in ("max_deliver", "terminated", "stream_quorum_lost", "consumer_quorum_lost", "server_out_of_space")
