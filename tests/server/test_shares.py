"""What accounts have in common: whatever one of them holds, another one still gets its share."""

import asyncio
import json
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.api import StreamConfig

from tests.conftest import ServerProcess

CONFIG = """
listen: "127.0.0.1:-1"
jetstream {{ store_dir: "{store}" }}
accounts {{
  ONE {{ jetstream {{ max_file: {limit} }}
         users: [{{user: one, password: p}}, {{user: other, password: p}},
                 {{user: publisher, password: p, permissions: {{ publish: ["s.>"], subscribe: ["_INBOX.>"] }} }}] }}
  TWO {{ jetstream: enabled, users: [{{user: two, password: p}}] }}
}}
"""

MIB = 1024 * 1024


@pytest.fixture
def process(start_process, tmp_path) -> ServerProcess:
    return start(start_process, tmp_path, limit=-1)


def start(start_process: Any, tmp_path: Path, *, limit: int) -> ServerProcess:
    path = tmp_path / "server.conf"
    text = CONFIG.format(store=tmp_path / "store", limit=limit)
    path.write_text(text if limit >= 0 else text.replace("{ max_file: -1 }", ": enabled"))
    return start_process("-c", str(path), "-p", "-1")


async def connect(process: ServerProcess, user: str) -> nats.NATS:
    return await nats.connect(process.url, user=user, password="p", connect_timeout=60)


async def ask(client: nats.NATS, subject: str, body: Any, headers: dict[str, str] | None = None) -> dict[str, Any]:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await client.request(subject, payload, timeout=60, headers=headers)
    return json.loads(answer.data)


async def both(process: ServerProcess) -> list[nats.NATS]:
    """One client of each account, each with a stream S that has a message."""
    clients = [await connect(process, "one"), await connect(process, "two")]
    for client in clients:
        await client.jetstream().add_stream(StreamConfig(name="S", subjects=["s.>"], allow_atomic=True))
        await client.jetstream().publish("s.a", b"x" * 1000)
    return clients


