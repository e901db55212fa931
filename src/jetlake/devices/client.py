"""The Python client of the gRPC services.

```python
async with DeviceClient("127.0.0.1:9100", user="ada", password="secret") as client:
    await client.notify("D1", "/light/1", {"power": 7})
    async for event in client.events(after_ns=0):
        print(type(event).__name__)
```

Every method raises `DeviceError` with the status the service answers.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

import grpc
import msgspec
from google.protobuf.message_factory import GetMessageClass

from jetlake.devices import content as contents
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as messages
from jetlake.devices.service.credentials import FILE
from jetlake.devices.session import event_of
from jetlake.errors import ConfigurationError, DeviceError, reason_of

CALL_S_MAX = 30.0
"""For the answer to a command that waits for nobody."""

_METHODS = {
    method.name: (f"/{service.full_name}/{method.name}", method)
    for service in api_pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}


class ClientTls(msgspec.Struct, frozen=True):
    """Whom to believe, and what to show; without a CA, those of the system."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def read(self) -> Any:
        """Return the credentials of a channel. Raises `ConfigurationError`."""
        try:
            parts = [None if path is None else path.read_bytes() for path in (self.ca, self.key, self.certificate)]
        except OSError as error:
            raise ConfigurationError(f"cannot read the TLS files: {reason_of(error)}") from error
        return grpc.ssl_channel_credentials(*parts)


class DeviceClient:
    """One channel to an aggregate service."""

    def __init__(
        self,
        address: str,
        *,
        user: str = "",
        password: str = "",
        token: str = "",
        credentials: Path | None = None,
        tls: ClientTls | None = None,
    ) -> None:
        self._metadata = _metadata(user, password, token, credentials)
        options = [("grpc.max_receive_message_length", -1)]
        self._channel = (
            grpc.aio.insecure_channel(address, options=options)
            if tls is None
            else grpc.aio.secure_channel(address, tls.read(), options=options)
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._channel.close()

    async def call(self, name: str, request: Any, *, timeout_s: float = CALL_S_MAX) -> Any:
        """Call a method that has one answer."""
        path, method = _METHODS[name]
        call = self._channel.unary_unary(
            path, request_serializer=_serialized, response_deserializer=GetMessageClass(method.output_type).FromString
        )
        try:
            return await call(request, metadata=self._metadata, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            raise _refusal(error) from error

    async def stream(self, name: str, request: Any) -> AsyncIterator[Any]:
        """Call a method that has many answers."""
        path, method = _METHODS[name]
        call = self._channel.unary_stream(
            path, request_serializer=_serialized, response_deserializer=GetMessageClass(method.output_type).FromString
        )
        try:
            async for answer in call(request, metadata=self._metadata):
                yield answer
        except grpc.aio.AioRpcError as error:
            raise _refusal(error) from error

    async def events(
        self, *, after_ns: int = 0, device_ids: Sequence[str] = (), resources: Sequence[tuple[str, str]] = ()
    ) -> AsyncIterator[Any]:
        """Yield stored events after a time, of the devices and the resources (device, href) that are named."""
        request = api_pb2.GetEventsRequest(device_id_filter=device_ids, timestamp_filter=after_ns)
        for device_id, href in resources:
            request.resource_id_filter.add(resource_id=messages.ResourceId(device_id=device_id, href=href))
        async for answer in self.stream("GetEvents", request):
            yield event_of(answer)

    async def watch(
        self, *, event_types: Sequence[int] = (), device_ids: Sequence[str] = (), hrefs: Sequence[str] = ()
    ) -> AsyncIterator[Any]:
        """Yield `SubscriptionEvent`s as they come; the first says that the subscription is there."""
        path, method = _METHODS["SubscribeToEvents"]
        call = self._channel.stream_stream(
            path, request_serializer=_serialized, response_deserializer=GetMessageClass(method.output_type).FromString
        )(metadata=self._metadata)
        request = api_pb2.SubscribeToEventsRequest(correlation_id=str(uuid4()))
        request.create_subscription.event_filter.extend(event_types)  # type: ignore[arg-type]
        request.create_subscription.device_id_filter.extend(device_ids)
        request.create_subscription.href_filter.extend(hrefs)
        # A subscription of everything has nothing to say, and must be said nevertheless.
        request.create_subscription.SetInParent()
        try:
            await call.write(request)
            async for answer in call:
                if answer.WhichOneof("type") == "operation_processed" and not answer.operation_processed.ok:
                    raise DeviceError("INVALID_ARGUMENT", answer.operation_processed.message)
                yield answer
        except grpc.aio.AioRpcError as error:
            raise _refusal(error) from error
        finally:
            call.cancel()

    async def notify(
        self, device_id: str, href: str, value: object, *, connection_id: str = "", sequence: int = 0
    ) -> Any:
        """Tell the new content of a resource."""
        request = api_pb2.NotifyResourceChangedRequest(
            resource_id=messages.ResourceId(device_id=device_id, href=href),
            content=value if isinstance(value, messages.Content) else contents.of_value(value),
            command_metadata=messages.CommandMetadata(connection_id=connection_id, sequence=sequence),
        )
        return await self.call("NotifyResourceChanged", request)

    async def publish_links(
        self, device_id: str, links: Sequence[messages.Resource], *, connection_id: str = ""
    ) -> Any:
        """Tell which resources a device has."""
        request = api_pb2.PublishResourceLinksRequest(
            device_id=device_id,
            resources=links,
            command_metadata=messages.CommandMetadata(connection_id=connection_id),
        )
        return await self.call("PublishResourceLinks", request)

    async def send(
        self,
        name: str,
        device_id: str,
        href: str,
        value: object = None,
        *,
        correlation_id: str = "",
        time_to_live_ns: int = 0,
        wait_s: float = 0.0,
    ) -> Any:
        """Send a command to a device: UpdateResource, RetrieveResource, CreateResource or DeleteResource."""
        request = api_pb2.ResourceCommandRequest(
            resource_id=messages.ResourceId(device_id=device_id, href=href),
            correlation_id=correlation_id or str(uuid4()),
            time_to_live=time_to_live_ns,
            wait_for_confirmation=round(wait_s * 1_000_000_000),
            command_metadata=messages.CommandMetadata(),
        )
        if value is not None:
            request.content.CopyFrom(
                value if isinstance(value, messages.Content) else contents.of_value(value, contents.JSON)
            )
        return await self.call(name, request, timeout_s=CALL_S_MAX + wait_s)

    async def confirm(
        self, name: str, device_id: str, href: str, correlation_id: str, value: object = None, status: int = messages.OK
    ) -> Any:
        """Answer a command for a device: ConfirmResourceUpdate and the like."""
        request = api_pb2.ResourceConfirmRequest(
            resource_id=messages.ResourceId(device_id=device_id, href=href),
            correlation_id=correlation_id,
            status=status,  # type: ignore[arg-type]
            command_metadata=messages.CommandMetadata(),
        )
        if value is not None:
            request.content.CopyFrom(contents.of_value(value))
        return await self.call(name, request)


def _metadata(user: str, password: str, token: str, credentials: Path | None) -> list[tuple[str, Any]]:
    import base64

    if credentials is not None:
        try:
            return [(FILE, credentials.read_bytes())]
        except OSError as error:
            raise ConfigurationError(f"cannot read {credentials}: {reason_of(error)}") from error
    if token:
        return [("authorization", f"Bearer {token}")]
    if user:
        return [("authorization", f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")]
    return []


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _refusal(error: Any) -> DeviceError:
    return DeviceError(error.code().name, error.details() or error.code().name)
