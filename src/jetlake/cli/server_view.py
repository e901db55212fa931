"""`jetlake server info`, `ls` and `check`: look at servers that run.

`jetlake server` with flags runs one; these words are understood before its flags are read.

Invariant: `check` prints one line and ends with the exit code that monitoring systems expect: 0 is good, 1 a warning, 2
critical, 3 unknown.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, print_facts, print_json, print_note, print_table
from jetlake.cli.rtt import round_trip_ns
from jetlake.cli.run import run
from jetlake.cli.server_pages import collect_answers
from jetlake.errors import ApiError, ClientError, JetlakeError
from jetlake.presentation.cells import Bytes, Cell, Nanoseconds
from jetlake.presentation.quantities import SECOND, shown_duration

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Inspect and check running servers.", no_args_is_help=True)

GOOD, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

MILLISECOND = 1_000_000

SILENCE_NS_MAX = 30 * SECOND
"""Of an origin that is copied: it sends something every second, and a cluster elects a leader in some ten seconds."""


@application.callback()
def server() -> None:
    """Inspect and check running servers. `jetlake server` with flags runs one."""


@application.command()
def info(as_json: JsonOption = False) -> None:
    """Show what the server you are connected to says about itself."""

    async def work(api: "Api") -> dict[str, Any]:
        took_ns = await round_trip_ns(api)
        # nats-py keeps what the server has said, and shows little of it.
        said: dict[str, Any] = dict(getattr(api.connection, "_server_info", {}))
        return {"round_trip_ns": took_ns, "info": said}

    found = run(work)
    if as_json:
        print_json(found)
        return
    said = found["info"]
    facts: dict[str, Cell] = {
        "name": said.get("server_name"),
        "id": said.get("server_id"),
        "version": said.get("version"),
        "build": said.get("git_commit"),
        "address": f"{said.get('host')}:{said.get('port')}",
        "cluster": said.get("cluster"),
        "domain": said.get("domain"),
        "JetStream": bool(said.get("jetstream")),
        "headers": bool(said.get("headers")),
        "login required": bool(said.get("auth_required")),
        "TLS required": bool(said.get("tls_required")),
        "max payload": Bytes(said.get("max_payload", 0)),
        "client id": said.get("client_id"),
        "client address": said.get("client_ip"),
        "round trip": Nanoseconds(found["round_trip_ns"]),
    }
    print_facts(f"Server {said.get('server_name', '')}", {"": facts})


@application.command("ls")
def list_all(as_json: JsonOption = False) -> None:
    """List the servers of a system; needs a user of the system account."""

    async def work(api: "Api") -> list[dict[str, Any]]:
        return [each for each in await collect_answers(api, "$SYS.REQ.SERVER.PING") if "statsz" in each]

    found = run(work)
    if as_json:
        print_json(found)
        return
    rows: list[tuple[Cell, ...]] = [
        (
            each["server"].get("name"),
            each["server"].get("cluster") or "",
            each["server"].get("ver"),
            each["server"].get("host"),
            bool(each["server"].get("jetstream")),
            each["statsz"].get("connections", 0),
            each["statsz"].get("subscriptions", 0),
            Bytes(each["statsz"].get("mem", 0)),
            each["statsz"].get("slow_consumers", 0),
        )
        for each in found
    ]
    columns = ("server", "cluster", "version", "host", "JetStream", "connections", "subscriptions", "memory", "slow")
    print_table(columns, rows)


application.command("list", hidden=True)(list_all)

checks = typer.Typer(help="Check a server, for monitoring systems.", no_args_is_help=True)
application.add_typer(checks, name="check")


@checks.callback()
def check() -> None:
    """Check a server, for monitoring systems: one line, and exit code 0 good, 1 warning, 2 critical, 3 unknown."""


@checks.command()
def connection(
    warn: Annotated[int, typer.Option(parser=parse_duration, metavar="TIME", show_default="500ms")] = 500 * MILLISECOND,
    critical: Annotated[int, typer.Option(parser=parse_duration, metavar="TIME", show_default="1s")] = SECOND,
    as_json: JsonOption = False,
) -> None:
    """Check that a server accepts connections and answers a PING in time."""
    took_ns = _measured("connection", round_trip_ns, as_json=as_json)
    text = f"round trip {took_ns / MILLISECOND:.2f} ms"
    _end("connection", _level(took_ns, warn, critical), text, {"round_trip_ns": took_ns}, as_json=as_json)


@checks.command()
def jetstream(
    storage_warn: Annotated[int, typer.Option(min=0, max=100, help="Percent of the limit.")] = 75,
    storage_critical: Annotated[int, typer.Option(min=0, max=100, help="Percent of the limit.")] = 90,
    as_json: JsonOption = False,
) -> None:
    """Check that JetStream is on, and how much of its storage and memory is used."""
    found = _measured("jetstream", lambda api: api.request("INFO"), as_json=as_json)
    limits = found.get("limits") or {}
    shares = {
        what: 100 * int(found[what]) / most
        for what in ("storage", "memory")
        if (most := int(limits.get(f"max_{what}", -1))) > 0
    }
    level = max((_level(share, storage_warn, storage_critical) for share in shares.values()), default=GOOD)
    used = ", ".join(f"{what} {share:.1f} %" for what, share in shares.items()) or "no limits"
    facts = {"streams": found["streams"], "consumers": found["consumers"], "percent": shares}
    _end("jetstream", level, f"{found['streams']} streams, {used}", facts, as_json=as_json)


@checks.command()
def stream(
    name: Annotated[str, typer.Argument(help="The stream.", metavar="STREAM")],
    messages_warn: Annotated[int, typer.Option(min=-1, help="Warn below this many messages.")] = -1,
    messages_critical: Annotated[int, typer.Option(min=-1, help="Critical below this many messages.")] = -1,
    lag_warn: Annotated[int, typer.Option(min=0, help="Warn if a mirror or source is this far behind.")] = 0,
    lag_critical: Annotated[int, typer.Option(min=0, help="Critical if it is this far behind.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Check how many messages a stream holds, and how far its mirror or sources are behind."""
    found = _measured("stream", lambda api: api.request(f"STREAM.INFO.{name}"), as_json=as_json)
    held = int(found["state"]["messages"])
    origins = [found["mirror"]] if found.get("mirror") else found.get("sources") or []
    lag = max((int(origin.get("lag", 0)) for origin in origins), default=0)
    level = CRITICAL if held < messages_critical else WARNING if held < messages_warn else GOOD
    level = max(level, _level(lag, lag_warn or lag + 1, lag_critical or lag + 1))
    text = f"{name}: {held} messages" + (f", {lag} behind" if origins else "")
    unreachable = {str(origin.get("name")): reason for origin in origins if (reason := _why_unreachable(origin))}
    for origin_name, reason in unreachable.items():
        level, text = CRITICAL, f"{text}, {origin_name} cannot be reached: {reason}"
    facts = {"stream": name, "messages": held, "lag": lag, "unreachable": list(unreachable)}
    _end("stream", level, text, facts, as_json=as_json)


