"""`Stop`: what ends a command that runs until it is told to end."""

import os
import signal
import subprocess
import sys

import pytest

WAIT_S_MAX = 60.0
TRIES = 10
"""Each of these fails in about every second try if the handler of the signal sets the event itself."""

WAITING = """
import threading
from jetlake.cli.hosted import Stop

with Stop() as stop:
    for _ in range(8):
        # As those of a server: threads that may be given the signal.
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    print("ready", flush=True)
    stop.wait()
print("stopped")
"""

LOOKING = """
from jetlake.cli.hosted import Stop

with Stop() as stop:
    print("ready", flush=True)
    while not stop.wait(0):
        pass
print("stopped")
"""

HOSTED = """
from jetlake.cli.hosted import Stop

with Stop(hosted=True) as stop:
    print("ready", flush=True)
    stop.wait()
print("stopped")
"""


@pytest.fixture
def start():
    started = []

    def begin(program):
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def end_of(process):
    rest, _ = process.communicate(timeout=WAIT_S_MAX)
    return process.returncode, rest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_that_comes_while_the_process_is_suspended_is_obeyed(start, number):
    for _ in range(TRIES):
        process = start(WAITING)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        os.kill(process.pid, number)
        os.kill(process.pid, signal.SIGCONT)

        assert end_of(process) == (0, "stopped\n")


def test_signal_that_comes_while_a_program_looks_for_it_is_obeyed(start):
    for _ in range(TRIES):
        process = start(LOOKING)
        process.terminate()

        assert end_of(process) == (0, "stopped\n")


def test_many_signals_are_as_good_as_one(start):
    process = start(WAITING)
    for _ in range(20):
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)

    code, _ = end_of(process)
    # What comes after the end of the block is for the program itself.
    assert code in {0, 1, -signal.SIGINT, -signal.SIGTERM}


def test_hosted_command_stops_with_its_host(start):
    process = start(HOSTED)
    # Closes the standard input first.
    assert end_of(process) == (0, "stopped\n")
