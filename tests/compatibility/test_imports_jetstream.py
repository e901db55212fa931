"""JetStream of another account by imports: buckets, mirrors, sources and push consumers across accounts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.errors import Error
from nats.js.errors import KeyWrongLastSequenceError

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_reload import reload  # noqa: F401

EXPORTS = """
    exports: [
      {{ service: "$JS.API.>", response_type: stream }}
      {{ service: "$JS.FC.>" }}
      {{ service: "$JS.ACK.>" }}
      {{ service: "$KV.shared.>" }}
      {{ stream: "deliver.>" }}
      {{ stream: "_INBOX.b.>" }}
    ]
"""

IMPORTS = """
    imports: [
      {{ service: {{account: A, subject: "$JS.API.>"}}, to: "JS.A.API.>" }}
      {{ service: {{account: A, subject: "$JS.FC.>"}} }}
      {{ service: {{account: A, subject: "$KV.shared.>"}} }}
      {{ stream: {{account: A, subject: "deliver.>"}} }}
      {{ stream: {{account: A, subject: "_INBOX.b.>"}} }}
    ]
"""

CONFIG = (
    """
jetstream {{ store_dir: "{store}" }}
accounts {{
  A {{ jetstream: enabled, users: [ {{user: a, password: a}} ]
"""
    + EXPORTS
    + """  }}
  B {{ jetstream: enabled, users: [ {{user: b, password: b}} ]
"""
    + IMPORTS
    + """  }}
}}
"""
)

EXTERNAL = {"api": "JS.A.API", "deliver": "deliver"}

WAIT_S = 60.0
"""nats-server tries a mirror or source again after some seconds."""


@pytest.fixture(scope="module")
def server(start_once, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    return start_once(config=CONFIG.format(store=tmp_path_factory.mktemp("store")))


@asynccontextmanager
async def connected(server: ServerProcess) -> AsyncIterator[tuple[Client, Client]]:
    a = await nats.connect(server.url, user="a", password="a", allow_reconnect=False)
    b = await nats.connect(server.url, user="b", password="b", allow_reconnect=False, inbox_prefix=b"_INBOX.b")
    try:
        yield a, b
    finally:
        await a.close()
        await b.close()


async def ask(client: Client, subject: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    reply = await client.request(subject, json.dumps(body).encode() if body else b"", timeout=60)
    answer: dict[str, Any] = json.loads(reply.data)
    return answer


async def create(client: Client, name: str, **config: Any) -> dict[str, Any]:
    answer = await ask(client, f"$JS.API.STREAM.CREATE.{name}", {"name": name, "storage": "memory", **config})
    assert "error" not in answer, answer
    return answer


async def subjects_in(client: Client, name: str, count: int) -> list[str]:
    """Return the subjects of the messages of a stream, once there are so many."""
    deadline = asyncio.get_running_loop().time() + WAIT_S
    while (await ask(client, f"$JS.API.STREAM.INFO.{name}"))["state"]["messages"] < count:
        assert asyncio.get_running_loop().time() < deadline, f"{name} has fewer than {count} messages"
        await asyncio.sleep(0.05)
    return [
        (await ask(client, f"$JS.API.STREAM.MSG.GET.{name}", {"seq": sequence}))["message"]["subject"]
        for sequence in range(1, count + 1)
    ]


async def test_bucket_of_another_account_is_read_written_and_watched(server: ServerProcess) -> None:
    async with connected(server) as (a, b):
        owned = await a.jetstream().create_key_value(bucket="shared", history=5)
        bucket = await b.jetstream(prefix="JS.A.API").key_value("shared")

        first = await bucket.put("colour", b"red")
        assert (await owned.get("colour")).value == b"red"
        await owned.put("colour", b"blue")
        assert (await bucket.get("colour")).value == b"blue"
        assert (await bucket.get("colour", revision=first)).value == b"red"
        with pytest.raises(KeyWrongLastSequenceError):
            await bucket.update("colour", b"green", last=first)
        await bucket.delete("colour")
        await bucket.put("size", b"7")

        watcher = await bucket.watchall()
        seen = []
        while (entry := await watcher.updates(timeout=60)) is not None:
            seen.append((entry.key, entry.operation))
        await watcher.stop()
        assert seen == [("colour", "DEL"), ("size", None)]
        assert await bucket.keys() == ["size"]


@pytest.mark.parametrize("kind", ["mirror", "source"])
@pytest.mark.parametrize("filtered", ["", "orders.*"])
async def test_stream_of_another_account_is_copied_through_imports(
    server: ServerProcess, kind: str, filtered: str
) -> None:
    name = f"{kind.upper()}{len(filtered)}"
    async with connected(server) as (a, b):
        await create(a, f"O{name}", subjects=[f"{name}.>"])
        for subject in ("other", "orders.1", "orders.2"):
            await ask(a, f"{name}.{subject}")
        origin: dict[str, Any] = {"name": f"O{name}", "external": EXTERNAL}
        if filtered:
            origin["filter_subject"] = f"{name}.{filtered}"

        await create(b, name, **({"mirror": origin} if kind == "mirror" else {"sources": [origin]}))
        if not filtered:
            assert await subjects_in(b, name, 3) == [f"{name}.other", f"{name}.orders.1", f"{name}.orders.2"]
        await ask(a, f"{name}.orders.3")

        deadline = asyncio.get_running_loop().time() + WAIT_S
        while (state := (await ask(b, f"$JS.API.STREAM.INFO.{name}"))["state"])["messages"] < (3 if filtered else 4):
            assert asyncio.get_running_loop().time() < deadline, state
            await asyncio.sleep(0.05)
        assert state["messages"] == (3 if filtered else 4)


async def test_stream_is_not_copied_without_an_import_of_what_is_delivered(server: ServerProcess) -> None:
    async with connected(server) as (a, b):
        await create(a, "KEPT", subjects=["kept"])
        await ask(a, "kept")

        await create(b, "THIEF", mirror={"name": "KEPT", "external": {"api": "JS.A.API", "deliver": "elsewhere"}})
        await create(b, "OTHER", mirror={"name": "KEPT", "external": {"api": "JS.C.API", "deliver": "deliver"}})

        await asyncio.sleep(1)
        for name in ("THIEF", "OTHER"):
            assert (await ask(b, f"$JS.API.STREAM.INFO.{name}"))["state"]["messages"] == 0


async def test_push_consumer_of_another_account_delivers_here_and_is_acknowledged(server: ServerProcess) -> None:
    async with connected(server) as (a, b):
        await create(a, "PUSHED", subjects=["pushed"])
        await ask(a, "pushed")
        listener = await b.subscribe("deliver.here")
        consumer = {"durable_name": "C", "deliver_subject": "deliver.here", "ack_policy": "explicit"}
        body = {"stream_name": "PUSHED", "config": consumer}

        created = await ask(b, "JS.A.API.CONSUMER.DURABLE.CREATE.PUSHED.C", body)

        assert "error" not in created, created
        message = await listener.next_msg(timeout=60)
        assert message.reply.startswith("$JS.ACK.PUSHED.C.1.1.1.")


async def test_reload_leads_a_mirror_to_its_origin(
    start_server,
    reload,  # noqa: F811
    tmp_path,
    server_kind: str,
) -> None:
    if server_kind != "jetlake":
        pytest.skip("nats-server tries again after half a minute")
    config = CONFIG.format(store=tmp_path / "store")
    without = CONFIG.replace(IMPORTS, "").format(store=tmp_path / "store")
    server = start_server(config=without)
    async with connected(server) as (a, b):
        await create(a, "O", subjects=["o"])
        await ask(a, "o")
        await create(b, "M", mirror={"name": "O", "external": EXTERNAL})
        # It is looked for after the answer.
        deadline = asyncio.get_running_loop().time() + WAIT_S
        while "error" not in (await ask(b, "$JS.API.STREAM.INFO.M"))["mirror"]:
            assert asyncio.get_running_loop().time() < deadline, "the mirror does not say that it has no origin"

        reload(server, config)
        assert await subjects_in(b, "M", 1) == ["o"]
        reload(server, without)
        await ask(a, "o")

        assert (await ask(b, "$JS.API.STREAM.INFO.M"))["state"]["messages"] == 1


async def test_account_without_the_import_cannot_ask(server: ServerProcess) -> None:
    async with connected(server) as (a, _):
        with pytest.raises(Error):
            await a.request("JS.A.API.STREAM.NAMES", b"", timeout=1)
