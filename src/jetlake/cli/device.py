"""`jetlake device`: the device event bus, its services, and what devices say."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.device_serve import bundle, serve
from jetlake.cli.invocation import current
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import JsonOption, print_json, print_table
from jetlake.cli.readers import outlive_readers
from jetlake.cli.run import refusals
from jetlake.presentation.cells import Cell
from jetlake.presentation.quantities import read_duration

if TYPE_CHECKING:
    from jetlake.devices.client import DeviceClient

application = typer.Typer(help="Run the device event bus and look at its devices.", no_args_is_help=True)
application.command()(serve)
application.command()(bundle)

SECOND = 1_000_000_000
VALUE_LENGTH_MAX = 100
"""Characters of a resource's content in a table."""

ACTIONS = {
    "update": "UpdateResource",
    "retrieve": "RetrieveResource",
    "create": "CreateResource",
    "delete": "DeleteResource",
}

ServiceOption = Annotated[
    str, typer.Option(envvar="JETLAKE_DEVICES", help="Address of the gRPC service.", metavar="HOST:PORT")
]
AuthorityOption = Annotated[
    Path | None, typer.Option("--service-ca", help="Speak TLS, and trust this CA.", metavar="FILE")
]
DeviceArgument = Annotated[str, typer.Argument(help="Id of a device.", metavar="DEVICE")]
SomeDeviceArgument = Annotated[str, typer.Argument(help="Id of a device; all unless given.", metavar="[DEVICE]")]
HrefArgument = Annotated[str, typer.Argument(help="Path of a resource, such as /light/1.", metavar="HREF")]
SomeHrefArgument = Annotated[str, typer.Argument(help="Path of a resource; all unless given.", metavar="[HREF]")]

DEFAULT_SERVICE = "127.0.0.1:9100"


@application.callback()
def device() -> None:
    """Run the device event bus and look at its devices.

    Commands other than serve and bundle call the gRPC service, with the credentials of the flags of all commands.
    """


