"""The gRPC services: commands, events, subscriptions, health, reflection, TLS, users."""

import asyncio
from contextlib import AsyncExitStack, aclosing

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.client.dead_letters import DeadLetters
from jetlake.devices.client import ClientTls, DeviceClient
from jetlake.devices.content import value_of
from jetlake.devices.protos import api_pb2
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.service.grpc_server import Tls
from jetlake.devices.service.service import DeviceService
from jetlake.devices.settings import Settings
from jetlake.devices.stream import DEAD_STREAM
from jetlake.errors import ClientError, ConfigurationError, DeviceError, StartError
from tests.compatibility.certificates import Authority
from tests.devices import commands as c
from tests.devices.samples import D1, D2

SETTINGS = Settings(jetstream=True, grpc_address="127.0.0.1:0", http_address="")

USERS = """
jetstream: {store_dir: "%s"}
accounts {
  A { jetstream: enabled, users: [
    {user: ada, password: secret},
    {user: eve, password: secret, permissions: {publish: {deny: "events.>"}}}
  ] }
  B { jetstream: enabled, users: [{user: bob, password: secret}] }
}
"""


@pytest.fixture
async def service(server, api, stream):
    async with DeviceService(SETTINGS, Access(url=server.url)) as started:
        yield started


@pytest.fixture
async def client(service):
    async with DeviceClient(service.grpc_address) as opened:
        yield opened


def refused(status, match=None):
    return pytest.raises(DeviceError, match=match, check=lambda error: error.status == status)


async def test_commands_and_events_over_grpc(client):
    await client.publish_links(D1, [events.Resource(href=c.HREF)], connection_id="c1")
    answer = await client.notify(D1, c.HREF, {"power": 1}, connection_id="c1", sequence=1)
    again = await client.notify(D1, c.HREF, {"power": 1}, connection_id="c1", sequence=1)
    await client.notify(D2, c.HREF, {"power": 9})

    found = [event async for event in client.events()]

    assert value_of(answer.events[0].resource_changed.content) == {"power": 1}
    assert not again.events
    assert [type(event).__name__ for event in found] == ["ResourceLinksPublished", "ResourceChanged", "ResourceChanged"]
    at_ns = found[1].event_metadata.timestamp
    of_d1 = [event async for event in client.events(after_ns=at_ns - 1, device_ids=[D1])]
    assert [event.event_metadata.timestamp for event in of_d1] == [at_ns]
    assert [event async for event in client.events(after_ns=at_ns, resources=[(D1, c.HREF)])] == []
    assert [event async for event in client.events(device_ids=["foreign"])] == []
    # Links and metadata are reached by hrefs of their own.
    links = [event async for event in client.events(resources=[(D1, "/plgd/res")])]
    assert [type(event).__name__ for event in links] == ["ResourceLinksPublished"]


async def test_command_waits_for_the_confirmation_of_a_device(service, client):
    await client.notify(D1, c.HREF, {"power": 1})
    async with DeviceClient(service.grpc_address) as device:
        watching = device.watch(event_types=[8])

        async def answer():
            async with aclosing(watching) as found:
                async for each in found:
                    if each.WhichOneof("type") == "event":
                        pending = each.event.resource_update_pending
                        correlation_id = pending.audit_context.correlation_id
                        value = value_of(pending.content)
                        await device.confirm("ConfirmResourceUpdate", D1, c.HREF, correlation_id, value)
                        return
                    ready.set()

        ready = asyncio.Event()
        answering = asyncio.create_task(answer())
        await ready.wait()
        response = await client.send("UpdateResource", D1, c.HREF, {"power": 5}, wait_s=30)
        await answering

    assert value_of(response.confirmation.resource_updated.content) == {"power": 5}


