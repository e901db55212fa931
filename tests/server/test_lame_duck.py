"""Lame duck mode: the timing by itself, and a real process that leaves."""

import signal
import socket
import sys
import time

from jetlake.server.lame_duck import LameDuck
from jetlake.server.options import LameDuckOptions
from jetlake.server.python_log import PythonLog

SHORT_LAME_DUCK = """
import sys
from jetlake.server.options import LameDuckOptions, ServerOptions
from jetlake.server.process import run
duration_s, grace_period_s = map(float, sys.argv[1:])
lame_duck = LameDuckOptions(duration_s=duration_s, grace_period_s=grace_period_s)
sys.exit(run(ServerOptions(host="127.0.0.1", port=0, lame_duck=lame_duck)))
"""


class Steps:
    """An engine of which only the number of clients is known."""

    def __init__(self, client_count):
        self.client_count = client_count
        self.taken = []

    def stop_accepting(self):
        self.taken.append("stop accepting")

    def announce_lame_duck(self):
        self.taken.append("announce")
        return self.client_count

    def close_one_connection(self):
        self.taken.append("close")
        self.client_count -= 1
        return self.client_count >= 0


def leave(steps, options, wait=None):
    waits = []

    def note(seconds):
        waits.append(seconds)
        return False

    LameDuck(steps, options, PythonLog(), wait or note).run()
    return waits


def test_without_clients_nothing_is_waited_for():
    steps = Steps(0)

    waits = leave(steps, LameDuckOptions())

    assert steps.taken == ["stop accepting", "announce"]
    assert waits == []


def test_clients_are_closed_one_by_one_after_the_grace_period():
    steps = Steps(3)

    waits = leave(steps, LameDuckOptions(duration_s=120, grace_period_s=10))

    assert steps.taken == ["stop accepting", "announce", "close", "close", "close"]
    assert waits[0] == 10
    assert len(waits) == 3
    assert all(0.5 <= gap <= 1.0 for gap in waits[1:])


def test_many_clients_still_end_within_the_duration():
    waits = leave(Steps(1000), LameDuckOptions(duration_s=20, grace_period_s=10))

    assert all(0.005 <= gap <= 0.01 for gap in waits[1:])
    assert sum(waits) <= 20


def test_clients_that_leave_by_themselves_are_not_waited_for():
    steps = Steps(5)

    def all_but_one_leave(_seconds):
        steps.client_count = min(steps.client_count, 1)
        return False

    leave(steps, LameDuckOptions(), wait=all_but_one_leave)

    assert steps.taken.count("close") == 2


def test_hurry_ends_it_at_once():
    steps = Steps(5)

    leave(steps, LameDuckOptions(), wait=lambda _: True)

    assert "close" not in steps.taken


def start_short(start_process, duration_s, grace_period_s):
    return start_process(command=[sys.executable, "-c", SHORT_LAME_DUCK, str(duration_s), str(grace_period_s)])


def connect_client(process, protocol):
    client = socket.create_connection(("127.0.0.1", process.port))
    client.settimeout(60)
    client.sendall(b'CONNECT {"verbose":false,"protocol":%d}\r\nPING\r\n' % protocol)
    received = b""
    while b"PONG\r\n" not in received:
        received += client.recv(4096)
    return client


def read_to_the_end(client):
    received = b""
    while chunk := client.recv(4096):
        received += chunk
    client.close()
    return received


def test_process_without_clients_leaves_at_once(start_process):
    process = start_process()

    process.send(signal.SIGUSR2)

    assert process.wait() == 0
    assert "Entering lame duck mode, stop accepting new clients" in process.log()
    assert "Closing existing clients" not in process.log()


def test_process_tells_its_clients_closes_them_and_exits_with_0(start_process):
    process = start_short(start_process, duration_s=1.5, grace_period_s=0.5)
    told, untold = connect_client(process, protocol=1), connect_client(process, protocol=0)

    begun_at = time.monotonic()
    process.send(signal.SIGUSR2)
    received_by_told, received_by_untold = read_to_the_end(told), read_to_the_end(untold)

    assert process.wait() == 0
    assert time.monotonic() - begun_at >= 0.5
    assert b'"ldm":true' in received_by_told
    assert b"-ERR" not in received_by_told
    assert b"ldm" not in received_by_untold
    assert "Closing existing clients" in process.log()


def test_new_clients_are_refused_while_the_process_leaves(start_process):
    process = start_short(start_process, duration_s=30, grace_period_s=20)
    client = connect_client(process, protocol=1)

    process.send(signal.SIGUSR2)
    process.wait_for_line("Entering lame duck mode")

    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", process.port), timeout=1).close()
        except ConnectionRefusedError:
            break
        assert time.monotonic() < deadline, "the listener is still open"
        time.sleep(0.02)
    client.close()


def test_sigterm_is_ignored_while_the_process_leaves_and_sigint_is_not(start_process):
    process = start_short(start_process, duration_s=60, grace_period_s=50)
    client = connect_client(process, protocol=1)
    process.send(signal.SIGUSR2)
    process.wait_for_line("Entering lame duck mode")

    process.send(signal.SIGTERM)
    process.wait_for_line('Trapped "terminated" signal')
    time.sleep(0.2)
    still_there = process.process.poll() is None
    process.send(signal.SIGINT)

    assert still_there
    assert process.wait() == 0
    client.close()