def rss_bytes(process: ServerProcess) -> int:
    with open(f"/proc/{process.pid}/status") as status:
        (line,) = [line for line in status if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def test_account_whose_scans_nobody_reads_leaves_places_and_threads_to_others(process):
    async def work() -> None:
        one, two = await both(process)
        # All are stored before the first scan begins: one that finds few rows sends them unasked, and ends.
        await asyncio.gather(*(one.jetstream().publish("s.a", b"%d" % number) for number in range(200)))
        # It listens, and says never that more may come.
        held = await one.subscribe("held.>")
        refusals = []
        for number in range(140):
            # A batch of one row is a chunk of its own, and only so many are sent unasked.
            request = {
                "deliver_subject": f"held.{number}",
                "start": 1,
                "end": 400,
                "columns": ["data"],
                "batch_rows": 1,
            }
            answer = await ask(one, "$JS.API.STREAM.SCAN.ROWS.S", request)
            if "error" in answer:
                refusals.append(answer["error"]["description"])

        received = await two.subscribe("mine")
        request = {"deliver_subject": "mine", "start": 1, "end": 2, "columns": ["sequence"]}
        answer = await ask(two, "$JS.API.STREAM.SCAN.ROWS.S", request)
        assert "error" not in answer
        while True:
            chunk = await received.next_msg(timeout=60)
            if chunk.headers and chunk.headers.get("Status") == "204":
                break
        assert len(refusals) == 12
        assert "128 scans of this account" in refusals[0]
        assert "try again when one has ended" in refusals[0]
        await held.unsubscribe()
        await one.close()
        await two.close()

    asyncio.run(work())


def test_account_that_begins_restores_leaves_places_to_others(process):
    async def work() -> None:
        one, two = await both(process)
        request = {"config": {"name": "R", "subjects": ["r"]}, "state": {}}
        refusals = []
        for number in range(6):
            config = {"name": f"R{number}", "subjects": [f"r.{number}"], "storage": "file"}
            answer = await ask(one, f"$JS.API.STREAM.RESTORE.R{number}", {**request, "config": config})
            if "error" in answer:
                refusals.append(answer["error"]["description"])

        config = {"name": "R0", "subjects": ["r.0"], "storage": "file"}
        of_other = await ask(two, "$JS.API.STREAM.RESTORE.R0", {**request, "config": config})

        assert "error" not in of_other
        assert len(refusals) == 2
        assert "restores of this account are under way" in refusals[0]
        await one.close()
        await two.close()

    asyncio.run(work())


def test_no_other_publisher_adds_to_an_upload_or_drops_it(process):
    async def work() -> None:
        one, two = await both(process)
        other = await connect(process, "publisher")
        begun = await ask(one, "s.a", b"row", {"Jetlake-Upload": "u/1/query/run"})
        assert begun["uploaded"] == 1

        # Another user of the account: more rows, an upload with the same id, and a new run of the query.
        added = await ask(other, "s.a", b"more", {"Jetlake-Upload": "u/2"})
        await ask(other, "s.a", b"forged", {"Jetlake-Upload": "u/1/query/run"})
        await ask(other, "s.a", b"", {"Jetlake-Upload": "u/1/end"})
        await ask(other, "s.a", b"row", {"Jetlake-Upload": "v/1/query/another"})
        ended = await ask(one, "s.a", b"", {"Jetlake-Upload": "u/1/end"})
        commit = {"query": "query", "batch": 1, "uploads": [{"id": "u", "messages": 1}]}
        committed = await ask(one, "$JS.API.STREAM.UPLOAD.COMMIT.S", commit)

        assert added["error"]["code"] == 404
        assert ended["uploaded"] == 1
        assert (committed["repeated"], committed["messages"]) == (False, 1)
        assert (await one.jetstream().get_msg("S", committed["last"])).data == b"row"
        for client in (one, two, other):
            await client.close()

    asyncio.run(work())


def test_open_batches_of_an_account_are_bounded_in_bytes_and_another_account_has_its_own(process):
    payload = bytes(MIB - 1000)

    async def work() -> None:
        one, two = await both(process)
        publisher = await connect(process, "publisher")
        before = rss_bytes(process)
        codes = set()
        for number in range(40):
            for sequence in range(1, 8):
                headers = {"Nats-Batch-Id": f"b{number}", "Nats-Batch-Sequence": str(sequence)}
                message = await publisher.request("s.b", payload, timeout=60, headers=headers)
                answer = json.loads(message.data) if message.data else {}
                codes.add(answer.get("error", {}).get("err_code"))

        headers = {"Nats-Batch-Id": "mine", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"}
        stored = await ask(two, "s.b", payload, headers)

        assert codes == {None, 10210, 10176}
        assert stored["seq"] == 2
        # 64 MiB of batches, what their buffers have in reserve, and what the connections hold.
        assert rss_bytes(process) - before < 320 * MIB
        for client in (publisher, one, two):
            await client.close()

    asyncio.run(work())


def test_account_does_not_store_more_than_it_may_by_publishing_to_many_streams_at_once(start_process, tmp_path):
    limit = 4 * MIB
    process = start(start_process, tmp_path, limit=limit)
    payload = bytes(16 * 1024)

    async def work() -> None:
        client = await connect(process, "one")
        js = client.jetstream()
        streams = 8
        for number in range(streams):
            await js.add_stream(StreamConfig(name=f"S{number}", subjects=[f"s.{number}"]))
        answers = await asyncio.gather(
            *(client.request(f"s.{number % streams}", payload, timeout=60) for number in range(800))
        )

        refused = [json.loads(answer.data)["error"] for answer in answers if b"error" in answer.data]
        assert {error["err_code"] for error in refused} == {10002}, refused[:3]
        info = await ask(client, "$JS.API.INFO", b"")
        # Each worker of the server may take one message at the same moment.
        assert 0.9 * limit < info["storage"] <= limit + 4 * len(payload)
        await client.close()

    asyncio.run(work())


def test_fork_counts_what_it_does_not_share_and_nothing_is_stored_for_free(start_process, tmp_path):
    limit = 3 * MIB
    process = start(start_process, tmp_path, limit=limit)
    payload = bytes(64 * 1024)

    async def fill(client: nats.NATS, subject: str) -> int:
        for number in range(200):
            answer = await ask(client, subject, payload)
            if "error" in answer:
                assert answer["error"]["err_code"] == 10002
                return number
        raise AssertionError("nothing was refused")

    async def work() -> None:
        client = await connect(process, "one")
        js = client.jetstream()
        await js.add_stream(StreamConfig(name="S", subjects=["s"]))
        for _ in range(20):
            await js.publish("s", payload)

        # A copy of what is not sealed counts like any message, so a second one finds no room.
        first = await ask(client, "$JS.API.STREAM.FORK.S", {"name": "F", "subjects": ["f"]})
        second = await ask(client, "$JS.API.STREAM.FORK.S", {"name": "G", "subjects": ["g"]})

        assert "error" not in first
        assert "resource limits exceeded for account" in second["error"]["description"]
        stored = await fill(client, "f")
        assert stored * len(payload) < limit - 2 * 20 * len(payload)
        await client.close()

    asyncio.run(work())