async def test_reading_gives_the_current_state(client):
    await client.call("UpdateDeviceMetadata", c.online())
    await client.call("PublishResourceLinks", c.publish_links("/oic/d", c.HREF))
    await client.notify(D1, "/oic/d", {"n": "lamp"})
    await client.notify(D1, c.HREF, {"power": 1})
    await client.send("UpdateResource", D1, c.HREF, {"power": 2}, correlation_id="k1")
    await client.call("UpdateDeviceMetadata", c.twin("t1", twin_enabled=False))
    await client.notify(D2, c.HREF, {"power": 3})

    async def read(name, request):
        return [answer async for answer in client.stream(name, request)]

    state, one = api_pb2.GetStateRequest(), api_pb2.GetStateRequest(http_resource_id_filter=[f"{D1}{c.HREF}"])
    devices = await read("GetDevices", api_pb2.GetDevicesRequest())
    assert [(each.id, each.name, each.pending_command_count) for each in devices] == [(D1, "lamp", 2), (D2, "", 0)]
    online = api_pb2.GetDevicesRequest(status_filter=[api_pb2.GetDevicesRequest.ONLINE])
    assert [each.id for each in await read("GetDevices", online)] == [D1]
    assert await read("GetDevices", api_pb2.GetDevicesRequest(type_filter=["bogus"])) == []
    (links,) = await read("GetResourceLinks", state)
    assert [link.href for link in links.resources] == [c.HREF, "/oic/d"]
    assert len(await read("GetResources", state)) == 3
    assert [each.data.resource_id.href for each in await read("GetResources", one)] == [c.HREF]
    assert len(await read("GetDevicesMetadata", state)) == 1
    kinds = [each.WhichOneof("command") for each in await read("GetPendingCommands", state)]
    assert kinds == ["resource_update_pending", "device_metadata_update_pending"]
    assert len(await read("GetPendingCommands", one)) == 1


async def test_subscription_gets_what_comes_after_it(client):
    await client.notify(D1, c.HREF, 0)
    watching = client.watch(event_types=[16], device_ids=[D1])
    first = await anext(watching)

    await client.publish_links(D1, [events.Resource(href=c.HREF)])
    await client.notify(D2, c.HREF, 1)
    await client.notify(D1, c.HREF, 2)
    second = await anext(watching)
    await watching.aclose()

    assert first.operation_processed.ok
    assert value_of(second.event.resource_changed.content) == 2
    assert (second.subscription_id, second.dropped) == (first.subscription_id, 0)


async def test_subscription_by_href_and_its_end(service):
    async with grpc.aio.insecure_channel(service.grpc_address) as channel, DeviceClient(service.grpc_address) as client:
        call = channel.stream_stream(
            "/jetlake.devices.v1.Gateway/SubscribeToEvents",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=api_pb2.SubscriptionEvent.FromString,
        )()
        request = api_pb2.SubscribeToEventsRequest(correlation_id="one")
        request.create_subscription.href_filter.append("/b")
        await call.write(request)
        created = await call.read()
        await client.notify(D1, "/a", 1)
        await client.notify(D1, "/b", 2)
        event = await call.read()
        end = api_pb2.SubscribeToEventsRequest(correlation_id="two")
        end.cancel_subscription.subscription_id = created.subscription_id
        await call.write(end)
        ended = await call.read()
        await call.write(end)
        unknown = await call.read()
        await call.write(api_pb2.SubscribeToEventsRequest(correlation_id="three"))
        empty = await call.read()
        await call.done_writing()
        after = await call.read()

    assert (created.correlation_id, created.operation_processed.ok) == ("one", True)
    assert event.event.resource_changed.resource_id.href == "/b"
    assert (ended.correlation_id, ended.WhichOneof("type")) == ("two", "subscription_canceled")
    assert not unknown.operation_processed.ok
    assert "create_subscription" in empty.operation_processed.message
    assert after == grpc.aio.EOF


async def test_slow_subscriber_is_told_what_it_lost(server, api, stream):
    settings = Settings(jetstream=True, grpc_address="127.0.0.1:0", http_address="", subscription_buffer_max=3)
    big = "x" * 200_000
    async with (
        DeviceService(settings, Access(url=server.url)) as service,
        DeviceClient(service.grpc_address) as client,
        DeviceClient(service.grpc_address) as slow,
    ):
        watching = slow.watch()
        await anext(watching)
        # More than the windows of HTTP/2 and the buffer hold.
        for number in range(40):
            await client.notify(D1, c.HREF, f"{number}{big}")

        seen, dropped = 0, 0
        while not dropped:
            each = await anext(watching)
            seen, dropped = seen + 1, dropped + each.dropped
            await client.notify(D1, c.HREF, f"more {seen}")
        await watching.aclose()

    assert seen < 40


