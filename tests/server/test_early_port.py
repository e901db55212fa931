"""The port of a server is open before anything that takes time is loaded."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from jetlake.server import early_port

WATCH = textwrap.dedent(
    """
    import os, socket as _, sys

    HEAVY = {"typing", "msgspec", "jetlake._engine"}

    def watch(event, arguments):
        if event == "import" and arguments[0] in HEAVY:
            import _socket
            client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
            found = client.connect_ex(("127.0.0.1", PORT))
            os.write(1, f"{arguments[0]} {found}".encode())
            os._exit(0)

    for name in [name for name in sys.modules if name.partition(".")[0] in ("typing", "msgspec", "jetlake")]:
        del sys.modules[name]
    sys.addaudithook(watch)
    """
)

ENTRIES = {
    "jetlake": "from jetlake.cli.app import main; sys.argv = ['jetlake', 'server', *FLAGS]; main()",
    "jetlake-nats-server": "from jetlake.server.entry import main; sys.argv = ['jetlake-nats-server', *FLAGS]; main()",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("entry", ENTRIES)
def test_clients_can_connect_before_anything_large_is_loaded(entry: str):
    port = free_port()
    flags = ["-a", "127.0.0.1", "-p", str(port)]
    program = WATCH.replace("PORT", str(port)) + ENTRIES[entry].replace("FLAGS", repr(flags))

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout.endswith(" 0"), answer.stdout + answer.stderr


@pytest.mark.parametrize(
    "words", [["-v"], ["--help"], ["-t", "-c", "x"], ["--signal", "stop"], ["version"], ["-p", "-1"], ["-p", "70000"]]
)
def test_no_port_is_taken_where_none_is_wanted_or_known(words: list[str]):
    early_port.listen(["-a", "127.0.0.1", *words])

    assert early_port.hand_over("127.0.0.1", 4222) is None


@pytest.mark.parametrize(
    "written",
    [
        "host: 127.0.0.1, port: PORT",
        'listen: "127.0.0.1:PORT"',
        'net = "127.0.0.1"\nlisten: PORT',
        "client_port = PORT\nport: $client_port\nhost: localhost\nhost: 127.0.0.1",
        'include "address.conf"\njetstream { }',
    ],
)
def test_port_that_a_file_names_is_open_before_the_file_is_checked(written: str, tmp_path: Path):
    port = free_port()
    (tmp_path / "address.conf").write_text(f"host: 127.0.0.1\nport: {port}\n")
    (tmp_path / "server.conf").write_text(written.replace("PORT", str(port)))

    early_port.listen(["-c", str(tmp_path / "server.conf")])

    descriptor = early_port.hand_over("127.0.0.1", port)
    assert descriptor is not None
    socket.socket(fileno=descriptor).close()


def test_flags_go_over_the_address_of_a_file(tmp_path: Path):
    port = free_port()
    (tmp_path / "server.conf").write_text("listen: 127.0.0.2:1")

    early_port.listen(["-a", "127.0.0.1", "-p", str(port), "-c", str(tmp_path / "server.conf")])

    descriptor = early_port.hand_over("127.0.0.1", port)
    assert descriptor is not None
    socket.socket(fileno=descriptor).close()


@pytest.mark.parametrize("written", [None, "port: ", "port: many", "listen: 127.0.0.1:-1", "port: 70000", "include x"])
def test_no_port_is_guessed_if_a_file_does_not_name_one(written: str | None, tmp_path: Path):
    if written is not None:
        (tmp_path / "server.conf").write_text(written)

    early_port.listen(["-a", "127.0.0.1", "-c", str(tmp_path / "server.conf")])

    assert early_port.hand_over("127.0.0.1", 4222) is None


@pytest.mark.parametrize("entry", ENTRIES)
def test_clients_can_connect_before_the_engine_is_loaded_if_a_file_names_the_port(entry: str, tmp_path: Path):
    port = free_port()
    (tmp_path / "server.conf").write_text(f"listen: 127.0.0.1:{port}")
    watch = WATCH.replace("PORT", str(port)).replace('"typing", "msgspec", ', "")
    program = watch + ENTRIES[entry].replace("FLAGS", repr(["-c", str(tmp_path / "server.conf")]))

    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)

    assert answer.stdout == "jetlake._engine 0", answer.stdout + answer.stderr


def test_a_socket_for_another_address_is_closed():
    port = free_port()
    early_port.listen(["-a", "127.0.0.1", "-p", str(port)])

    assert early_port.hand_over("127.0.0.1", port + 1) is None

    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_a_client_that_came_early_is_served():
    port = free_port()
    command = [sys.executable, "-m", "jetlake", "server", "-a", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect_as_soon_as_possible(port) as client:
            client.settimeout(60)
            client.sendall(b"CONNECT {}\r\nPING\r\n")
            received = b""
            while not received.endswith(b"PONG\r\n"):
                more = client.recv(4096)
                assert more, received
                received += more
    finally:
        process.terminate()
        process.wait(60)


def connect_as_soon_as_possible(port: int) -> socket.socket:
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


def test_a_port_that_is_taken_is_reported_as_ever():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "jetlake", "server", "-a", "127.0.0.1", "-p", str(port)]

        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert answer.returncode == 1
    assert "address already in use" in answer.stderr.lower()
