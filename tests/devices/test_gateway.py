"""The HTTP gateway: what `curl` sees."""

import asyncio
import base64
import io
import json
from contextlib import asynccontextmanager
from urllib.parse import quote

import aiohttp
import nkeys
import pytest

from jetlake.client.access import Access
from jetlake.devices.client import DeviceClient
from jetlake.devices.content import of_value, value_of
from jetlake.devices.protos import events_2025_pb2 as events
from jetlake.devices.service.grpc_server import Tls
from jetlake.devices.service.service import DeviceService
from jetlake.devices.settings import Settings
from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import start_server_process
from tests.devices import commands as c
from tests.devices.samples import D1, D2
from tests.operator import trusted, write_credentials

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
"""What `curl -d` says of every body."""

SETTINGS = Settings(jetstream=True, grpc_address="127.0.0.1:0", http_address="127.0.0.1:0")


class Curl:
    """Requests to one gateway."""

    def __init__(self, http, url):
        self._http, self._url = http, url

    async def __call__(self, path, method="GET", **options):
        """Return the status and the JSON of an answer; a list if it has lines."""
        async with self._http.request(method, f"{self._url}{path}", **options) as answer:
            text = await answer.text()
            assert answer.content_type == "application/json"
        lines = [json.loads(line) for line in text.splitlines()]
        if answer.status == 200 and all("result" in line for line in lines):
            return answer.status, [line["result"] for line in lines]
        return answer.status, lines[0]


@pytest.fixture
async def service(server, api, stream):
    async with DeviceService(SETTINGS, Access(url=server.url)) as started:
        yield started


@pytest.fixture
async def client(service):
    async with DeviceClient(service.grpc_address) as opened:
        yield opened


@pytest.fixture
async def curl(service):
    async with aiohttp.ClientSession() as http:
        yield Curl(http, service.http_url)


@pytest.fixture
async def lamp(client):
    """A device with a link, content, a connection and a pending command."""
    await client.call("UpdateDeviceMetadata", c.online())
    await client.call("PublishResourceLinks", c.publish_links("/oic/d", c.HREF))
    await client.notify(D1, "/oic/d", {"n": "lamp"})
    await client.notify(D1, c.HREF, {"power": 1})
    await client.send("RetrieveResource", D1, c.HREF, correlation_id="k1")
    return D1


@asynccontextmanager
async def answering(client, name, confirmation):
    """A device that confirms each pending command."""
    ready = asyncio.Event()

    async def work():
        async for each in client.watch(device_ids=[D1]):
            ready.set()
            pending = getattr(each.event, name) if each.WhichOneof("type") == "event" else None
            if pending is not None and pending.audit_context.correlation_id:
                value = value_of(pending.content) if hasattr(pending, "content") else {"power": 42}
                await client.confirm(
                    confirmation, D1, pending.resource_id.href, pending.audit_context.correlation_id, value
                )

    task = asyncio.create_task(work())
    await ready.wait()
    yield
    task.cancel()


async def test_events_from_a_time(curl, client, lamp):
    _, everything = await curl("/api/v1/events")
    changed = [each["resourceChanged"] for each in everything if "resourceChanged" in each]
    # 64-bit numbers are text, as everywhere in protobuf's JSON.
    at = changed[0]["eventMetadata"]["timestamp"]

    _, after = await curl(f"/api/v1/events?timestampFilter={at}")
    _, with_it = await curl(f"/api/v1/events?timestampFilter={int(at) - 1}")

    assert len(everything) == 5
    assert changed[1]["content"] == {"power": 1}
    assert (len(after), len(with_it)) == (2, 3)
    await client.notify(D2, c.HREF, 1)
    assert len((await curl(f"/api/v1/devices/{D1}/events"))[1]) == 5
    assert len((await curl(f"/api/v1/devices/{D1}/resources{c.HREF}/events"))[1]) == 2
    assert len((await curl(f"/api/v1/events?deviceIdFilter={D2}"))[1]) == 1
    assert len((await curl(f"/api/v1/events?resourceIdFilter={quote(D1 + c.HREF)}"))[1]) == 2
    assert await curl("/api/v1/events?deviceIdFilter=foreign") == (200, [])


