"""`jetlake server check`: what is wrong with a server is the answer of the check, never an error of the command."""

import json
import socket
import threading

import pytest

from tests.cli.conftest import asked_until

INFO = b'INFO {"server_id":"x","server_name":"x","version":"2.12.0","proto":1,"max_payload":1048576,"headers":true}\r\n'


@pytest.fixture
def streams(done, tmp_path):
    """Create streams from configurations, and remove them when the test ends."""
    names = []

    def create(**config):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config))
        done("stream", "add", "--config", str(path))
        names.append(config["name"])

    yield create
    for name in names:
        done("stream", "rm", name, "--force")


def test_copy_whose_origin_cannot_be_reached_is_critical(cli, streams):
    streams(name="COPY_OF_NONE", mirror={"name": "NONE"})

    answer = asked_until(
        lambda: cli("server", "check", "stream", "COPY_OF_NONE"), lambda answer: "stream not found" in answer.stdout
    )

    assert answer.exit_code == 2
    assert (
        "CRITICAL stream: COPY_OF_NONE: 0 messages, 0 behind, NONE cannot be reached: stream not found" in answer.stdout
    )


def test_copy_that_has_never_heard_of_its_origin_is_critical(cli, streams):
    streams(name="FAR", mirror={"name": "NONE", "external": {"api": "$JS.far.API", "deliver": "far"}})

    answer = cli("server", "check", "stream", "FAR", "--json")

    facts = json.loads(answer.stdout)
    assert (answer.exit_code, facts["status"], facts["unreachable"]) == (2, "CRITICAL", ["NONE"])


def test_copy_of_an_origin_that_is_there_is_good(cli, streams):
    streams(name="THERE", subjects=["there"])
    streams(name="COPY_OF_THERE", sources=[{"name": "THERE"}])

    answer = asked_until(
        lambda: cli("server", "check", "stream", "COPY_OF_THERE"), lambda answer: answer.exit_code == 0
    )

    assert "OK stream: COPY_OF_THERE: 0 messages, 0 behind" in answer.stdout


@pytest.fixture
def silent_server():
    """The address of a server that answers the first PING of a connection, and no other one."""

    def serve():
        connection, _ = listener.accept()
        connection.sendall(INFO)
        received = b""
        while b"PING" not in received:
            received += connection.recv(4096)
        connection.sendall(b"PONG\r\n")
        is_over.wait()
        connection.close()

    is_over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve)
    thread.start()
    yield f"nats://127.0.0.1:{listener.getsockname()[1]}"
    is_over.set()
    thread.join()
    listener.close()


def test_connection_that_is_silent_is_critical(cli, silent_server):
    answer = cli("server", "check", "connection", "--server", silent_server, "--timeout", "1s")

    assert answer.exit_code == 2
    assert answer.stdout.startswith("CRITICAL connection: ")


@pytest.mark.parametrize("words", [("rtt",), ("server", "info")])
def test_silent_server_is_told_in_one_line(cli, silent_server, words):
    answer = cli(*words, "--server", silent_server, "--timeout", "1s")

    assert answer.exit_code == 1
    assert "does not answer a PING" in answer.stderr