def _why_unreachable(origin: dict[str, Any]) -> str:
    """Return why nothing can be copied from an origin; an empty text if something can. Its lag is then 0 too."""
    if origin.get("error"):
        return str(origin["error"].get("description") or "the server does not say why")
    # In nanoseconds since something was heard, -1 for never.
    silence_ns = int(origin.get("active", 0))
    if silence_ns < 0:
        return "nothing has come from it"
    return f"nothing has come from it for {shown_duration(silence_ns)}" if silence_ns > SILENCE_NS_MAX else ""


@checks.command()
def consumer(
    stream_name: Annotated[str, typer.Argument(help="The stream.", metavar="STREAM")],
    name: Annotated[str, typer.Argument(help="The consumer.", metavar="CONSUMER")],
    pending_warn: Annotated[int, typer.Option(min=0, help="Warn if this many messages wait.")] = 0,
    pending_critical: Annotated[int, typer.Option(min=0, help="Critical if this many messages wait.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Check how many messages wait for a consumer."""
    request = f"CONSUMER.INFO.{stream_name}.{name}"
    found = _measured("consumer", lambda api: api.request(request), as_json=as_json)
    pending, open_count = int(found["num_pending"]), int(found["num_ack_pending"])
    level = _level(pending, pending_warn or pending + 1, pending_critical or pending + 1)
    text = f"{name}: {pending} pending, {open_count} not acknowledged"
    facts = {"stream": stream_name, "consumer": name, "pending": pending, "ack_pending": open_count}
    _end("consumer", level, text, facts, as_json=as_json)


def _level(value: float, warn: float, critical: float) -> int:
    return CRITICAL if value >= critical else WARNING if value >= warn else GOOD


def _measured(check_name: str, work: Any, *, as_json: bool) -> Any:
    """Do the work of a check; a server that cannot be reached or refuses is critical, not an error of the command."""
    import asyncio

    from jetlake.cli.invocation import current
    from jetlake.client.api import open_api

    async def connected() -> Any:
        async with open_api(current().access()) as api:
            return await work(api)

    try:
        return asyncio.run(connected())
    except (ApiError, ClientError) as error:
        _end(check_name, CRITICAL, str(error), {}, as_json=as_json)
    except JetlakeError as error:
        _end(check_name, UNKNOWN, str(error), {}, as_json=as_json)


def _end(check_name: str, level: int, text: str, facts: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json({"check": check_name, "status": WORDS[level], "message": text, **facts})
    else:
        print_note(f"{WORDS[level]} {check_name}: {text}", style=("green", "yellow", "bold red", "magenta")[level])
    raise typer.Exit(level)