async def test_state_of_devices(curl, lamp, client):
    await client.notify(D2, c.HREF, 1)

    _, devices = await curl("/api/v1/devices")
    _, links = await curl(f"/api/v1/devices/{D1}/resource-links")
    _, resources = await curl("/api/v1/resources")
    _, pending = await curl("/api/v1/pending-commands")
    _, metadata = await curl(f"/api/v1/devices/{D1}/metadata")

    assert [(each["id"], each.get("name")) for each in devices] == [(D1, "lamp"), (D2, None)]
    assert [each["href"] for each in links[0]["resources"]] == [c.HREF, "/oic/d"]
    assert len(resources) == 3
    assert pending[0]["resourceRetrievePending"]["auditContext"]["correlationId"] == "k1"
    assert metadata[0]["connection"]["status"] == "ONLINE"
    assert len((await curl(f"/api/v1/devices/{D2}"))[1]) == 1
    assert len((await curl("/api/v1/devices?statusFilter=ONLINE"))[1]) == 1
    assert len((await curl(f"/api/v1/devices/{D1}/resources"))[1]) == 2
    assert len((await curl(f"/api/v1/devices/{D1}/resources{c.HREF}/pending-commands"))[1]) == 1
    assert len((await curl(f"/api/v1/devices/{D1}/pending-commands"))[1]) == 1
    assert len((await curl("/api/v1/resource-links"))[1]) == 1
    assert len((await curl("/api/v1/devices-metadata"))[1]) == 1


async def test_one_resource_is_read_from_the_twin(curl, lamp):
    status, answer = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}")
    raw = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}", headers={"Accept": "application/protojson"})

    assert (status, answer["data"]["content"]) == (200, {"power": 1})
    assert raw[1]["data"]["content"]["contentType"] == "application/vnd.ocf+cbor"
    assert (await curl(f"/api/v1/devices/{D1}/resources/none"))[0] == 404


async def test_resource_is_read_from_the_device_itself(curl, client, lamp):
    async with answering(client, "resource_retrieve_pending", "ConfirmResourceRetrieve"):
        status, answer = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}?twin=false")

    assert (status, answer["data"]["content"]) == (200, {"power": 42})


async def test_update_waits_for_the_device(curl, client, lamp):
    async with answering(client, "resource_update_pending", "ConfirmResourceUpdate"):
        status, answer = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}", "PUT", json={"power": 7})
        form = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}", "PUT", data='{"power": 8}', headers=FORM)

    assert (status, answer["data"]["status"], answer["data"]["content"]) == (200, "OK", {"power": 7})
    assert form[1]["data"]["content"] == {"power": 8}


async def test_create_and_delete_wait_for_the_device(curl, client, lamp):
    async with answering(client, "resource_create_pending", "ConfirmResourceCreate"):
        created = await curl(f"/api/v1/devices/{D1}/resource-links{c.HREF}", "POST", json={"rt": ["x"]})
    async with answering(client, "resource_delete_pending", "ConfirmResourceDelete"):
        deleted = await curl(f"/api/v1/devices/{D1}/resource-links{c.HREF}", "DELETE")

    assert (created[0], deleted[0]) == (200, 200)
    assert deleted[1]["data"]["status"] == "OK"


async def test_device_that_does_not_answer_is_a_timeout(curl, lamp):
    status, answer = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}?timeToLive=150ms", "PUT", json={"power": 7})

    assert (status, answer["code"]) == (504, 4)
    assert "did not confirm" in answer["message"]


async def test_pending_commands_are_cancelled(curl, lamp):
    status, answer = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}/pending-commands", "DELETE")
    again, _ = await curl(f"/api/v1/devices/{D1}/resources{c.HREF}/pending-commands", "DELETE")

    assert (status, again) == (200, 404)
    assert answer["events"][0]["resourceRetrieved"]["status"] == "CANCELED"


async def test_twin_is_switched_off_and_the_update_cancelled(curl, lamp):
    path = f"/api/v1/devices/{D1}"

    status, answer = await curl(f"{path}/metadata?correlationId=t1", "PUT", json={"twinEnabled": False})
    cancelled, _ = await curl(f"{path}/pending-metadata-updates/t1", "DELETE")

    assert (status, answer["correlationId"], cancelled) == (200, "t1", 200)


async def test_device_is_deleted(curl, lamp):
    assert await curl(f"/api/v1/devices/{D1}", "DELETE") == (200, {"deviceIds": [D1]})
    assert await curl("/api/v1/devices") == (200, [])


@pytest.mark.parametrize(
    ("path", "method", "body", "status"),
    [
        ("/api/v1/events?timestampFilter=soon", "GET", None, 400),
        ("/api/v1/events?resourceIdFilter=x", "GET", None, 400),
        ("/api/v1/devices?statusFilter=bogus", "GET", None, 400),
        ("/api/v1/devices/a.b/events", "GET", None, 400),
        ("/api/v1/devices/D9/resources/x", "PUT", b"{}", 404),
        ("/api/v1/devices/D9/resources/x", "PUT", b"{", 400),
        ("/api/v1/devices/D9/resources/x", "PUT", b"", 400),
        ("/api/v1/devices/D9/resources/x?timeToLive=soon", "PUT", b"{}", 400),
        ("/api/v1/devices/D9/metadata", "PUT", b"[]", 400),
        ("/api/v1/devices/D9/metadata", "PUT", b"[" * 100_000, 400),
        ("/api/v1/devices/D9/metadata", "PUT", b'{"bogus": 1}', 400),
        ("/api/v1/bogus", "GET", None, 404),
        ("/", "GET", None, 404),
        ("/api/v1/events", "POST", None, 405),
        ("/api/v1/devices", "DELETE", None, 400),
    ],
)
async def test_wrong_request_is_an_error_in_json(curl, path, method, body, status):
    found, answer = await curl(path, method, data=body)

    assert found == status
    assert answer["message"]
    assert isinstance(answer["code"], int)


