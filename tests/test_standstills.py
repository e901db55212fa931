"""The run in which processes stand still: it stops them, lets them go on, and ends as its command ends."""

import subprocess
import sys

from tests.standstills import descendants, stand_still

TURNING = "import time\nwhile True: print(time.monotonic(), flush=True); time.sleep(0.001)"
STANDSTILL_S = 0.3


def test_a_process_stands_still_and_goes_on():
    process = subprocess.Popen([sys.executable, "-c", TURNING], stdout=subprocess.PIPE, text=True)
    try:
        before_s = after_s = float(process.stdout.readline())
        stand_still([process.pid], STANDSTILL_S)
        # Fails by the time limit of a test if there is no such gap.
        while after_s - before_s < STANDSTILL_S:
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
        [sys.executable, "-m", "tests.standstills", "--", sys.executable, "-c", program], check=False
    )

    assert ended.returncode == 3
