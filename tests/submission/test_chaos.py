"""Sender and server are killed and the disk is filled at random: every reliable message is stored once, in order."""

import os
import random
import subprocess
import sys

import pytest

DISK_MIB = 48
MOUNTED = 'mount -t tmpfs -o size={size}m tmpfs "{disk}" && exec "$@"'
"""The file system is seen by the program alone, and goes with it."""


def in_small_disk(disk, *command):
    return ["unshare", "-r", "-m", "sh", "-c", MOUNTED.format(size=DISK_MIB, disk=disk), "sh", *command]


def run(kind, folder, seconds):
    disk = folder / "disk"
    disk.mkdir()
    if subprocess.run(in_small_disk(disk, "true"), capture_output=True, check=False, timeout=60).returncode:
        pytest.skip("a file system can be mounted neither by this user nor in a namespace of its own")
    seed = random.randrange(1 << 31)
    command = [sys.executable, "-m", "tests.submission.chaos", kind, str(folder), str(disk), str(seed), str(seconds)]
    return subprocess.run(
        in_small_disk(disk, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=seconds + 240,
    )  # fmt: skip


@pytest.mark.crash
@pytest.mark.timeout(180)
def test_everything_fails_at_random_and_nothing_is_lost_doubled_or_moved(server_kind, tmp_path):
    done = run(server_kind, tmp_path, 8)

    assert done.returncode == 0, done.stdout
    print(done.stdout)


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="takes minutes: make test-long")
def test_everything_fails_for_two_minutes(server_kind, tmp_path):
    done = run(server_kind, tmp_path, 120)

    assert done.returncode == 0, done.stdout
    print(done.stdout)
