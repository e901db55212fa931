"""`jetlake device serve` and `jetlake device bundle`: the services as processes.

Invariant: both end with exit code 0 on SIGTERM and Ctrl-C, after what is under way is answered.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.invocation import current
from jetlake.cli.output import print_note
from jetlake.cli.run import refusals
from jetlake.errors import MissingDependencyError

if TYPE_CHECKING:
    from jetlake.client.access import Access
    from jetlake.devices.service.service import DeviceService
    from jetlake.devices.settings import Settings
    from jetlake.server.server import Server

MEMORY_STORE_BYTES = 1_073_741_824
FILE_STORE_BYTES = 10_737_418_240
"""What the original's bundle gives to JetStream."""

NATS_PORT = 4222

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="YAML with clients.eventBus.nats and the like.", metavar="FILE")
]
JetStreamOption = Annotated[
    bool | None,
    typer.Option(
        "--jetstream/--no-jetstream", help="Store events in a stream; else JETSTREAM=true or the file decides."
    ),
]
GrpcOption = Annotated[str, typer.Option("--grpc", help="Address for gRPC; port 0 chooses one.", metavar="HOST:PORT")]
HttpOption = Annotated[
    str, typer.Option("--http", help="Address of the HTTP gateway; port 0 chooses one, - is none.", metavar="HOST:PORT")
]
CertificateOption = Annotated[
    Path | None, typer.Option("--service-cert", help="Certificate of the service.", metavar="FILE")
]
KeyOption = Annotated[Path | None, typer.Option("--service-key", help="Key of the certificate.", metavar="FILE")]
ClientCaOption = Annotated[
    Path | None, typer.Option("--client-ca", help="Clients must show a certificate of this CA.", metavar="FILE")
]


def serve(
    config: ConfigOption = None,
    jetstream: JetStreamOption = None,
    create_stream: Annotated[bool, typer.Option("--create-stream", help="Create the stream if there is none.")] = False,
    grpc: GrpcOption = "",
    http: HttpOption = "",
    certificate: CertificateOption = None,
    key: KeyOption = None,
    client_ca: ClientCaOption = None,
) -> None:
    """Run the aggregate service: gRPC, and a gateway in HTTP and JSON.

    In JetStream mode it refuses to start if no stream listens on its subjects.
    """
    with refusals():
        need_extra()
        settings = _settings(config, jetstream, grpc, http)
        access = _access(settings)
        service = _service(settings, access, certificate, key, client_ca, create_stream=create_stream)
        with _logged():
            asyncio.run(_run(service))


def bundle(
    data: Annotated[Path, typer.Option("--data", help="Folder for everything that is kept.", metavar="DIR")],
    port: Annotated[int, typer.Option("--port", "-p", help="Port of the NATS server; 0 chooses one.")] = NATS_PORT,
    config: ConfigOption = None,
    jetstream: JetStreamOption = None,
    grpc: GrpcOption = "",
    http: HttpOption = "",
    certificate: CertificateOption = None,
    key: KeyOption = None,
    client_ca: ClientCaOption = None,
) -> None:
    """Run a server, the aggregate service and the gateway together.

    With JETSTREAM=true events are kept in the stream EVENTS; otherwise nothing is kept.
    """
    with refusals():
        need_extra()
        settings = _settings(config, jetstream, grpc, http)
        server = _server(data, port, jetstream=settings.jetstream)
        try:
            from jetlake.client.access import Access

            access = Access(url=server.url, name="jetlake device bundle")
            service = _service(settings, access, certificate, key, client_ca, create_stream=True)
            with _logged():
                asyncio.run(_run(service, server.url))
        finally:
            server.stop()
    print_note("Stopped")


def need_extra() -> None:
    """Refuse to go on without the packages of the extra. Raises `MissingDependencyError`."""
    try:
        import aiohttp  # noqa: F401
        import cbor2  # noqa: F401
        import cramjam  # noqa: F401
        import grpc  # noqa: F401
        import grpc_health  # noqa: F401
        import grpc_reflection  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"the device event bus needs the package {error.name}: run `pip install 'jetlake[devices]'`"
        ) from error


def _settings(config: Path | None, jetstream: bool | None, grpc: str, http: str) -> "Settings":
    import msgspec

    from jetlake.devices.settings import Settings, from_environment, read_settings

    settings = from_environment(read_settings(config) if config is not None else Settings())
    changes: dict[str, Any] = {} if jetstream is None else {"jetstream": jetstream}
    if grpc:
        changes["grpc_address"] = grpc
    if http:
        changes["http_address"] = "" if http == "-" else http
    return msgspec.structs.replace(settings, **changes)


def _access(settings: "Settings") -> "Access":
    """Return how the server is reached: flags, variables and context first, then the file."""
    from jetlake.client.access import CONTEXT_VARIABLE, VARIABLES, resolve

    invocation = current()
    options: dict[str, Any] = {"name": "jetlake device serve"} | invocation.options
    is_named = invocation.context or os.environ.get(CONTEXT_VARIABLE) or os.environ.get(VARIABLES["url"])
    if "url" not in options and not is_named:
        options["url"] = settings.url
    for field in ("tls_ca", "tls_certificate", "tls_key"):
        if getattr(settings, field):
            options.setdefault(field, getattr(settings, field))
    return resolve(options, context=invocation.context)


def _service(
    settings: "Settings",
    access: "Access",
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
    *,
    create_stream: bool,
) -> "DeviceService":
    from jetlake.devices.service.grpc_server import Tls
    from jetlake.devices.service.service import DeviceService
    from jetlake.errors import ConfigurationError

    if (certificate is None) != (key is None):
        raise ConfigurationError("a certificate and its key belong together: give --service-cert and --service-key")
    tls = Tls(certificate, key, client_ca) if certificate is not None and key is not None else None
    return DeviceService(settings, access, tls=tls, create_stream=create_stream)


def _server(data: Path, port: int, *, jetstream: bool) -> "Server":
    from jetlake.errors import ConfigurationError, reason_of
    from jetlake.server.server import Server

    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"cannot use {data}: {reason_of(error)}") from error
    text = 'server_name: "bundle"\n'
    if jetstream:
        store = str(data.absolute() / "jetstream").replace("\\", "\\\\").replace('"', '\\"')
        text += (
            f'jetstream {{ store_dir: "{store}", max_memory_store: {MEMORY_STORE_BYTES}, '
            f"max_file_store: {FILE_STORE_BYTES} }}\n"
        )
    return Server(port=port, config=text).start()


async def _run(service: "DeviceService", server_url: str = "") -> None:
    """Serve until a signal comes."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with service:
        if server_url:
            print_note(f"  NATS      {server_url}")
        print_note(f"  gRPC      {service.grpc_address}")
        if service.http_url:
            print_note(f"  HTTP      {service.http_url}/api/v1/")
        print_note(f"  events    {f'stream {service.stream}' if service.stream else 'in memory only (core mode)'}")
        print_note("Device service is ready", style="bold green")
        await ended.wait()


@contextmanager
def _logged() -> Iterator[None]:
    """Have what the service says on standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("jetlake.devices")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
