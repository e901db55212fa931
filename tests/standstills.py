"""Runs a command while processes below it stand still by chance: `python -m tests.standstills -- make test-python`.

A busy machine lets any process wait, anywhere, now and then for half a second. This does the same on a quiet one and
much more often, so that a test, or a product, that relies on somebody being quick fails in one run instead of in
hundreds.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

STANDSTILL_S = (0.02, 0.05, 0.1, 0.3, 0.7)
"""How long processes stand still, at most a tenth of the shortest time that a test waits for something."""

PAUSE_S = (0.02, 0.15)
"""From one standstill to the next; so each of thirty processes stands still for some five percent of the time."""

PROCESSES_MAX = 3
"""That stand still together."""


def descendants(root: int) -> list[int]:
    """Return the processes below one; what has ended meanwhile is left out."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in parentheses may hold anything; the parent is the second word behind it.
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue
        children[parent].append(int(folder.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children[waiting.pop()]
        found += below
        waiting += below
    return found


def stand_still(processes: Sequence[int], seconds: float) -> None:
    """Stop processes for a while; those that are gone by then need nothing."""
    for number, wait_s in ((signal.SIGSTOP, seconds), (signal.SIGCONT, 0.0)):
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue
        time.sleep(wait_s)


def disturb(root: int, chance: random.Random, is_over: threading.Event) -> None:
    """Let processes below one stand still until it is over."""
    while not is_over.wait(chance.uniform(*PAUSE_S)):
        found = descendants(root)
        stand_still(
            chance.sample(found, min(len(found), chance.randint(1, PROCESSES_MAX))), chance.choice(STANDSTILL_S)
        )


def main() -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+")
    words = parser.parse_args()
    command = subprocess.Popen(words.command)
    is_over = threading.Event()
    disturbing = threading.Thread(target=disturb, args=(command.pid, random.Random(words.seed), is_over))
    disturbing.start()
    try:
        return command.wait()
    finally:
        is_over.set()
        disturbing.join()


if __name__ == "__main__":
    sys.exit(main())
