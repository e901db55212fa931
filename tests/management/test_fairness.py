"""A request that takes long, and a flood of them, keep other accounts and those who only read from waiting.

Streams have many subjects, and archives many consumers.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

import jetlake
from tests.compatibility.archives import Entry, archive, frame

CONFIG = """
port: -1
max_payload: 8MB
jetstream {{ store_dir: "{folder}" }}
accounts {{
  A {{ jetstream: true, users: [ {{ user: a, password: x }} ] }}
  B {{ jetstream: true, users: [ {{ user: b, password: x }} ] }}
}}
"""

WAIT_S = 60.0


@pytest.fixture
def server(tmp_path: Path):
    file = tmp_path / "server.conf"
    file.write_text(CONFIG.format(folder=tmp_path / "store"))
    with jetlake.Server(config=file) as server:
        yield server


def subjects_of(count: int, group: str = "s") -> list[str]:
    return [f"{group}{number}.x" for number in range(count)]


async def test_a_second_account_is_answered_while_the_first_one_floods(server):
    flooder = await nats.connect(server.url, user="a", password="x")
    other = await nats.connect(server.url, user="b", password="x")
    answered: list[str] = []
    all_answered = asyncio.Event()

    async def hear(message: Msg) -> None:
        answered.append("a" if "error" not in json.loads(message.data) else message.data.decode())
        if len(answered) - answered.count("b") == 2_012:
            all_answered.set()

    inbox = flooder.new_inbox()
    await flooder.subscribe(inbox, cb=hear)
    for number in range(12):
        config = {"name": f"S{number}", "subjects": subjects_of(3_000, f"g{number}-"), "storage": "memory"}
        await flooder.publish(f"$JS.API.STREAM.CREATE.S{number}", json.dumps(config).encode(), reply=inbox)
    for _ in range(2_000):
        await flooder.publish("$JS.API.STREAM.NAMES", b"", reply=inbox)
    await flooder.flush()

    for _ in range(5):
        await other.request("$JS.API.INFO", b"", timeout=WAIT_S)
        answered.append("b")
    before_last = answered.count("a")
    await asyncio.wait_for(all_answered.wait(), WAIT_S)
    await flooder.close()
    await other.close()

    assert before_last < 2_012
    assert answered.count("a") == 2_012
    assert answered.count("b") == 5


async def test_a_stream_can_have_twenty_thousand_subjects(server):
    client = await nats.connect(server.url, user="a", password="x")

    async def ask(subject: str, body: object) -> dict:
        return json.loads((await client.request(subject, json.dumps(body).encode(), timeout=WAIT_S)).data)

    subjects = subjects_of(20_000)
    config = {"name": "S", "subjects": subjects, "storage": "memory"}
    made = await ask("$JS.API.STREAM.CREATE.S", config)
    assert made["config"]["subjects"] == subjects
    for number, sequence in ((0, 1), (19_999, 2), (10_000, 3)):
        assert (await ask(f"s{number}.x", 1))["seq"] == sequence

    twin = await ask("$JS.API.STREAM.CREATE.T", {"name": "T", "subjects": ["s19999.x"], "storage": "memory"})
    assert twin["error"]["err_code"] == 10065
    again = await ask(
        "$JS.API.STREAM.CREATE.U", {**config, "name": "U", "subjects": [*subjects_of(20_000, "u"), "u7.x"]}
    )
    assert again["error"]["description"].endswith('subject "u7.x" overlaps with "u7.x"')

    changed = await ask("$JS.API.STREAM.UPDATE.S", {**config, "subjects": subjects[:-1]})
    assert len(changed["config"]["subjects"]) == 19_999
    with pytest.raises(nats.errors.NoRespondersError):
        await client.request("s19999.x", b"", timeout=WAIT_S)
    assert (await ask("$JS.API.STREAM.DELETE.S", {}))["success"]
    await client.close()


@pytest.mark.parametrize("request_subject", ["STREAM.NAMES", "STREAM.LIST", "CONSUMER.LIST.SMALL"])
async def test_readers_of_the_same_account_are_answered_while_a_large_stream_is_made(server, request_subject):
    owner = await nats.connect(server.url, user="a", password="x")
    reader = await nats.connect(server.url, user="a", password="x")
    small = json.dumps({"name": "SMALL", "subjects": ["small"], "storage": "memory"}).encode()
    await owner.request("$JS.API.STREAM.CREATE.SMALL", small, timeout=WAIT_S)
    config = {"name": "LARGE", "subjects": subjects_of(80_000), "storage": "memory"}
    body = json.dumps(config).encode()

    made = asyncio.ensure_future(owner.request("$JS.API.STREAM.CREATE.LARGE", body, timeout=WAIT_S))
    before = 0
    while not made.done():
        listed = await reader.request(f"$JS.API.{request_subject}", b"", timeout=WAIT_S)
        assert "error" not in json.loads(listed.data)
        before += not made.done()

    assert "error" not in json.loads((await made).data)
    # One may have come before the request to make the stream; the others came while it was being made.
    assert before > 2
    await owner.close()
    await reader.close()


def consumer_entry(name: str) -> Entry:
    config = {"durable_name": name, "deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"}
    state = {"delivered": {"consumer_seq": 0, "stream_seq": 0}, "ack_floor": {"consumer_seq": 0, "stream_seq": 0}}
    body = {"config": config, "created": "2026-01-01T00:00:00Z", "state": state}
    return Entry(f"consumers/{name}".encode(), payload=json.dumps(body).encode())


async def test_streams_of_the_same_account_are_made_while_an_archive_with_many_consumers_is_restored(server):
    consumers = 3_000
    state = {"first_seq": 1, "consumer_count": consumers}
    entries = [consumer_entry(f"C{number}") for number in range(consumers)]
    data = frame(archive(*entries, state=json.dumps(state).encode()))
    owner = await nats.connect(server.url, user="a", password="x")
    other = await nats.connect(server.url, user="a", password="x")
    body = json.dumps({"config": {"name": "R", "subjects": ["r"]}, "state": {}}).encode()
    begun = json.loads((await owner.request("$JS.API.STREAM.RESTORE.R", body, timeout=WAIT_S)).data)
    for start in range(0, len(data), 512 * 1024):
        await owner.request(begun["deliver_subject"], data[start : start + 512 * 1024], timeout=WAIT_S)

    restored = asyncio.ensure_future(owner.request(begun["deliver_subject"], b"", timeout=WAIT_S))
    before = 0
    while not restored.done():
        config = {"name": f"S{before}", "subjects": [f"s.{before}"], "storage": "memory"}
        made = await other.request(f"$JS.API.STREAM.CREATE.S{before}", json.dumps(config).encode(), timeout=WAIT_S)
        assert "error" not in json.loads(made.data)
        before += not restored.done()

    answer = json.loads((await restored).data)
    assert "error" not in answer, answer
    assert answer["state"]["consumer_count"] == consumers
    assert before > 2
    await owner.close()
    await other.close()


def test_half_a_restore_is_not_there_after_the_next_start(tmp_path):
    file = tmp_path / "server.conf"
    file.write_text(CONFIG.format(folder=tmp_path / "store"))
    entries = [consumer_entry(f"C{number}") for number in range(5_000)]
    data = frame(archive(*entries, state=b'{"first_seq":1,"consumer_count":5000}'))

    async def restore_up_to_the_consumers(server: jetlake.Server) -> None:
        client = await nats.connect(server.url, user="a", password="x")
        body = json.dumps({"config": {"name": "R", "subjects": ["r"]}, "state": {}}).encode()
        begun = json.loads((await client.request("$JS.API.STREAM.RESTORE.R", body, timeout=WAIT_S)).data)
        for start in range(0, len(data), 512 * 1024):
            await client.request(begun["deliver_subject"], data[start : start + 512 * 1024], timeout=WAIT_S)
        await client.publish(begun["deliver_subject"], b"", reply="nobody")
        description = ""
        while "it is being restored" not in description:
            info = json.loads((await client.request("$JS.API.STREAM.INFO.R", b"", timeout=WAIT_S)).data)
            description = info["error"]["description"]
        await client.close()

    async def names(server: jetlake.Server) -> dict:
        client = await nats.connect(server.url, user="a", password="x")
        answer = json.loads((await client.request("$JS.API.STREAM.NAMES", b"", timeout=WAIT_S)).data)
        await client.close()
        return answer

    with jetlake.Server(config=file) as server:
        asyncio.run(restore_up_to_the_consumers(server))
    with jetlake.Server(config=file) as server:
        assert asyncio.run(names(server))["streams"] is None
