"""A server as a process when something breaks: it must not look alive, and its exit code must say so."""

import signal
import socket
import subprocess
import sys
import time

import pytest

BREAK_THE_ENGINE = """
import os, sys, threading
from jetlake.server import process
from jetlake.server.options import ServerOptions
from jetlake.server.server import Server

def lose_the_polls(port):
    nothing = os.open(os.devnull, os.O_RDONLY)
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[eventpoll]":
                os.dup2(nothing, int(name))
        except FileNotFoundError:
            pass
    import socket
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        pass

start = Server.start
def start_then_break(self):
    start(self)
    threading.Timer(0.1, lose_the_polls, (self.port,)).start()
    return self
Server.start = start_then_break
sys.exit(process.run(ServerOptions(host="127.0.0.1", port=0)))
"""

BREAK_THE_EVENT_THREAD = """
import sys
from jetlake.server import process
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.options import AccessOptions, Credentials, ServerOptions

def break_down(self, login):
    raise RuntimeError("a bug of ours")

Authenticator.decide = break_down
access = AccessOptions(credentials=Credentials(token=sys.argv[1]))
sys.exit(process.run(ServerOptions(host="127.0.0.1", port=0, access=access)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="finds the engine's polls in /proc")
def test_engine_that_breaks_ends_the_process_with_1(start_process):
    # It may break before it says that it is ready.
    process = start_process(command=[sys.executable, "-c", BREAK_THE_ENGINE], wait=False)

    assert process.wait() == 1
    assert "[FTL] the engine stopped by itself: " in process.log()


@pytest.mark.parametrize("token", ["t", "$2a$04$a-hash-that-is-compared-in-a-thread-of-its-own"])
def test_thread_that_breaks_ends_the_process_with_1(start_process, token):
    process = start_process(command=[sys.executable, "-c", BREAK_THE_EVENT_THREAD, token])

    with socket.create_connection(("127.0.0.1", process.port), timeout=60) as client:
        client.sendall(b'CONNECT {"auth_token":"t"}\r\nPING\r\n')

        assert process.wait() == 1
    assert "a bug of ours" in process.log()
    assert "this is a bug, please report it" in process.log()


ODD = [
    f"authorization {{ timeout: {'9' * 400}.0 }}",
    f"authorization {{ timeout: -{'9' * 306}.0 }}",
    "authorization { timeout: 18446744073709549.0 }",
    f"websocket {{ port: -1, no_tls: true, handshake_timeout: {'9' * 306}.0 }}",
    f"mappings {{ a: {{ dest: b, weight: '{'9' * 5_000}' }} }}",
    *('operator: "a\\x00b"', 'log_file: "a\\x00b"', 'pid_file: "a\\x00b"', 'tls { cert_file: "\\x00", key_file: b }'),
    *("x0: 1", *(f"x{number}: [$x{number - 1}]" for number in range(1, 1_500)), "ocsp_cache: $x1499"),
]
"""Lines that can be read and mean nothing; the last ones do so together."""


def test_file_that_means_nothing_does_not_end_a_running_server(start_process, tmp_path):
    """Whoever may write the file must not be able to end the server by a signal."""
    path = tmp_path / "server.conf"
    path.write_text("")
    process = start_process("-c", str(path))
    refused = "[ERR] Failed to reload server configuration: "

    for count, text in enumerate([*ODD[:9], "\n".join(ODD[9:])], 1):
        path.write_text(f"# First line.\n{text}\n")
        process.send(signal.SIGHUP)
        wait_for(lambda count=count: is_answered(process, count) or process.process.poll() is not None)

        assert process.process.poll() is None, process.log()
        assert f"{refused}{path}:" in process.log().splitlines()[-1]
    with socket.create_connection(("127.0.0.1", process.port), timeout=60) as client:
        assert client.recv(4) == b"INFO"


def is_answered(process, count):
    """Tell whether so many signals have come, and the last one has been answered; each mistake has a line."""
    log = process.log()
    return log.count('Trapped "hangup" signal') == count and log.endswith("\n") and "hangup" not in log.splitlines()[-1]


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def test_unwritable_stderr_does_not_stop_the_server():
    process = subprocess.Popen(
        [sys.executable, "-m", "jetlake.server.main", "-p", "-1", "-a", "127.0.0.1"], stderr=subprocess.PIPE
    )
    line = b""
    while b"Server is ready" not in line:
        line = process.stderr.readline()

    process.stderr.close()
    process.terminate()

    assert process.wait(60) == 0