async def test_body_that_is_too_large_is_refused(curl):
    status, _ = await curl(f"/api/v1/devices/{D1}/resources/x", "PUT", data=io.BytesIO(b"x" * 5_000_000))

    assert status == 413


async def test_events_come_over_a_websocket(service, client):
    async with aiohttp.ClientSession() as http, http.ws_connect(f"{service.http_url}/api/v1/ws/events") as socket:
        await socket.send_json({"createSubscription": {"eventFilter": ["RESOURCE_CHANGED"]}, "correlationId": "a"})
        created = await socket.receive_json()
        await client.notify(D1, c.HREF, {"power": 3})
        event = await socket.receive_json()
        await socket.send_str("garbage")
        failed = await socket.receive_json()

    assert created["result"]["operationProcessed"]["ok"]
    assert event["result"]["event"]["resourceChanged"]["content"] == {"power": 3}
    assert failed["error"]["code"] == 3


async def test_gateway_is_healthy(curl):
    assert await curl("/healthz") == (200, {"status": "ok"})


def basic(text):
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


async def test_gateway_wants_the_users_credentials(start_server, tmp_path):
    own = start_server(["-js", "-sd", str(tmp_path), "--user", "ada", "--pass", "secret"])
    access = Access(url=own.url, user="ada", password="secret")
    async with DeviceService(SETTINGS, access, create_stream=True) as service, aiohttp.ClientSession() as http:
        curl = Curl(http, service.http_url)

        assert (await curl("/api/v1/devices"))[0] == 401
        assert (await curl("/api/v1/devices", headers=basic("ada:wrong")))[0] == 401
        assert await curl("/api/v1/devices", headers=basic("ada:secret")) == (200, [])
        async with http.get(f"{service.http_url}/api/v1/ws/events") as answer:
            assert answer.status == 401


async def test_user_with_a_key_is_known_by_its_seed(start_server, tmp_path):
    seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(bytearray(seed)).public_key.decode()
    config = f'jetstream: {{store_dir: "{tmp_path / "store"}"}}\nauthorization: {{users: [{{nkey: {public}}}]}}'
    own = start_server(config=config)
    path = tmp_path / "user.nk"
    path.write_bytes(seed)
    access = Access(url=own.url, nkey=path)
    async with (
        DeviceService(SETTINGS, access, create_stream=True) as service,
        DeviceClient(service.grpc_address, credentials=path) as client,
    ):
        answer = await client.notify(D1, c.HREF, 1)

    assert answer.events[0].resource_changed.audit_context.user_id == public


@pytest.mark.nats_server
async def test_user_of_an_operator_is_known_by_the_credentials_file(tmp_path):
    """Only on a server that trusts operators."""
    user = trusted(nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER))
    path = write_credentials(tmp_path / "user.creds", user)
    config = f'{user.config}jetstream: {{store_dir: "{tmp_path / "store"}"}}'
    own = start_server_process("nats-server", tmp_path, config=config)
    access = Access(url=own.url, credentials=path)
    try:
        async with (
            DeviceService(SETTINGS, access, create_stream=True) as service,
            DeviceClient(service.grpc_address, credentials=path) as client,
            aiohttp.ClientSession() as http,
        ):
            answer = await client.notify(D1, c.HREF, 1)
            curl = Curl(http, service.http_url)
            known = {"nats-credentials": base64.b64encode(user.credentials).decode()}
            assert (await curl("/api/v1/events"))[0] == 401
            assert (await curl("/api/v1/events", headers=known))[0] == 200
    finally:
        own.stop()

    assert answer.events[0].resource_changed.audit_context.user_id == user.user_key


async def test_gateway_speaks_tls(server, api, stream, tmp_path):
    authority = Authority(tmp_path)
    made = authority.server()
    tls = Tls(made.certificate_file, made.key_file)
    async with DeviceService(SETTINGS, Access(url=server.url), tls=tls) as service, aiohttp.ClientSession() as http:
        status, _ = await Curl(http, service.http_url)("/api/v1/devices", ssl=authority.context())

    assert service.http_url.startswith("https://")
    assert status == 200


def test_content_of_images_stays_base64():
    image = events.Content(data=b"\x89PNG", content_type="image/png")

    assert value_of(image) == b"\x89PNG"
    assert value_of(of_value({"a": 1})) == {"a": 1}
