"""Streams in a server: from its options, over its life, with the real engine."""

import asyncio
import json
import threading
import urllib.request
from pathlib import Path

import msgspec
import nats
import pytest

import jetlake
from jetlake.management.streams.context import StreamAccountLimits
from jetlake.server.configuration.load import load
from jetlake.server.jetstream import accounts_with_jetstream, api_subjects, store_options
from jetlake.server.options import JetStreamOptions, ServerOptions
from jetlake.server.python_log import PythonLog
from jetlake.server.store_folder import StoreFolder

ACCOUNTS = """
jetstream {{ store_dir: "{folder}" }}
accounts {{
  A: {{
    users: [{{ user: A, password: x }}]
    jetstream: {{ max_mem: 1, max_file: 2, max_streams: 3, max_ack_pending: 4 }}
  }}
  B: {{ users: [{{ user: B, password: x }}] }}
}}
"""


async def ask(url: str, subject: str, body: bytes = b"", **options: object) -> dict[str, object]:
    connection = await nats.connect(url, **options)
    try:
        answer = await connection.request(f"$JS.API.{subject}", body, timeout=60)
    finally:
        await connection.close()
    decoded: dict[str, object] = json.loads(answer.data)
    return decoded


def read_page(url: str) -> dict[str, object]:
    with urllib.request.urlopen(url) as response:
        page: dict[str, object] = json.load(response)
    return page


async def test_streams_are_there_again_after_a_restart(tmp_path: Path):
    async with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        created = await ask(server.url, "STREAM.CREATE.S", b'{"name":"S","subjects":["s.>"],"max_msgs":7}')
        connection = await nats.connect(server.url)
        await connection.jetstream().publish("s.a", b"hello")
        await connection.close()

    async with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        found = await ask(server.url, "STREAM.INFO.S")
        names = await ask(server.url, "STREAM.NAMES")

    assert (found["config"], found["created"]) == (created["config"], created["created"])
    assert found["state"]["messages"] == 1
    assert names["streams"] == ["S"]


async def test_accounts_have_streams_of_their_own_or_none(tmp_path: Path):
    async with jetlake.Server(config=ACCOUNTS.format(folder=tmp_path)) as server:
        await ask(server.url, "STREAM.CREATE.S", b'{"name":"S","max_bytes":1}', user="A", password="x")
        info = await ask(server.url, "INFO", user="A", password="x")
        refused = await ask(server.url, "STREAM.NAMES", user="B", password="x")

    assert info["streams"] == 1
    assert info["limits"]["max_ack_pending"] == 4
    assert refused["error"]["err_code"] == 10039


async def test_account_may_store_after_a_reload_that_says_so(tmp_path: Path):
    before = ACCOUNTS.format(folder=tmp_path)
    after = before.replace("B: {", "B: { jetstream: enabled,")
    async with jetlake.Server(config=before) as server:
        refused = await ask(server.url, "INFO", user="B", password="x")
        options = msgspec.structs.replace(load(after).options, host=server.host, port=0)
        await asyncio.to_thread(server.reload, options, lambda _: None)
        allowed = await ask(server.url, "INFO", user="B", password="x")

    assert refused["error"]["err_code"] == 10039
    assert allowed["streams"] == 0


async def test_pages_show_what_is_stored():
    async with jetlake.Server(jetstream=True, monitor_port=0) as server:
        await ask(server.url, "STREAM.CREATE.S", b'{"name":"S","max_bytes":700}')
        connection = await nats.connect(server.url)
        await connection.jetstream().publish("S", b"hello")
        await connection.close()
        page = await asyncio.to_thread(read_page, f"{server.monitor_url}/jsz?streams=1&config=1")

    assert (page["streams"], page["messages"], page["bytes"], page["reserved_storage"]) == (1, 1, 36, 700)
    (stream,) = page["account_details"][0]["stream_detail"]
    assert list(stream) == ["name", "created", "cluster", "config", "state"]
    assert stream["config"]["max_bytes"] == 700


async def test_thread_that_answers_ends_with_the_server():
    async with jetlake.Server(jetstream=True) as server:
        await ask(server.url, "INFO")
        assert any(thread.name == "jetlake-management" for thread in threading.enumerate())

    assert not any(thread.name == "jetlake-management" for thread in threading.enumerate())


async def test_reply_that_is_a_request_is_not_obeyed():
    async with jetlake.Server(jetstream=True) as server:
        await ask(server.url, "STREAM.CREATE.S", b'{"name":"S"}')
        connection = await nats.connect(server.url)
        await connection.publish("$JS.API.STREAM.NAMES", reply="$JS.API.STREAM.PURGE.S")
        await connection.publish("$JS.API.STREAM.NAMES", reply="$JS.API.STREAM.DELETE.S")
        await connection.flush()
        await connection.close()

        names = await ask(server.url, "STREAM.NAMES")

    assert names["streams"] == ["S"]


def test_who_may_store_follows_from_the_options(tmp_path: Path):
    options = load(ACCOUNTS.format(folder=tmp_path)).options

    assert accounts_with_jetstream(options) == {
        "A": StreamAccountLimits(max_memory=1, max_storage=2, max_streams=3, max_ack_pending=4)
    }
    assert accounts_with_jetstream(ServerOptions()) == {"$G": StreamAccountLimits()}


@pytest.mark.parametrize(
    ("options", "sync_always"),
    [
        (JetStreamOptions(), True),
        (JetStreamOptions(sync_always=True, sync_interval_s=1), True),
        (JetStreamOptions(sync_interval_s=1), False),
    ],
)
def test_what_is_acknowledged_is_on_disk_unless_somebody_asked_for_an_interval(options, sync_always):
    stored = store_options(options, StoreFolder(options, PythonLog(), temporary=True))

    assert stored.sync_always is sync_always
    assert stored.sync_interval_ms == options.sync_interval_s * 1_000


def test_domain_is_a_second_way_to_what_it_means():
    assert api_subjects("", is_system=False) == ["$JS.API.>"]
    assert "$JS.hub.API.STREAM.>" in api_subjects("hub", is_system=False)
    assert api_subjects("hub", is_system=True) == ["$JS.API.>", "$JS.hub.API.>"]
