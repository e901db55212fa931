"""What messages and requests have the engine do for their sender: schedules, uploads, answers, copies."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

import jetlake
from jetlake.management.endpoints import scans
from tests.management.api_twin import ApiTwin

CONFIG = """
port: -1
jetstream {{ store_dir: "{folder}", domain: hub }}
authorization {{
  users: [
    {{ user: all, password: x }}
    {{ user: limited, password: x, permissions: {{
         publish: {{ allow: ["$JS.API.>", "$JS.hub.API.>", "$JS.ACK.>", "jobs.later.*", "jobs.own.*"]
                     deny: ["$JS.API.STREAM.MSG.GET.SECRET", "$JS.API.DIRECT.GET.SECRET", "$JS.API.CONSUMER.*.SECRET.>",
                            "$JS.API.CONSUMER.CREATE.SECRET", "$JS.API.STREAM.MSG.GET.JOBS",
                            "$JS.API.DIRECT.GET.JOBS.>"] }}
         subscribe: {{ allow: ["_INBOX.>", "jobs.own.*"] }}
    }} }}
  ]
}}
"""

SCHEDULE = {"Nats-Schedule": "@at 2099-01-01T00:00:00Z"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("sender_rights")
    file = folder / "server.conf"
    file.write_text(CONFIG.format(folder=folder / "store"))
    with jetlake.Server(config=file) as server:
        asyncio.run(prepare(server))
        yield server


async def prepare(server: jetlake.Server) -> None:
    jobs = {"name": "JOBS", "subjects": ["jobs.>"], "allow_msg_schedules": True, "allow_rollup_hdrs": True}
    secret = {"name": "SECRET", "subjects": ["secret.>"]}
    for config in (jobs, secret):
        assert "error" not in await ask(server, "all", f"$JS.API.STREAM.CREATE.{config['name']}", config)
    await ask(server, "all", "secret.1", b"secret")
    await ask(server, "all", "jobs.hidden.1", b"hidden")


async def connect(server: jetlake.Server, user: str) -> Client:
    return await nats.connect(server.url, user=user, password="x", error_cb=ignore)


async def ignore(_error: Exception) -> None:
    return None


async def ask(server, user: str, subject: str, body: object = b"", headers: dict[str, str] | None = None) -> dict:
    connection = await connect(server, user)
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await connection.request(subject, payload, timeout=60, headers=headers)
    await connection.close()
    return json.loads(answer.data)


@pytest.mark.parametrize(
    ("headers", "refusal"),
    [
        ({**SCHEDULE, "Nats-Schedule-Target": "jobs.own.a"}, ""),
        ({**SCHEDULE, "Nats-Schedule-Target": "jobs.run.a"}, 'schedule target "jobs.run.a": publish is not allowed'),
        ({"Nats-Schedule-Target": "jobs.run.a"}, ""),
        (
            {**SCHEDULE, "Nats-Schedule-Target": "jobs.own.a", "Nats-Schedule-Source": "jobs.hidden.1"},
            'schedule source "jobs.hidden.1": subscribe is not allowed',
        ),
        ({**SCHEDULE, "Nats-Schedule-Target": "jobs.own.a", "Nats-Schedule-Source": "jobs.own.b"}, ""),
        (
            {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "jobs.hidden.2"},
            'scheduler "jobs.hidden.2": publish is not allowed',
        ),
    ],
)
async def test_schedules_reach_what_their_sender_may(server, headers, refusal):
    subject = "jobs.later.1"

    answer = await ask(server, "limited", subject, b"now", headers)

    described = answer.get("error", {}).get("description", "")
    assert described == (f"permissions violation for {refusal}" if refusal else "")
    assert "permissions" not in str(await ask(server, "all", subject, b"now", headers))


async def upload(server: jetlake.Server, user: str, name: str, subject: str) -> None:
    header = {"Jetlake-Upload": f"{name}/1/query/run"}
    assert (await ask(server, user, subject, b"row", header)).get("uploaded") == 1
    end = {"Jetlake-Upload": f"{name}/1/end"}
    assert (await ask(server, user, subject, b"", end)).get("uploaded") == 1


@pytest.mark.parametrize("prefix", ["$JS.API", "$JS.hub.API"])
async def test_uploads_are_committed_and_dropped_by_those_who_might_publish_them(server, prefix):
    batch = 1 if prefix == "$JS.API" else 2
    await upload(server, "all", f"hidden{batch}", "jobs.hidden.9")
    await upload(server, "limited", f"own{batch}", "jobs.own.9")

    def commit(name: str) -> dict[str, object]:
        return {"query": name, "batch": batch, "uploads": [{"id": f"{name}{batch}", "messages": 1}]}

    refused = await ask(server, "limited", f"{prefix}.STREAM.UPLOAD.COMMIT.JOBS", commit("hidden"))
    not_dropped = await ask(server, "limited", f"{prefix}.STREAM.UPLOAD.ABORT.JOBS", {"uploads": [f"hidden{batch}"]})
    granted = await ask(server, "limited", f"{prefix}.STREAM.UPLOAD.COMMIT.JOBS", commit("own"))

    needed = 'permissions violation: this needs the right to publish to "jobs.hidden.9"'
    assert refused["error"]["description"] == not_dropped["error"]["description"] == needed
    assert granted["messages"] == 1
    # It is still there, and who may commit it does.
    assert (await ask(server, "all", "$JS.API.STREAM.UPLOAD.COMMIT.JOBS", commit("hidden")))["messages"] == 1


async def test_answers_go_only_where_the_sender_may_publish_or_listen(server):
    listener, limited = await connect(server, "all"), await connect(server, "limited")
    heard: list[Msg] = []

    async def hear(message: Msg) -> None:
        heard.append(message)

    for subject in ("elsewhere.>", "jobs.own.reply"):
        await listener.subscribe(subject, cb=hear)
    await listener.flush()
    for subject, body in (
        ("$JS.API.INFO", b""),
        ("$JS.API.STREAM.MSG.GET.OPEN", b'{"seq":1}'),
        ("$JS.API.DIRECT.GET.OPEN", b'{"seq":1}'),
        ("$SYS.REQ.USER.INFO", b""),
        ("jobs.own.1", b"stored"),
    ):
        await limited.publish(subject, body, reply="elsewhere.reply")
    await limited.publish("$JS.API.INFO", b"", reply="jobs.own.reply")
    await limited.flush()
    # Whatever was to be answered before this is answered.
    assert "error" not in json.loads((await limited.request("$JS.API.INFO", b"", timeout=60)).data)
    await listener.flush()
    for _ in range(6_000):
        if heard:
            break
        await asyncio.sleep(0.01)
    await listener.close()
    await limited.close()

    assert [message.subject for message in heard] == ["jobs.own.reply"]


@pytest.mark.parametrize("field", ["mirror", "sources"])
async def test_copies_need_the_right_to_read_what_they_copy(server, field):
    origin = {"name": "SECRET"}
    config = {"name": f"COPY-{field}", field: origin if field == "mirror" else [origin]}

    refused = await ask(server, "limited", f"$JS.API.STREAM.CREATE.{config['name']}", config)
    granted = await ask(server, "all", f"$JS.API.STREAM.CREATE.{config['name']}", config)
    # What copies already may be changed otherwise.
    changed = {**granted["config"], "description": "changed"}
    updated = await ask(server, "limited", f"$JS.API.STREAM.UPDATE.{config['name']}", changed)

    needed = "this needs the right to publish to '$JS.API.STREAM.MSG.GET.SECRET'"
    assert refused["error"]["description"] == f"permissions violation for origin 'SECRET': {needed}"
    assert "error" not in granted
    assert "error" not in updated, updated


@pytest.mark.parametrize(
    ("address", "is_here"),
    [("127.0.0.1", True), ("192.0.2.1", False), ("2001:db8::1", False), ("", False), ("0.0.0.0", False), ("::", False)],
)
def test_addresses_of_this_host(address, is_here):
    assert scans.is_address_of_this_host(address) is is_here


@pytest.mark.parametrize("address", ["192.0.2.1", None])
def test_files_are_shown_only_to_connections_from_this_host(address):
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S"})
    described = b"[]" if address is None else json.dumps([{"id": 7, "ip": address}]).encode()
    api.engine.connections_json = described

    refusal = api.error("STREAM.SCAN.FILES.S")

    assert refusal == f"10051 {scans.ELSEWHERE}"


async def test_files_are_shown_to_whoever_is_here(server):
    answer = await ask(server, "all", "$JS.API.STREAM.SCAN.FILES.JOBS")

    assert "error" not in answer
