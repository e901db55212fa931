"""Uploads: what tasks of a query send is stored all at once, once, whatever becomes of the server."""

import base64
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import RefusedError, Streams
from jetlake.errors import ClientError
from tests.compatibility.server_process import ServerProcess, start_server_process

KILLS = 8
BATCHES_MIN = 20
"""Batches after the last kill."""

RIGHTS = """
jetstream {{ store_dir: "{folder}/store" }}
authorization {{ users: [
  {{ user: admin, password: pw }}
  {{ user: task, password: pw, permissions: {{ publish: ["orders.>"], subscribe: ["_INBOX.>"] }} }}
] }}
"""


class Client:
    """One connection, and the uploads made over it."""

    def __init__(self, server: ServerProcess, user: str = "") -> None:
        url = server.url.replace("://", f"://{user}:pw@") if user else server.url
        self.connection = RawConnection(ConnectionSettings(url=url))
        self.streams = Streams(self.connection)

    def upload(
        self, upload: str, payloads: list[bytes], *, query: str = "q", run: str = "r", subject: str = "orders.a"
    ):
        """Send messages and the end; return what the server says to the end."""
        for number, payload in enumerate(payloads, 1):
            word = f"{upload}/{number}" + (f"/{query}/{run}" if number == 1 else "")
            header = f"NATS/1.0\r\nJetlake-Upload: {word}\r\nKind: row\r\n\r\n".encode()
            frame = f"HPUB {subject} {len(header)} {len(header) + len(payload)}\r\n".encode()
            self.connection.send(frame + header + payload + b"\r\n")
        end = f"NATS/1.0\r\nJetlake-Upload: {upload}/{len(payloads)}/end\r\n\r\n".encode()
        return self.connection.request(subject, headers=end).json()

    def commit(self, batch: int, uploads: dict[str, int], *, query: str = "q") -> bool:
        return self.streams.commit_uploads("ORDERS", query, batch, uploads)

    def payloads(self) -> list[bytes]:
        """Return what is stored, in its order. A write that a kill has torn leaves sequences that no message gets."""
        state = self.streams.state("ORDERS")
        found = []
        sequence = state.first_sequence
        while sequence < state.next_sequence:
            wanted = {"next_by_subj": ">", "seq": sequence}
            message = self.streams.ask("STREAM.MSG.GET.ORDERS", wanted)["message"]
            assert b"Jetlake-Upload" not in base64.b64decode(message["hdrs"])
            found.append(base64.b64decode(message["data"]))
            sequence = message["seq"] + 1
        return found

    def close(self) -> None:
        self.connection.close()


def start(folder: Path) -> ServerProcess:
    return start_server_process("jetlake", folder, ["-js", "-sd", str(folder / "store")])


def kill(server: ServerProcess) -> None:
    server.signal(signal.SIGKILL)
    server.wait_for_exit()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = start(tmp_path)
    yield process
    process.stop()


@pytest.fixture
def client(server: ServerProcess) -> Iterator[Client]:
    made = Client(server)
    made.streams.ask("STREAM.CREATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>"]})
    yield made
    made.close()


def test_uploads_are_stored_with_their_commit_and_in_its_order(client: Client) -> None:
    assert client.upload("one", [b"1", b"2"]) == {"stream": "ORDERS", "uploaded": 2}
    client.upload("two", [b"3"])
    assert client.streams.state("ORDERS").messages == 0

    assert client.commit(0, {"two": 1, "one": 2})

    assert client.payloads() == [b"3", b"1", b"2"]


def test_a_batch_that_is_repeated_is_stored_once_however_often_and_late(client: Client) -> None:
    client.upload("one", [b"1"])
    assert client.commit(7, {"one": 1})

    assert not client.commit(7, {"one": 1}), "the answer was lost"
    client.upload("again", [b"1"], run="r2")
    assert not client.commit(7, {"again": 1})
    client.upload("older", [b"0"], run="r3")
    assert not client.commit(6, {"older": 1})
    client.upload("other", [b"2"], query="p")
    assert client.commit(0, {"other": 1}, query="p")
    client.upload("next", [b"3"], run="r4")
    assert client.commit(8, {"next": 1})

    assert client.payloads() == [b"1", b"2", b"3"]


def test_the_last_batch_is_known_after_a_restart_and_after_its_messages_are_gone(tmp_path: Path) -> None:
    server = start(tmp_path)
    client = Client(server)
    client.streams.ask("STREAM.CREATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>"]})
    client.upload("one", [b"1"])
    client.commit(3, {"one": 1})
    client.streams.ask("STREAM.PURGE.ORDERS")
    client.upload("lost", [b"2"])
    client.close()
    kill(server)

    server = start(tmp_path)
    try:
        client = Client(server)
        client.upload("again", [b"1"])
        assert not client.commit(3, {"again": 1})
        with pytest.raises(RefusedError, match="the server has been restarted; repeat the batch"):
            client.commit(4, {"lost": 1})
        assert client.streams.state("ORDERS").messages == 0
        client.close()
    finally:
        server.stop()


