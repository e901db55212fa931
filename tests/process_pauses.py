"""Runs a command and pauses random processes below it: `python -m tests.process_pauses -- make test-python`.

On a busy machine any process may not be scheduled for a second or two. This does the same on a quiet machine, and much
more often: code that depends on timing fails in one run instead of in one of a hundred. Needs Linux, for /proc.
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

PAUSES_S = (0.02, 0.05, 0.1, 0.3, 0.7, 2.0)
"""How long a pause is: what is tested has a limit of three seconds or more, unless the limit is what is tested."""

BETWEEN_S = (0.02, 0.15)
"""From one pause to the next, at least and at most: each of thirty processes is paused for 5 % of the time."""

PROCESSES_MAX = 3
"""Paused together."""


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


def pause(processes: Sequence[int], seconds: float) -> None:
    """Stop processes and let them continue; those that have ended meanwhile are skipped."""
    for number, wait_s in ((signal.SIGSTOP, seconds), (signal.SIGCONT, 0.0)):
        for process in processes:
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue
        time.sleep(wait_s)


def pause_at_random(root: int, chance: random.Random, is_over: threading.Event) -> None:
    """Pause processes below one until it is over."""
    while not is_over.wait(chance.uniform(*BETWEEN_S)):
        found = descendants(root)
        picked = chance.sample(found, min(len(found), chance.randint(1, PROCESSES_MAX)))
        pause(picked, chance.choice(PAUSES_S))


def main() -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+")
    words = parser.parse_args()
    command = subprocess.Popen(words.command)
    is_over = threading.Event()
    pausing = threading.Thread(target=pause_at_random, args=(command.pid, random.Random(words.seed), is_over))
    pausing.start()
    try:
        return command.wait()
    finally:
        is_over.set()
        pausing.join()


if __name__ == "__main__":
    sys.exit(main())
