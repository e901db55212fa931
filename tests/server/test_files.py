"""Pid file and ports file."""

import json

from jetlake.server import files


def test_pid_file_holds_digits_without_a_newline(tmp_path):
    path = tmp_path / "server.pid"

    files.write_pid_file(str(path), 4711)

    assert path.read_bytes() == b"4711"


def test_ports_file_lists_the_listeners_and_is_written_in_one_step(tmp_path):
    path = files.ports_file_path(str(tmp_path), "nats-server", 4711)

    files.write_ports_file(path, files.Ports(nats=["nats://127.0.0.1:4222"]))

    assert [file.name for file in tmp_path.iterdir()] == ["nats-server_4711.ports"]
    assert json.loads((tmp_path / "nats-server_4711.ports").read_bytes()) == {"nats": ["nats://127.0.0.1:4222"]}