@application.command()
def links(
    device_id: SomeDeviceArgument = "",
    service: ServiceOption = DEFAULT_SERVICE,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the resources that devices have published."""
    found = _collect(service, authority, "GetResourceLinks", device_id)
    if as_json:
        print_json([_as_json(each) for each in found])
        return
    rows = [
        (each.device_id, link.href, ", ".join(link.resource_types), ", ".join(link.interfaces), link.title)
        for each in found
        for link in each.resources
    ]
    print_table(("device", "href", "types", "interfaces", "title"), rows)


@application.command()
def state(
    device_id: SomeDeviceArgument = "",
    href: SomeHrefArgument = "",
    service: ServiceOption = DEFAULT_SERVICE,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show devices; with a device its resources and their content."""
    if not device_id:
        devices = _collect(service, authority, "GetDevices", "")
        if as_json:
            print_json([_as_json(each) for each in devices])
            return
        columns = ("device", "name", "state", "since", "resources", "pending commands")
        print_table(columns, [_device_row(each) for each in devices])
        return
    found = [
        each
        for each in _collect(service, authority, "GetResources", device_id)
        if not href or each.data.resource_id.href == href
    ]
    if as_json:
        print_json([_as_json(each) for each in found])
        return
    rows = [
        (
            each.data.resource_id.href,
            _shown(each.data.content),
            each.data.event_metadata.version,
            _timestamp_text(each.data.event_metadata.timestamp),
        )
        for each in found
    ]
    print_table(("href", "content", "version", "changed"), rows)


@application.command()
def history(
    device_id: DeviceArgument,
    href: SomeHrefArgument = "",
    service: ServiceOption = DEFAULT_SERVICE,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """List all events of a device or of one of its resources, oldest first."""
    resources = [(device_id, href)] if href else []
    _print_events(
        _events(service, authority, device_ids=[] if href else [device_id], resources=resources), as_json=as_json
    )


@application.command()
def events(
    since: Annotated[
        str, typer.Option(help="Events after this: 10m ago, a time, or Unix nanoseconds; all unless given.")
    ] = "",
    device_ids: Annotated[
        list[str] | None, typer.Option("--device", help="Only of this device; may be repeated.", metavar="DEVICE")
    ] = None,
    resources: Annotated[
        list[str] | None,
        typer.Option("--resource", help="Only of this resource, as DEVICE/path; may be repeated.", metavar="RESOURCE"),
    ] = None,
    service: ServiceOption = DEFAULT_SERVICE,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """List events of all devices, from a point in time on."""
    try:
        after_ns = read_since(since)
        named = [_resource(text) for text in resources or []]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    found = _events(service, authority, after_ns=after_ns, device_ids=device_ids or [], resources=named)
    _print_events(found, as_json=as_json)


@application.command()
def watch(
    device_id: SomeDeviceArgument = "",
    count: Annotated[int, typer.Option(help="Stop after N events (0: run until interrupted).", metavar="N")] = 0,
    service: ServiceOption = DEFAULT_SERVICE,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print events as they arrive."""

    async def work(client: "DeviceClient") -> None:
        from contextlib import aclosing

        from jetlake.devices.session import event_of

        left = count
        watching: Any = client.watch(device_ids=[device_id] if device_id else [])
        async with aclosing(watching) as found:
            async for each in found:
                if each.WhichOneof("type") != "event":
                    typer.echo("watching", err=True)
                    continue
                if each.dropped:
                    typer.echo(f"{each.dropped} events were dropped: this reader is too slow", err=True)
                event = event_of(each.event)
                _print_event(event, as_json=as_json)
                left -= 1
                if left == 0:
                    return

    _run(service, authority, work)


@application.command()
def send(
    action: Annotated[str, typer.Argument(help="update, retrieve, create, delete, or notify.", metavar="ACTION")],
    device_id: DeviceArgument,
    href: HrefArgument,
    value: Annotated[
        str, typer.Argument(help="Content as JSON, for update, create and notify.", metavar="[JSON]")
    ] = "",
    wait: Annotated[
        int, typer.Option(parser=parse_duration, help="Wait this long for the device's answer.", metavar="TIME")
    ] = 0,
    time_to_live: Annotated[
        int, typer.Option(parser=parse_duration, help="How long the command is valid.", metavar="TIME")
    ] = 0,
    correlation_id: Annotated[
        str, typer.Option("--correlation-id", help="Id of the command; a new one unless given.")
    ] = "",
    service: ServiceOption = DEFAULT_SERVICE,
    authority: AuthorityOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a command to a device, or notify content in its place.

    Ends with 1 if the service refuses it, or the device does not answer in time.
    """
    if action not in ACTIONS and action != "notify":
        raise typer.BadParameter(f"{action!r} is not an action: use {', '.join(ACTIONS)} or notify")
    content = _read_json(value) if value else None
    if content is None and action in ("update", "create", "notify"):
        raise typer.BadParameter(
            f"{action} needs content: jetlake device send {action} {device_id} {href} '{{\"power\": 7}}'"
        )

    async def work(client: "DeviceClient") -> Any:
        if action == "notify":
            return await client.notify(device_id, href, content)
        return await client.send(
            ACTIONS[action],
            device_id,
            href,
            content,
            correlation_id=correlation_id,
            time_to_live_ns=time_to_live,
            wait_s=wait / SECOND,
        )

    answer = _run(service, authority, work)
    outlive_readers()
    if as_json:
        print_json(_as_json(answer))
        return
    if answer.HasField("confirmation"):
        from jetlake.devices.session import event_of

        _print_event(event_of(answer.confirmation), as_json=False)
    elif answer.events:
        typer.echo(f"Stored {answer.correlation_id}".rstrip())
    else:
        typer.echo("Nothing changed")


def read_since(text: str) -> int:
    """Return a point in time in Unix nanoseconds: a duration ago, a date, or the number itself. Raises `ValueError`."""
    if not text:
        return 0
    if text.isdigit():
        return int(text)
    try:
        return time.time_ns() - read_duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not a time: write 10m, 2026-01-31T12:00:00, or Unix nanoseconds") from error
    return round((moment if moment.tzinfo else moment.astimezone()).timestamp() * SECOND)


def _resource(text: str) -> tuple[str, str]:
    device_id, separator, rest = text.partition("/")
    if not device_id or not separator or not rest:
        raise ValueError(f"{text!r} is not a resource: write DEVICE/path")
    return device_id, f"/{rest}"


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"the content is not JSON: {error}") from error


def _run(service: str, authority: Path | None, work: "Callable[[DeviceClient], Awaitable[Any]]") -> Any:
    async def connected() -> Any:
        from jetlake.devices.client import ClientTls, DeviceClient

        access = current().access()
        async with DeviceClient(
            service,
            user=access.user or "",
            password=access.password or "",
            token=access.token or "",
            credentials=access.credentials or access.nkey,
            tls=None if authority is None else ClientTls(ca=authority),
        ) as client:
            return await work(client)

    with refusals():
        from jetlake.cli.device_serve import need_extra

        need_extra()
        return asyncio.run(connected())


def _collect(service: str, authority: Path | None, name: str, device_id: str) -> list[Any]:
    async def work(client: "DeviceClient") -> list[Any]:
        from jetlake.devices.protos import api_pb2

        kind = api_pb2.GetDevicesRequest if name == "GetDevices" else api_pb2.GetStateRequest
        request = kind(device_id_filter=[device_id] if device_id else [])
        return [each async for each in client.stream(name, request)]

    found: list[Any] = _run(service, authority, work)
    return found


def _events(service: str, authority: Path | None, **wanted: Any) -> list[Any]:
    async def work(client: "DeviceClient") -> list[Any]:
        return [each async for each in client.events(**wanted)]

    found: list[Any] = _run(service, authority, work)
    return found


def _print_events(found: list[Any], *, as_json: bool) -> None:
    if as_json:
        print_json([{type(each).__name__: _as_json(each)} for each in found])
        return
    print_table(("time", "device", "href", "event", "version", "content"), [_event_row(each) for each in found])


def _print_event(event: Any, *, as_json: bool) -> None:
    if as_json:
        print_json({type(event).__name__: _as_json(event)})
        return
    typer.echo("  ".join("" if cell is None else str(cell) for cell in _event_row(event)))


def _event_row(event: Any) -> tuple[Cell, ...]:
    is_resource = hasattr(event, "resource_id")
    device_id = event.resource_id.device_id if is_resource else event.device_id
    content = _shown(event.content) if hasattr(event, "content") and event.HasField("content") else None
    metadata = event.event_metadata
    href = event.resource_id.href if is_resource else ""
    return (_timestamp_text(metadata.timestamp), device_id, href, type(event).__name__, metadata.version, content)


def _device_row(device: Any) -> tuple[Cell, ...]:
    connection = device.metadata.connection
    since = _timestamp_text(connection.connected_at) if connection.status else ""
    status = "online" if connection.status else "offline"
    return (device.id, device.name, status, since, device.resource_count, device.pending_command_count)


def _shown(content: Any) -> str:
    from jetlake.devices.content import shown

    text = json.dumps(shown(content), ensure_ascii=False)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."


def _as_json(message: Any) -> dict[str, Any]:
    from jetlake.devices.service.json_form import as_json

    return as_json(message)


def _timestamp_text(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / SECOND, UTC).isoformat(timespec="milliseconds") if time_ns else ""