def test_what_is_missing_or_wrong_is_refused_with_the_reason(client: Client) -> None:
    header = b"NATS/1.0\r\nJetlake-Upload: one/2\r\n\r\n"
    answer = client.connection.request("orders.a", b"x", headers=header).json()
    assert "the upload is unknown" in answer["error"]["description"]
    bad = b"NATS/1.0\r\nJetlake-Upload: a b\r\n\r\n"
    answer = client.connection.request("orders.a", b"x", headers=bad).json()
    assert "cannot be read" in answer["error"]["description"]

    client.upload("one", [b"1", b"2"])
    for uploads in ({"one": 3}, {"none": 1}):
        with pytest.raises(RefusedError, match="is not here, or not with"):
            client.commit(0, uploads)
    with pytest.raises(RefusedError, match="invalid JSON"):
        client.streams.ask("STREAM.UPLOAD.COMMIT.ORDERS", {"batch": -1})
    with pytest.raises(RefusedError, match="no message to commit"):
        client.commit(0, {})
    with pytest.raises(RefusedError, match="is not here"):
        client.commit(0, {"one": 2**64 - 1, "none": 2**64 - 1})
    twice = [{"id": "one", "messages": 2}] * 2
    with pytest.raises(RefusedError, match="an upload is named twice"):
        client.streams.ask("STREAM.UPLOAD.COMMIT.ORDERS", {"query": "q", "batch": 0, "uploads": twice})

    assert client.streams.state("ORDERS").messages == 0
    assert client.commit(0, {"one": 2}), "what was refused has taken nothing away"


def test_aborted_uploads_and_those_of_an_earlier_run_are_gone(client: Client) -> None:
    client.upload("one", [b"1"])
    client.streams.abort_uploads("ORDERS", ["one", "none"])
    client.upload("two", [b"2"], run="first")
    client.upload("three", [b"3"], run="second")

    for uploads in ({"one": 1}, {"two": 1}):
        with pytest.raises(RefusedError, match="is not here"):
            client.commit(0, uploads)
    assert client.commit(0, {"three": 1})


def test_a_batch_that_breaks_a_rule_of_the_stream_is_refused_as_a_whole(client: Client) -> None:
    client.streams.ask(
        "STREAM.UPDATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>"], "max_msgs": 2, "discard": "new"}
    )
    client.upload("one", [b"1", b"2", b"3"])

    with pytest.raises(RefusedError, match="maximum messages exceeded"):
        client.commit(0, {"one": 3})

    assert client.streams.state("ORDERS").messages == 0


def test_uploading_needs_the_right_to_publish_and_committing_that_of_the_api(tmp_path: Path) -> None:
    path = tmp_path / "server.conf"
    path.write_text(RIGHTS.format(folder=tmp_path))
    server = start_server_process("jetlake", tmp_path, ["-c", str(path)])
    try:
        admin = Client(server, user="admin")
        admin.streams.ask("STREAM.CREATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>", "secret.>"]})
        task = Client(server, user="task")
        assert task.upload("one", [b"1"])["uploaded"] == 1
        with pytest.raises(ClientError, match=r"(?i)permissions violation"):
            task.upload("two", [b"2"], subject="secret.a")
        task.close()
        task = Client(server, user="task")
        with pytest.raises(ClientError, match=r"(?i)permissions violation"):
            task.commit(0, {"one": 1})
        assert admin.commit(0, {"one": 1})
        task.close()
        admin.close()
    finally:
        server.stop()


@pytest.mark.crash
@pytest.mark.timeout(300)
def test_a_server_that_is_killed_again_and_again_stores_every_batch_once_and_whole(tmp_path: Path) -> None:
    chance = random.Random(5)
    server = start(tmp_path)
    client = Client(server)
    client.streams.ask("STREAM.CREATE.ORDERS", {"name": "ORDERS", "subjects": ["orders.>"]})
    batch, attempt, kills, restarted_at, sizes = 0, 0, 0, 0, dict[int, int]()
    killer = threading.Timer(0, lambda: None)
    deadline = time.monotonic() + 240
    kill_at = time.monotonic() + chance.uniform(0.05, 0.6)
    try:
        # What was under way at the last kill is repeated, too.
        while (
            kills < KILLS
            or killer.is_alive()
            or server.process.poll() is not None
            or batch < restarted_at + BATCHES_MIN
        ):
            assert time.monotonic() < deadline
            sizes.setdefault(batch, chance.randrange(1, 400))
            if kills < KILLS and time.monotonic() >= kill_at:
                kills += 1
                killer = threading.Timer(chance.uniform(0, 0.05), kill, [server])
                killer.start()
                kill_at = time.monotonic() + chance.uniform(0.5, 1.0)
            try:
                attempt += 1
                payloads = [f"{batch} {number}".encode() for number in range(sizes[batch])]
                half = len(payloads) // 2
                parts = {f"a{attempt}": payloads[:half], f"b{attempt}": payloads[half:]}
                for upload, part in parts.items():
                    if part:
                        client.upload(upload, part, run=str(attempt))
                client.commit(batch, {upload: len(part) for upload, part in parts.items() if part})
                batch += 1
            except ClientError:
                client.close()
                server.wait_for_exit()
                server = start(tmp_path)
                client = Client(server)
                restarted_at = batch
        stored = client.payloads()
        wanted = [f"{number} {row}".encode() for number in range(batch) for row in range(sizes[number])]
        assert stored == wanted
    finally:
        client.close()
        server.stop()
