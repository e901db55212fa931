"""Buckets and object stores of nats.js and ours: each reads what the other wrote, on both kinds of server."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from jetlake import kv, objects
from jetlake.kv import BucketConfig, Operation
from tests.clients.client_script import SCRIPT_SECONDS_MAX

CONTENTS = os.urandom(2_500_000)


async def write(url: str) -> str:
    """Write what nats.js is to read, and return the digest of the object."""
    async with kv.connect(url) as buckets:
        bucket = await buckets.create(BucketConfig(bucket="PYTHON", history=5, ttl_s=3600), str)
        await bucket.put("auth.username", "bob")
        await bucket.put("auth.username", "alice")
        await bucket.put("old", "x")
        await bucket.delete("old")
        await bucket.put("older", "x")
        await bucket.purge("older")
        await bucket.create("plain", "1")
    async with objects.connect(url) as stores:
        store = await stores.create("PYFILES")
        info = await store.put("dir/file.bin", CONTENTS, description="from python", metadata={"team": "a"})
        await store.add_link("link", await store.put("small", b"contents"))
        await store.put("gone", b"x")
        await store.delete("gone")
    return info.digest


def run_node(folder: Path, url: str) -> dict[str, Any]:
    done = subprocess.run(
        ["node", "buckets.mjs", url],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=SCRIPT_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(900)
async def test_each_reads_what_the_other_wrote(node_folder: Path, start_server, tmp_path: Path) -> None:
    server = start_server(["-js", "-sd", str(tmp_path / "store")])
    digest = await write(server.url)

    found = run_node(node_folder, server.url)

    assert found["value"] == ["alice", 2, "PUT"]
    assert found["keys"] == ["auth.username", "plain"]
    assert found["filtered"] == ["auth.username"]
    assert found["history"] == ["bob", "alice"]
    assert (found["deleted"], found["purged"]) == ("DEL", "PURGE")
    assert found["status"] == [5, 6, 3_600_000]
    assert found["conflict"] == 10071
    assert found["created"] == 8
    assert found["watched"] == ["auth.username", "alice"]
    assert found["object"] == [len(CONTENTS), hashlib.sha256(CONTENTS).hexdigest()]
    assert found["info"] == ["from python", len(CONTENTS), 3, digest, {"team": "a"}]
    assert found["link"] == "contents"
    assert found["objects"] == ["dir/file.bin", "link", "small"]
    assert found["gone"] is True
    await read(server.url)


async def read(url: str) -> None:
    """Read what nats.js wrote."""
    async with kv.connect(url) as buckets:
        bucket = await buckets.open("NODE")
        assert (await bucket.get("a")).value == b"2"
        assert (await bucket.get("bytes")).value == b"\x00\xff"
        assert sorted(await bucket.keys()) == ["a", "bytes"]
        assert [entry.value for entry in await bucket.history("a")] == [b"1", b"2"]
        assert [entry.operation for entry in await bucket.history("b")] == [Operation.PUT, Operation.DELETE]
        assert [entry.operation for entry in await bucket.history("c")] == [Operation.PURGE]
        config = (await bucket.status()).config
        assert (config.history, config.ttl_s) == (5, 3600)
        ours = await buckets.open("PYTHON", str)
        assert (await ours.get("old")).value == "again"
    async with objects.connect(url) as stores:
        store = await stores.open("NODEFILES")
        wanted = bytes((index * 7) % 251 for index in range(1_000_000))
        assert await store.get("a file") == wanted
        assert await store.get("link") == wanted
        assert (await store.info("a file")).description == "from node"
        assert [info.name for info in await store.list() if not info.is_link] == ["a file"]
