"""`jetlake account`: who this connection is, and what its account may store."""

from typing import TYPE_CHECKING, Any

import typer

from jetlake.cli.output import JsonOption, print_facts, print_json
from jetlake.cli.run import run
from jetlake.errors import ClientError
from jetlake.presentation.cells import Bytes, Cell, shown
from jetlake.presentation.stream_facts import UNLIMITED

if TYPE_CHECKING:
    from jetlake.client.api import Api

application = typer.Typer(help="Show who you are connected as, and your limits.", no_args_is_help=True)


@application.callback()
def account() -> None:
    """Show who you are connected as, and your limits."""


@application.command("info")
def info(as_json: JsonOption = False) -> None:
    """Show user, account, server, and JetStream usage and limits."""

    async def work(api: "Api") -> dict[str, Any]:
        connection = api.connection
        url = connection.connected_url
        facts: dict[str, Any] = {
            "server": {
                "url": url.netloc.rpartition("@")[2] if url is not None else None,
                "version": _version(connection.connected_server_version),
                "payload_bytes_max": connection.max_payload,
                "client_id": connection.client_id,
            },
            "user": await _user(api),
        }
        try:
            facts["jetstream"] = await api.request("INFO")
        except ClientError as error:
            facts["jetstream"] = None
            facts["jetstream_problem"] = str(error)
        return facts

    facts = run(work)
    if as_json:
        print_json(facts)
        return
    print_facts("Account", _sections(facts))


def _version(version: Any) -> str:
    return f"{version.major}.{version.minor}.{version.patch}" + (f"-{version.dev}" if version.dev else "")


async def _user(api: "Api") -> dict[str, Any]:
    """Return what the server says of this connection's user; empty where it does not tell."""
    try:
        answer = await api.ask("$SYS.REQ.USER.INFO", b"", timeout_s=1.0)
    except ClientError:
        return {}
    data: dict[str, Any] = answer.get("data") or {}
    return data


def _sections(facts: dict[str, Any]) -> dict[str, dict[str, Cell]]:
    server, user, jetstream = facts["server"], facts["user"], facts["jetstream"]
    permissions = user.get("permissions") or {}
    sections: dict[str, dict[str, Cell]] = {
        "Connection": {
            "server": server["url"],
            "version": server["version"],
            "client id": server["client_id"],
            "payload at most": Bytes(server["payload_bytes_max"]),
            "user": user.get("user") or None,
            "account": user.get("account") or None,
            "may publish": _subjects(permissions.get("publish")),
            "may subscribe": _subjects(permissions.get("subscribe")),
        }
    }
    if jetstream is None:
        sections["JetStream"] = {"JetStream": f"not available: {facts['jetstream_problem']}"}
        return sections
    limits = jetstream.get("limits") or {}
    sections["JetStream"] = {
        "domain": jetstream.get("domain"),
        "streams": _of(jetstream["streams"], limits.get("max_streams"), int),
        "consumers": _of(jetstream["consumers"], limits.get("max_consumers"), int),
        "storage": _of(jetstream["storage"], limits.get("max_storage"), Bytes),
        "memory": _of(jetstream["memory"], limits.get("max_memory"), Bytes),
        "API requests": jetstream["api"]["total"],
        "API errors": jetstream["api"]["errors"],
    }
    return sections


def _of(used: int, most: int | None, kind: type[int]) -> str:
    limit = shown(kind(most)) if most is not None and most >= 0 else UNLIMITED
    return f"{shown(kind(used))} of {limit}"


def _subjects(rules: dict[str, Any] | None) -> Cell:
    if not rules:
        return None
    allowed, denied = ", ".join(rules.get("allow") or []), ", ".join(rules.get("deny") or [])
    return "; ".join(part for part in (allowed, f"not {denied}" if denied else "") if part) or None


application.command("nfo", hidden=True)(info)
