"""Where a client may have the server publish for it."""

import asyncio
import json
import socket
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client

import jetlake
from jetlake.management.requests.rights import pattern_of

CONFIG = """
port: -1
jetstream {{ store_dir: "{folder}" }}
authorization {{
  users: [
    {{ user: all, password: x }}
    {{ user: limited, password: x, permissions: {{
         publish: {{ allow: ["$JS.API.>", "orders.>", "copies.*"], deny: "orders.secret" }}
         subscribe: {{ allow: ["_INBOX.>", "own.>"], deny: "own.not" }}
    }} }}
  ]
}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("rights")
    file = folder / "server.conf"
    file.write_text(CONFIG.format(folder=folder / "store"))
    with jetlake.Server(config=file) as server:
        made = asyncio.run(ask(server, "all", "STREAM.CREATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>"]}))
        assert made == ""
        yield server


async def ask(server: jetlake.Server, user: str, subject: str, body: dict[str, object]) -> str:
    """Return the description of the error; empty = it was granted."""
    connection: Client = await nats.connect(server.url, user=user, password="x")
    answer = await connection.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout=60)
    await connection.close()
    decoded = json.loads(answer.data)
    return decoded.get("error", {}).get("description", "")


@pytest.mark.parametrize("subject", ["_INBOX.x", "own.a", "orders.back", "copies.a"])
async def test_a_consumer_delivers_where_its_maker_may_publish_or_listen(server, subject):
    config = {"deliver_subject": subject, "durable_name": f"D{subject.replace('.', '')}"}
    body = {"stream_name": "ORDERS", "config": config}

    # That it would feed itself is another reason.
    refusal = await ask(server, "limited", f"CONSUMER.DURABLE.CREATE.ORDERS.{config['durable_name']}", body)

    assert refusal == ("consumer deliver subject forms a cycle" if subject.startswith("orders") else "")


@pytest.mark.parametrize("subject", ["elsewhere", "orders.secret", "own.not", "copies.a.b", "$SYS.REQ.SERVER.PING"])
async def test_a_consumer_does_not_deliver_where_its_maker_may_do_neither(server, subject):
    config = {"deliver_subject": subject, "durable_name": "D"}
    body = {"stream_name": "ORDERS", "config": config}

    refusal = await ask(server, "limited", "CONSUMER.DURABLE.CREATE.ORDERS.D", body)

    # Some are refused for what they are, before anybody asks who wants them.
    assert refusal != ""
    if subject == "elsewhere":
        assert (
            refusal == "permissions violation for deliver subject 'elsewhere': neither publish nor subscribe is allowed"
        )
        assert await ask(server, "all", "CONSUMER.DURABLE.CREATE.ORDERS.D", body) == ""
        assert await ask(server, "all", "CONSUMER.DELETE.ORDERS.D", {}) == ""


@pytest.mark.parametrize(
    ("destination", "is_allowed"), [("copies.{{wildcard(1)}}", True), ("copies.>", False), ("elsewhere.>", False)]
)
async def test_a_stream_republishes_where_its_maker_may_publish(server, destination, is_allowed):
    config = {"name": "R", "subjects": ["r.*"], "republish": {"src": "r.*", "dest": destination}}
    if destination.endswith(">"):
        config |= {"subjects": ["r.>"], "republish": {"src": "r.>", "dest": destination}}

    refusal = await ask(server, "limited", "STREAM.CREATE.R", config)

    assert ("permissions violation" in refusal) is not is_allowed
    if is_allowed:
        assert refusal == ""
        assert await ask(server, "limited", "STREAM.DELETE.R", {}) == ""


async def test_a_snapshot_is_sent_where_its_maker_may_publish_or_listen(server):
    refused = await ask(server, "limited", "STREAM.SNAPSHOT.ORDERS", {"deliver_subject": "elsewhere"})
    granted = await ask(server, "limited", "STREAM.SNAPSHOT.ORDERS", {"deliver_subject": "_INBOX.s"})

    assert "permissions violation" in refused
    assert granted == ""


async def test_rows_of_a_scan_are_sent_where_its_maker_may_publish_or_listen(server):
    refused = await ask(server, "limited", "STREAM.SCAN.ROWS.ORDERS", {"deliver_subject": "elsewhere"})
    granted = await ask(server, "limited", "STREAM.SCAN.ROWS.ORDERS", {"deliver_subject": "_INBOX.rows"})

    assert refused.endswith("'elsewhere': neither publish nor subscribe is allowed")
    assert granted == ""


@pytest.mark.parametrize("request_name", ["STREAM.CREATE", "STREAM.UPDATE"])
async def test_dead_letters_are_sent_where_the_maker_of_the_stream_may_publish(server, request_name):
    config = {"name": "JOBS", "subjects": ["jobs.>"], "metadata": {"jetlake.dead_letters": "ORDERS"}}
    plain = {"name": "JOBS", "subjects": ["jobs.>"]}
    assert await ask(server, "all", "STREAM.CREATE.JOBS", plain) == "" if request_name == "STREAM.UPDATE" else True

    refusal = await ask(server, "limited", f"{request_name}.JOBS", config)

    assert refusal.endswith("permissions violation for dead letters 'dead.JOBS.>': publish is not allowed")
    if request_name == "STREAM.UPDATE":
        assert await ask(server, "all", "STREAM.DELETE.JOBS", {}) == ""


def test_rights_are_those_of_the_time_when_the_request_arrived(server):
    """A requester that has gone before it is answered gets nothing it had no right to."""
    forbidden = json.dumps({"stream_name": "ORDERS", "config": {"deliver_subject": "elsewhere", "name": "GHOST"}})
    requests = b"PUB $JS.API.STREAM.INFO.ORDERS 0\r\n\r\n" * 200
    requests += b"PUB $JS.API.CONSUMER.CREATE.ORDERS.GHOST %d\r\n%s\r\n" % (len(forbidden), forbidden.encode())

    for _ in range(10):
        with socket.create_connection(("127.0.0.1", server.port)) as gone:
            gone.sendall(b'CONNECT {"verbose":false,"user":"limited","pass":"x"}\r\n' + requests)

    # Answered after everything that came before it.
    assert asyncio.run(ask(server, "all", "STREAM.INFO.ORDERS", {})) == ""
    assert asyncio.run(ask(server, "all", "CONSUMER.INFO.ORDERS.GHOST", {})) == "consumer not found"


@pytest.mark.parametrize(
    ("destination", "pattern"),
    [
        ("a.{{wildcard(1)}}.b", "a.*.b"),
        ("a.$2", "a.*"),
        ("x-{{partition(3,1)}}.y", "*.y"),
        ("{{split(1, -)}}", "*"),
        (">", ">"),
    ],
)
def test_placeholders_can_become_anything(destination, pattern):
    assert pattern_of(destination) == pattern
