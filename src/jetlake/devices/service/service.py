"""`DeviceService`: the gRPC services and the HTTP gateway, started and stopped.

```python
async with DeviceService(Settings(jetstream=True), Access(url="nats://127.0.0.1:4222")) as service:
    print(service.grpc_address, service.http_url)
```

Invariant: in JetStream mode a service starts only if a stream listens on the subjects it will publish to.
"""

import ipaddress
import logging
from types import TracebackType
from typing import Self

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.devices.service.gateway import Gateway
from jetlake.devices.service.grpc_server import GrpcServer, Tls
from jetlake.devices.service.sessions import UserSessions
from jetlake.devices.settings import Settings
from jetlake.devices.stream import SERVER_VERSION_MIN, check_store, check_version, ensure_streams, find_stream

_log = logging.getLogger("jetlake.devices")


class DeviceService:
    """One aggregate service."""

    def __init__(
        self, settings: Settings, access: Access, *, tls: Tls | None = None, create_stream: bool = False
    ) -> None:
        self.settings = settings
        # The stream that was found at the start; empty in core mode.
        self.stream = ""
        self._access = access
        self._tls = tls
        self._create_stream = create_stream
        self._sessions = UserSessions(settings, access)
        self._grpc = GrpcServer(self._sessions)
        self._gateway = Gateway(self._sessions)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def grpc_address(self) -> str:
        return f"{_host(self.settings.grpc_address)}:{self._grpc.port}"

    @property
    def http_url(self) -> str:
        """Where the gateway is; empty if there is none."""
        if not self.settings.http_address:
            return ""
        return f"{'https' if self._tls else 'http'}://{_host(self.settings.http_address)}:{self._gateway.port}"

    async def start(self) -> None:
        """Check the server and its stream, then listen. Raises `ConfigurationError`, `StartError`, `ClientError`."""
        await self._check_server()
        for address in (self.settings.grpc_address, self.settings.http_address):
            if self._tls is None and address and not _is_loopback(address):
                _log.warning("%s is open to others and has no TLS: credentials can be read on the way", address)
        try:
            await self._grpc.start(self.settings.grpc_address, self._tls)
            if self.settings.http_address:
                await self._gateway.start(self.settings.http_address, self._tls)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop listening, finish what is under way, and close the connections."""
        await self._gateway.stop()
        await self._grpc.stop()
        await self._sessions.close()

    async def _check_server(self) -> None:
        async with open_api(self._access) as api:
            if not self.settings.jetstream:
                return
            check_version(api.connection.connected_server_version, SERVER_VERSION_MIN, "JetStream mode")
            self.stream = await ensure_streams(api) if self._create_stream else await find_stream(api)
            await check_store(api, self.stream)


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def _is_loopback(address: str) -> bool:
    host = _host(address).strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
