"""A server process of the crash test ends with its block, at whatever moment Ctrl-C comes."""

import os
import signal
import sys
from pathlib import Path

import pytest

from jetlake.crashtest.servers import ServerKind, ServerProcess
from tests.processes import interrupts_raise, processes_of  # noqa: F401

STAND_IN = "#!/bin/sh\nread line < {}\n"
"""It never serves, and waits for a writer who never comes: only the start is interrupted."""


class InterruptAt:
    """Traces the lines of the start, in the standard library too, and sends Ctrl-C at one of them."""

    def __init__(self, line):
        self.has_come = False
        self._left = line

    def __call__(self, frame, event, _argument):
        if frame.f_code.co_name == "_wait_until_it_serves":
            raise KeyboardInterrupt
        if event == "line" and not self.has_come:
            self._left -= 1
            if self._left == 0:
                self.has_come = True
                signal.raise_signal(signal.SIGINT)
        return self


def start_interrupted(kind, folder, line):
    """Start a server that is interrupted at the line of this number; tell whether there are that many lines."""
    interrupt = InterruptAt(line)
    sys.settrace(interrupt)
    try:
        with ServerProcess(kind, folder):
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return interrupt.has_come


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(120)
def test_ctrl_c_at_any_line_of_the_start_leaves_no_process(tmp_path):
    program = tmp_path / "stand-in"
    os.mkfifo(tmp_path / "pipe")
    program.write_text(STAND_IN.format(tmp_path / "pipe"))
    program.chmod(0o755)
    store = tmp_path / "store"
    kind = ServerKind("stand-in", (str(program), str(store)))

    line = 1
    while start_interrupted(kind, store, line):
        line += 1

    assert processes_of(store) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert line > 100, "Popen was not traced"
