"""Streams under a key: nobody reads the files without it, and a new key opens what the old one closed."""

import json
from pathlib import Path

import nats
import pytest

import jetlake

SECRETS = (b"the payload nobody sees", b"the-header-nobody-sees", b"the_subject_nobody_sees", b"the_worker_nobody_sees")
SUBJECT, WORKER = SECRETS[2].decode(), SECRETS[3].decode()


def configured(tmp_path: Path, text: str) -> jetlake.Server:
    file = tmp_path / "server.conf"
    file.write_text(f'port: -1\njetstream {{ store_dir: "{tmp_path / "store"}", {text} }}')
    return jetlake.Server(config=file)


async def fill(server: jetlake.Server) -> None:
    connection = await nats.connect(server.url)
    stream = connection.jetstream()
    await stream.add_stream(name="S", subjects=["*"])
    await stream.add_consumer("S", durable_name=WORKER, ack_policy="explicit")
    headers = {"Secret": SECRETS[1].decode()}
    for _ in range(3):
        await stream.publish(SUBJECT, SECRETS[0], headers=headers)
    subscription = await stream.pull_subscribe_bind(WORKER, "S")
    (message,) = await subscription.fetch(1, timeout=60)
    await message.ack_sync(timeout=60)
    await connection.close()


async def look(server: jetlake.Server) -> tuple[list[bytes], int]:
    """Return the payloads that are stored, and how many the worker has confirmed."""
    connection = await nats.connect(server.url)
    stream = connection.jetstream()
    messages = [await stream.get_msg("S", sequence) for sequence in (1, 2, 3)]
    assert {message.subject for message in messages} == {SUBJECT}
    information = await stream.consumer_info("S", WORKER)
    await connection.close()
    assert information.ack_floor is not None
    return [message.data or b"" for message in messages], information.ack_floor.stream_seq


async def answer_about(server: jetlake.Server) -> dict[str, object]:
    connection = await nats.connect(server.url)
    answer = await connection.request("$JS.API.STREAM.INFO.S", b"", timeout=60)
    await connection.close()
    decoded: dict[str, object] = json.loads(answer.data)
    return decoded


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


WHOLE = ([SECRETS[0]] * 3, 1)


async def test_what_is_stored_under_a_key_is_found_in_no_file(tmp_path: Path):
    async with configured(tmp_path, "key: k") as server:
        await fill(server)

    found = all_bytes(tmp_path / "store")

    assert len(found) > 1_000
    assert [secret for secret in SECRETS if secret in found] == []
    async with configured(tmp_path, "key: k") as server:
        assert await look(server) == WHOLE


async def test_without_a_key_the_same_is_found(tmp_path: Path):
    async with configured(tmp_path, "") as server:
        await fill(server)

    found = all_bytes(tmp_path / "store")

    assert [secret for secret in SECRETS if secret not in found] == []


async def test_a_new_key_opens_what_the_old_one_closed_and_the_old_one_does_not_any_more(tmp_path: Path):
    async with configured(tmp_path, "key: old") as server:
        await fill(server)
    async with configured(tmp_path, "key: new, prev_key: old") as server:
        assert await look(server) == WHOLE

    async with configured(tmp_path, "key: new") as server:
        assert await look(server) == WHOLE
    async with configured(tmp_path, "key: old") as server:
        assert "error" in await answer_about(server)


@pytest.mark.parametrize("other", ["", "key: other", "key: other, prev_key: another"])
async def test_without_its_key_a_stream_is_offline_with_the_reason_and_comes_back_with_it(tmp_path: Path, other: str):
    async with configured(tmp_path, "key: k") as server:
        await fill(server)
    before = all_bytes(tmp_path / "store")

    async with configured(tmp_path, other) as server:
        error = (await answer_about(server))["error"]
        assert isinstance(error, dict)
        assert error["err_code"] == 10194
        assert "encrypted" in error["description"]

    assert all_bytes(tmp_path / "store") == before
    async with configured(tmp_path, "key: k") as server:
        assert await look(server) == WHOLE


async def test_a_store_that_had_no_key_is_encrypted_from_then_on(tmp_path: Path):
    async with configured(tmp_path, "") as server:
        await fill(server)
    async with configured(tmp_path, "key: k") as server:
        assert await look(server) == WHOLE
        connection = await nats.connect(server.url)
        await connection.jetstream().publish("later", b"what came later")
        await connection.close()

    assert b"what came later" not in all_bytes(tmp_path / "store")
    async with configured(tmp_path, "key: k") as server:
        assert await look(server) == WHOLE


async def test_a_fork_of_an_encrypted_stream_is_encrypted_and_readable(tmp_path: Path):
    async with configured(tmp_path, "key: k") as server:
        await fill(server)
        connection = await nats.connect(server.url)
        answer = await connection.request("$JS.API.STREAM.FORK.S", b'{"name":"T","subjects":["t.x"]}', timeout=60)
        assert "error" not in json.loads(answer.data)
        await connection.close()
    async with configured(tmp_path, "key: new, prev_key: k") as server:
        connection = await nats.connect(server.url)
        message = await connection.jetstream().get_msg("T", 3)
        await connection.close()

    assert message.data == SECRETS[0]
    assert not any(secret in all_bytes(tmp_path / "store") for secret in SECRETS)


async def test_neither_monitoring_nor_the_log_shows_a_key(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level("DEBUG")
    async with configured(tmp_path, "key: k_nobody_sees, prev_key: p_nobody_sees") as server:
        connection = await nats.connect(server.url)
        answer = await connection.request("$JS.API.INFO", b"", timeout=60)
        await connection.close()

    assert b"nobody_sees" not in answer.data
    assert "nobody_sees" not in caplog.text
