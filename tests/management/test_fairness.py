"""A request that takes long, and a flood of them, keep only their own account waiting; streams have many subjects."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

import jetlake

CONFIG = """
port: -1
max_payload: 8MB
jetstream {{ store_dir: "{folder}" }}
accounts {{
  A {{ jetstream: true, users: [ {{ user: a, password: x }} ] }}
  B {{ jetstream: true, users: [ {{ user: b, password: x }} ] }}
}}
"""

WAIT_S = 50.0


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
