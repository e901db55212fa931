"""The gRPC services, with health and reflection.

The methods are those of `api.proto`; a method of the aggregate is a command of the session by the same name.

Invariant: bytes that are not a request are answered with INVALID_ARGUMENT and kept as a dead letter; no request ends
the process.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import msgspec
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from jetlake.devices.dead_letters import DeadLetterWriter
from jetlake.devices.protos import api_pb2
from jetlake.devices.service import reading
from jetlake.devices.service.credentials import of_call
from jetlake.devices.service.filters import event_filter
from jetlake.devices.service.sessions import UserSessions
from jetlake.devices.service.subscriptions import Subscriptions
from jetlake.devices.session import UserSession, as_response
from jetlake.devices.stream import STREAM
from jetlake.errors import ConfigurationError, DeviceError, StartError, reason_of

REQUEST_BYTES_MAX = 4 * 1024 * 1024
"""Of one message; an event must fit into a message of the server, usually 1 MiB."""

CALLS_MAX = 2000
"""At the same time; more are refused with RESOURCE_EXHAUSTED."""

STOP_S_MAX = 2.0
"""For calls that are under way when the service stops."""

_READERS: dict[str, Callable[[Any, Any], Iterator[Any]]] = {
    "GetDevices": reading.devices,
    "GetResourceLinks": reading.resource_links,
    "GetResources": reading.resources,
    "GetDevicesMetadata": reading.devices_metadata,
    "GetPendingCommands": reading.pending_commands,
}

_log = logging.getLogger("jetlake.devices")


class Tls(msgspec.Struct, frozen=True):
    """Files of the service's own certificate; with a CA, clients must show one, too."""

    certificate: Path
    key: Path
    ca: Path | None = None

    def read(self) -> Any:
        """Return the credentials of a server. Raises `ConfigurationError`."""
        try:
            ca = self.ca.read_bytes() if self.ca is not None else None
            pair = (self.key.read_bytes(), self.certificate.read_bytes())
        except OSError as error:
            raise ConfigurationError(f"cannot read the TLS files: {reason_of(error)}") from error
        return grpc.ssl_server_credentials([pair], root_certificates=ca, require_client_auth=ca is not None)


class GrpcServer:
    """The gRPC side of a service."""

    def __init__(self, sessions: UserSessions) -> None:
        self._sessions = sessions
        self._server: Any = None
        self._health: Any = None
        self.port = 0

    async def start(self, address: str, tls: Tls | None) -> None:
        """Listen. Raises `StartError` if the address is taken."""
        self._server = grpc.aio.server(
            maximum_concurrent_rpcs=CALLS_MAX,
            options=[("grpc.max_receive_message_length", REQUEST_BYTES_MAX), ("grpc.so_reuseport", 0)],
        )
        services = list(api_pb2.DESCRIPTOR.services_by_name.values())
        for service in services:
            handlers = {method.name: self._handler(method) for method in service.methods}
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [service.full_name for service in services]
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        try:
            if tls is None:
                self.port = self._server.add_insecure_port(address)
            else:
                self.port = self._server.add_secure_port(address, tls.read())
        except RuntimeError as error:
            raise StartError(f"cannot listen on {address} for gRPC: {error}; is the port taken?") from error
        await self._server.start()
        for name in ("", *names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        if self._server is not None:
            await self._health.enter_graceful_shutdown()
            await self._server.stop(STOP_S_MAX)
            self._server = None

    def _handler(self, method: Any) -> Any:
        request_type = GetMessageClass(method.input_type)
        if method.client_streaming:
            call: Any = self._subscribe(method.name, request_type)
            make = grpc.stream_stream_rpc_method_handler
        elif method.server_streaming:
            call, make = self._stream(method.name, request_type), grpc.unary_stream_rpc_method_handler
        else:
            call, make = self._unary(method.name, request_type), grpc.unary_unary_rpc_method_handler
        return make(call, request_deserializer=None, response_serializer=_serialized)

    def _unary(self, name: str, request_type: Any) -> Any:
        async def call(raw: bytes, context: Any) -> Any:
            try:
                async with self._sessions.use(of_call(_metadata(context))) as session:
                    request = await _parsed(session, name, request_type, raw)
                    return await session.execute(name, request, peer=context.peer())
            except DeviceError as error:
                return await _abort(context, error)

        return call

    def _stream(self, name: str, request_type: Any) -> Any:
        async def call(raw: bytes, context: Any) -> AsyncIterator[Any]:
            try:
                async with self._sessions.use(of_call(_metadata(context))) as session:
                    request = await _parsed(session, name, request_type, raw)
                    async with aclosing(answers(session, name, request)) as found:
                        async for answer in found:
                            yield answer
            except DeviceError as error:
                await _abort(context, error)

        return call

    def _subscribe(self, name: str, request_type: Any) -> Any:
        async def call(raw_requests: Any, context: Any) -> AsyncIterator[Any]:
            try:
                async with self._sessions.use(of_call(_metadata(context))) as session:

                    async def requests() -> AsyncIterator[Any]:
                        async for raw in raw_requests:
                            yield await _parsed(session, name, request_type, raw)

                    async with aclosing(Subscriptions(session).run(requests())) as found:  # type: ignore[type-var]
                        async for answer in found:
                            yield answer
            except DeviceError as error:
                await _abort(context, error)

        return call


async def answers(session: UserSession, name: str, request: Any) -> Any:
    """Yield the answers to a reading request."""
    if name == "GetEvents":
        async with aclosing(session.events(event_filter(request))) as found:
            async for event in found:
                yield as_response(event.current())
        return
    for answer in _READERS[name](await session.twin(), request):
        yield answer


async def _parsed(session: UserSession, name: str, request_type: Any, raw: bytes) -> Any:
    try:
        return request_type.FromString(raw)
    except DecodeError as error:
        reason = f"the request of {name} is not a {request_type.DESCRIPTOR.name}: {error}"
        stream = getattr(session.store, "stream", STREAM)
        await DeadLetterWriter(session.api, stream, "grpc").dead_letter_request(name, raw, reason, uuid4().hex)
        raise DeviceError("INVALID_ARGUMENT", reason) from error


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _metadata(context: Any) -> dict[str, Any]:
    return dict(context.invocation_metadata() or ())


async def _abort(context: Any, error: DeviceError) -> Any:
    if error.status in ("UNAVAILABLE", "DATA_LOSS"):
        _log.warning("%s: %s", error.status, error)
    await context.abort(grpc.StatusCode[error.status], str(error))