@pytest.mark.parametrize(
    ("name", "request_message", "status"),
    [
        ("NotifyResourceChanged", c.notify(1, device="*"), "INVALID_ARGUMENT"),
        ("NotifyResourceChanged", api_pb2.NotifyResourceChangedRequest(), "INVALID_ARGUMENT"),
        ("UpdateResource", c.command("k1", 2), "NOT_FOUND"),
        ("ConfirmResourceUpdate", c.confirm("k1"), "INVALID_ARGUMENT"),
        ("CancelPendingCommands", api_pb2.CancelPendingCommandsRequest(), "INVALID_ARGUMENT"),
    ],
)
async def test_refusal_has_a_status_and_words(client, name, request_message, status):
    with refused(status):
        await client.call(name, request_message)


@pytest.mark.parametrize("name", ["NotifyResourceChanged", "GetEvents", "SubscribeToEvents"])
async def test_garbage_is_refused_and_kept_as_a_dead_letter(server, service, name):
    kind = "ResourceAggregate" if name == "NotifyResourceChanged" else "Gateway"
    path = f"/jetlake.devices.v1.{kind}/{name}"
    async with grpc.aio.insecure_channel(service.grpc_address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await send_garbage(channel, name, path)
        # The service is as well as before.
        async with DeviceClient(service.grpc_address) as client:
            await client.notify(D1, c.HREF, 1)

    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert name in failed.value.details()
    async with DeadLetters(Access(url=server.url), DEAD_STREAM) as dead:
        (letter,) = await dead.all()
    assert (letter.original_subject, letter.payload) == (f"grpc.{name}", b"\xff\xff\xff")


async def send_garbage(channel, name, path):
    if name == "SubscribeToEvents":
        call = channel.stream_stream(path)()
        await call.write(b"\xff\xff\xff")
        await call.read()
    elif name == "GetEvents":
        [each async for each in channel.unary_stream(path)(b"\xff\xff\xff")]
    else:
        await channel.unary_unary(path)(b"\xff\xff\xff")


async def test_unknown_method_and_http_on_the_port_do_no_harm(service, client):
    async with grpc.aio.insecure_channel(service.grpc_address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await channel.unary_unary("/jetlake.devices.v1.Gateway/Bogus")(b"")
    assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED
    host, _, port = service.grpc_address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(range(256)))
    await reader.read()
    writer.close()

    await client.notify(D1, c.HREF, 1)


async def test_health_says_serving(service):
    async with grpc.aio.insecure_channel(service.grpc_address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for name in ("", "jetlake.devices.v1.ResourceAggregate", "jetlake.devices.v1.Gateway"):
            answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_reflection_lists_the_services(service):
    async with grpc.aio.insecure_channel(service.grpc_address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        call = stub.ServerReflectionInfo()
        await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = await call.read()
        await call.write(
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="jetlake.devices.v1.ResourceAggregate")
        )
        file = await call.read()
        call.cancel()

    names = {each.name for each in listed.list_services_response.service}
    assert {"jetlake.devices.v1.ResourceAggregate", "jetlake.devices.v1.Gateway", "grpc.health.v1.Health"} <= names
    assert any(b"NotifyResourceChanged" in each for each in file.file_descriptor_response.file_descriptor_proto)


async def test_service_speaks_tls(server, api, stream, tmp_path):
    authority = Authority(tmp_path)
    made = authority.server()
    tls = Tls(made.certificate_file, made.key_file)
    async with DeviceService(SETTINGS, Access(url=server.url), tls=tls) as service:
        address = service.grpc_address.replace("127.0.0.1", "localhost")
        async with DeviceClient(address, tls=ClientTls(ca=authority.file)) as client:
            await client.notify(D1, c.HREF, 1)
        async with DeviceClient(address) as plain:
            with refused("UNAVAILABLE"):
                await plain.notify(D1, c.HREF, 2)


async def test_users_see_their_own_account_and_may_do_what_the_server_allows(start_server, tmp_path):
    own = start_server(config=USERS % (tmp_path / "store"))
    for user in ("ada", "bob"):
        async with open_api(Access(url=own.url, user=user, password="secret")) as api:
            await api.request("STREAM.CREATE.EVENTS", {"name": "EVENTS", "subjects": ["events.>"]})
    async with AsyncExitStack() as stack:
        access = Access(url=own.url, user="ada", password="secret")
        service = await stack.enter_async_context(DeviceService(SETTINGS, access))
        ada, bob, eve, wrong, nobody = [
            await stack.enter_async_context(DeviceClient(service.grpc_address, **each))
            for each in (
                {"user": "ada", "password": "secret"},
                {"user": "bob", "password": "secret"},
                {"user": "eve", "password": "secret"},
                {"user": "ada", "password": "wrong"},
                {},
            )
        ]

        await ada.notify(D1, c.HREF, 1)
        await bob.notify(D1, c.HREF, 2)

        with refused("PERMISSION_DENIED", "events"):
            await eve.notify(D1, c.HREF, 3)
        for stranger in (wrong, nobody):
            with refused("UNAUTHENTICATED"):
                await stranger.notify(D1, c.HREF, 4)
        with refused("UNAUTHENTICATED"):
            [each async for each in nobody.events()]
        (of_ada,) = [event async for event in ada.events()]
        (of_bob,) = [event async for event in bob.events()]
        (of_eve,) = [event async for event in eve.events()]

    assert (of_ada.audit_context.user_id, of_ada.audit_context.owner) == ("ada", "A")
    assert (of_bob.audit_context.user_id, value_of(of_bob.content)) == ("bob", 2)
    assert of_eve == of_ada


async def test_token_is_a_credential(start_server, tmp_path):
    own = start_server(["-js", "-sd", str(tmp_path / "store"), "--auth", "s3cr3t"])
    access = Access(url=own.url, token="s3cr3t")
    async with (
        DeviceService(SETTINGS, access, create_stream=True) as service,
        DeviceClient(service.grpc_address, token="s3cr3t") as client,
        DeviceClient(service.grpc_address, token="guess") as guess,
    ):
        await client.notify(D1, c.HREF, 1)
        with refused("UNAUTHENTICATED"):
            await guess.notify(D1, c.HREF, 1)


@pytest.mark.parametrize("value", ["Basic !!!", "Basic eHg=", "Digest x", "Bearer "])
async def test_credentials_that_cannot_be_read_are_refused(service, value):
    async with grpc.aio.insecure_channel(service.grpc_address) as channel:
        call = channel.unary_unary("/jetlake.devices.v1.ResourceAggregate/NotifyResourceChanged")
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call(b"", metadata=[("authorization", value)])

    assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_service_refuses_to_start_with_the_documentations_stream(server, api):
    await api.request("STREAM.CREATE.events", {"name": "events", "subjects": ["events.*"]})

    with pytest.raises(ConfigurationError, match="does not match"):
        async with DeviceService(SETTINGS, Access(url=server.url)):
            pass


async def test_service_refuses_to_start_without_a_stream_or_a_server(server, api):
    with pytest.raises(ConfigurationError, match="jetlake stream add"):
        async with DeviceService(SETTINGS, Access(url=server.url)):
            pass
    with pytest.raises(ClientError, match="cannot connect"):
        async with DeviceService(SETTINGS, Access(url="nats://127.0.0.1:1")):
            pass


async def test_taken_port_is_a_clear_error(server, service):
    settings = Settings(jetstream=True, grpc_address=service.grpc_address, http_address="")

    with pytest.raises(StartError, match="cannot listen"):
        async with DeviceService(settings, Access(url=server.url)):
            pass


async def test_core_mode_serves_from_memory(server, api):
    settings = Settings(grpc_address="127.0.0.1:0", http_address="")
    async with (
        DeviceService(settings, Access(url=server.url)) as service,
        DeviceClient(service.grpc_address) as client,
    ):
        for value in range(20):
            await client.notify(D1, c.HREF, value)
        found = [event async for event in client.events()]
        states = [each async for each in client.stream("GetResources", api_pb2.GetStateRequest())]

    assert [event.event_metadata.version for event in found] == [16, 17, 18, 19, 20]
    assert value_of(states[0].data.content) == 19
    assert await api.stream_names() == []


async def test_service_survives_a_restart_of_the_server(start_server, tmp_path):
    flags = ["-js", "-sd", str(tmp_path / "store")]
    first = start_server(flags)
    async with (
        DeviceService(SETTINGS, Access(url=first.url), create_stream=True) as service,
        DeviceClient(service.grpc_address) as client,
    ):
        await client.notify(D1, c.HREF, 0, connection_id="c1", sequence=1)
        first.stop()
        start_server(flags, port=first.port)

        for _ in range(300):
            try:
                await client.notify(D1, c.HREF, 1, connection_id="c1", sequence=2)
                break
            except DeviceError as error:
                assert error.status == "UNAVAILABLE"  # noqa: PT017
                await asyncio.sleep(0.2)
        found = [value_of(event.content) async for event in client.events()]

    assert found == [0, 1]
