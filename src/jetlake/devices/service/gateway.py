"""The gRPC services over HTTP, in JSON, so that `curl` is enough.

```sh
curl 'http://127.0.0.1:9101/api/v1/events?timestampFilter=1625130000000000000'
```

A list is one line for each entry, `{"result": …}`; a failure is `{"code": …, "message": …}` with gRPC's number.

Invariant: no request makes the gateway answer anything but JSON, or end.
"""

import json
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Any

import grpc
from aiohttp import WSMsgType, web

from jetlake.devices.protos import api_pb2
from jetlake.devices.service.credentials import of_call
from jetlake.devices.service.gateway_paths import (
    RESOURCE_PATH,
    ROOT,
    ROUTES,
    WEBSOCKET_PATH,
    GatewayRoute,
    HttpCall,
    resource_request,
)
from jetlake.devices.service.grpc_server import REQUEST_BYTES_MAX, STOP_S_MAX, Tls, answers
from jetlake.devices.service.json_form import as_json, as_line, from_json
from jetlake.devices.service.sessions import UserSessions
from jetlake.devices.service.subscriptions import Subscriptions
from jetlake.devices.session import UserSession, event_of
from jetlake.errors import ConfigurationError, DeviceError, StartError, reason_of

RAW_JSON = "application/protojson"
"""A client that accepts this gets protobuf's own JSON, with the content of resources as bytes."""

HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}

_log = logging.getLogger("jetlake.devices")


class Gateway:
    """The HTTP side of a service."""

    def __init__(self, sessions: UserSessions) -> None:
        self._sessions = sessions
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, address: str, tls: Tls | None) -> None:
        """Listen. Raises `StartError` if the address is taken."""
        host, _, port = address.rpartition(":")
        application = web.Application(middlewares=[_in_json], client_max_size=REQUEST_BYTES_MAX)
        for route in ROUTES:
            application.router.add_route(route.method, route.path, self._handler(route))
        application.router.add_get(RESOURCE_PATH, self._read_resource)
        application.router.add_get(WEBSOCKET_PATH, self._subscribe)
        application.router.add_get("/healthz", _healthy)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=STOP_S_MAX)
        await self._runner.setup()
        try:
            site = web.TCPSite(self._runner, host.strip("[]") or None, int(port), ssl_context=_context(tls))
            await site.start()
        except (OSError, ValueError, OverflowError) as error:
            await self.stop()
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            raise StartError(f"cannot listen on {address} for HTTP: {reason}") from error
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _handler(self, route: GatewayRoute) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            call = await _call(request)
            return await self._answer(request, route.name, route.build(call))

        return handle

    async def _read_resource(self, request: web.Request) -> web.StreamResponse:
        name, made = resource_request(await _call(request))
        if name == "RetrieveResource":
            return await self._answer(request, name, made)
        async with (
            self._sessions.use(of_call(_lower(request))) as session,
            aclosing(answers(session, name, made)) as found,
        ):
            async for answer in found:
                return _json({"data": as_json(answer, decoded=_is_decoded(request))["data"]})
        raise DeviceError("NOT_FOUND", f"resource {made.resource_id_filter[0].resource_id.href} is not known")

    async def _answer(self, request: web.Request, name: str, made: Any) -> web.StreamResponse:
        async with self._sessions.use(of_call(_lower(request))) as session:
            decoded = _is_decoded(request)
            if name.startswith("Get"):
                return await _streamed(request, session, name, made, decoded=decoded)
            answer = await session.execute(name, made, peer=str(request.remote or ""))
            if isinstance(answer, api_pb2.CommandResponse) and answer.HasField("confirmation"):
                return _json({"data": as_json(event_of(answer.confirmation), decoded=decoded)})
            return _json(as_json(answer, decoded=decoded))

    async def _subscribe(self, request: web.Request) -> web.StreamResponse:
        credentials = of_call(_lower(request))
        socket = web.WebSocketResponse(heartbeat=30.0, max_msg_size=REQUEST_BYTES_MAX)
        async with self._sessions.use(credentials) as session:
            await socket.prepare(request)
            try:
                async with aclosing(Subscriptions(session).run(_requests(socket))) as found:  # type: ignore[type-var]
                    async for answer in found:
                        await socket.send_json({"result": as_json(answer, decoded=_is_decoded(request))})
            except DeviceError as error:
                with suppress(ConnectionError):
                    await socket.send_json({"error": _failure(error)})
            except ConnectionError:
                _log.debug("a subscriber went away")
        await socket.close()
        return socket


async def _requests(socket: web.WebSocketResponse) -> AsyncIterator[Any]:
    async for message in socket:
        if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
            continue
        yield from_json(_parsed(message.data), api_pb2.SubscribeToEventsRequest())
    # The socket is closed: the client has gone.
    raise ConnectionError


async def _streamed(
    request: web.Request, session: UserSession, name: str, made: Any, *, decoded: bool
) -> web.StreamResponse:
    response: web.StreamResponse | None = None
    async with aclosing(answers(session, name, made)) as found:
        async for answer in found:
            if response is None:
                # Only now is it certain that there is no error to report instead.
                response = await _started(request)
            await response.write(as_line(answer, decoded=decoded))
    response = response or await _started(request)
    await response.write_eof()
    return response


async def _started(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    return response


async def _call(request: web.Request) -> HttpCall:
    body = await request.read()
    query: dict[str, list[str]] = {}
    for name, value in request.query.items():
        query.setdefault(name.lower(), []).append(value)
    content_type = request.content_type if "Content-Type" in request.headers else ""
    # curl says so for every -d that does not say otherwise.
    if content_type in ("application/x-www-form-urlencoded", "application/octet-stream"):
        content_type = ""
    is_json = body and request.method == "PUT" and request.path.endswith("/metadata")
    return HttpCall(dict(request.match_info), query, content_type, body, _parsed(body) if is_json else None)


def _parsed(body: bytes | str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DeviceError("INVALID_ARGUMENT", f"the body is not JSON: {error}") from error


def _lower(request: web.Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _is_decoded(request: web.Request) -> bool:
    return RAW_JSON not in request.headers.get("Accept", "") and request.query.get("accept") != RAW_JSON


def _json(value: Any, status: int = 200) -> web.Response:
    return web.json_response(value, status=status)


def _failure(error: DeviceError) -> dict[str, Any]:
    return {"code": grpc.StatusCode[error.status].value[0], "message": str(error), "details": []}


async def _healthy(_request: web.Request) -> web.Response:
    return _json({"status": "ok"})


@web.middleware
async def _in_json(request: web.Request, handler: Any) -> web.StreamResponse:
    """Turn every failure into JSON."""
    try:
        answer: web.StreamResponse = await handler(request)
        return answer
    except DeviceError as error:
        return _json(_failure(error), HTTP_STATUS.get(error.status, 500))
    except web.HTTPException as error:
        wanted = f"; the paths begin with {ROOT}" if error.status == 404 else ""
        failure = DeviceError("NOT_FOUND" if error.status == 404 else "INVALID_ARGUMENT", f"{error.reason}{wanted}")
        return _json(_failure(failure), error.status)
    except ConnectionError:
        raise
    except Exception:  # noqa: BLE001 (one request must not end the others)
        _log.exception("request %s %s failed", request.method, request.path)
        failure = DeviceError("INTERNAL", "the gateway has a bug: see its log")
        return _json(_failure(failure), 500)


def _context(tls: Tls | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
        if tls.ca is not None:
            context.load_verify_locations(tls.ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:
        raise ConfigurationError(f"the TLS files cannot be used: {reason_of(error)}") from error
    return context
