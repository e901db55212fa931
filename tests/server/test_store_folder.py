"""The folder of JetStream."""

import asyncio
import json
import os
import signal

import nats
import pytest

from jetlake.errors import StartError
from jetlake.server.options import JetStreamOptions
from jetlake.server.python_log import PythonLog
from jetlake.server.store_folder import StoreFolder


def test_temporary_folder_is_gone_after_the_end():
    folder = StoreFolder(JetStreamOptions(enabled=True), PythonLog(), temporary=True)

    folder.open()
    directory = folder.directory
    folder.remove()

    assert not os.path.exists(directory)


def test_named_folder_stays(tmp_path):
    options = JetStreamOptions(enabled=True, store_directory=str(tmp_path), max_memory_bytes=5, max_storage_bytes=0)
    folder = StoreFolder(options, PythonLog(), temporary=True)

    folder.open()
    folder.remove()

    assert folder.directory.startswith(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 1
    assert (folder.memory_bytes_max, folder.storage_bytes_max) == (5, 0)


def test_folder_that_cannot_be_made_ends_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    folder = StoreFolder(
        JetStreamOptions(enabled=True, store_directory=str(tmp_path / "file")), PythonLog(), temporary=False
    )

    with pytest.raises(StartError, match="storage directory is not a directory"):
        folder.open()


def test_everything_in_the_store_is_for_the_user_of_the_server_alone(tmp_path, start_process):
    """Whatever the umask: messages must not become readable to every user of the machine."""
    previous = os.umask(0o022)
    try:
        process = start_process("-js", "-sd", str(tmp_path / "store"))
    finally:
        os.umask(previous)
    asyncio.run(fill(process.url))
    process.send(signal.SIGTERM)
    assert process.wait() == 0

    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "store" / "jetstream").rglob("*")}

    assert (tmp_path / "store" / "jetstream").stat().st_mode & 0o777 == 0o700
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


async def fill(url: str) -> None:
    """Make everything that has files: a stream with messages and a consumer, and a template."""
    connection = await nats.connect(url)
    stream = connection.jetstream()
    await stream.add_stream(name="S", subjects=["s.>"])
    await stream.publish("s.1", b"secret")
    subscription = await stream.pull_subscribe("s.>", "worker")
    await (await subscription.fetch(1, timeout=60))[0].ack_sync(timeout=60)
    template = {"name": "T", "config": {"subjects": ["t.*"], "retention": "limits", "storage": "file"}}
    answer = await connection.request("$JS.TEMPLATE.T.CREATE", json.dumps(template | {"max_streams": 1}).encode())
    assert answer.data == b"+OK"
    await connection.close()


@pytest.mark.parametrize("is_link", [True, False])
def test_default_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch, is_link):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if is_link:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "nats").symlink_to(tmp_path / "elsewhere")
    else:
        (tmp_path / "nats").mkdir()
        real = os.stat(tmp_path / "nats").st_uid
        monkeypatch.setattr(os, "geteuid", lambda: real + 1)
        if real == 0:
            os.chown(tmp_path / "nats", 12_345, -1)

    with pytest.raises(StartError, match="belongs to another user, who could read and change what is stored"):
        StoreFolder(JetStreamOptions(enabled=True), PythonLog(), temporary=False).open()


def test_default_folder_of_ones_own_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = StoreFolder(JetStreamOptions(enabled=True), PythonLog(), temporary=False)

    folder.open()

    assert folder.directory == str(tmp_path / "nats" / "jetstream")
