"""A run with paused processes: they continue, and it ends with the exit code of its command."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.process_pauses import descendants, pause

TURNING = "import time\nwhile True: print(time.monotonic(), flush=True); time.sleep(0.001)"
PAUSE_S = 0.3

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def test_a_paused_process_continues():
    process = subprocess.Popen([sys.executable, "-c", TURNING], stdout=subprocess.PIPE, text=True)
    try:
        before_s = after_s = float(process.stdout.readline())
        pause([process.pid], PAUSE_S)
        # Fails by the time limit of a test if there is no such gap.
        while after_s - before_s < PAUSE_S:
            before_s, after_s = after_s, float(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_processes_of_processes_are_found():
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {TURNING!r}])"
    below = []
    outer = subprocess.Popen([sys.executable, "-c", inner], stdout=subprocess.PIPE, text=True)
    try:
        outer.stdout.readline()
        below = descendants(outer.pid)
        assert len(below) == 1
    finally:
        for pid in below:
            subprocess.run(["kill", "-9", str(pid)], check=True)
        outer.wait()
        outer.stdout.close()


def test_exit_code_is_that_of_the_command():
    program = "import time, sys; time.sleep(0.5); sys.exit(3)"
    ended = subprocess.run(
        [sys.executable, "-m", "tests.process_pauses", "--", sys.executable, "-c", program], check=False
    )

    assert ended.returncode == 3
