"""Plays histories of consumers on nats-server and on Jetlake and tells where they differ.

    python -m tests.compatibility.consumer_differences --seeds 2000
    python -m tests.compatibility.consumer_differences --start 17 --seeds 1

Both servers take each step in turn. What can be seen must become the same after every step; a server may need a moment
for that. A difference counts if it comes again when the same history is played again, with more patience; then steps
are left out of the history as long as it still shows. The exit code is 1 if there was a difference.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.compatibility.consumer_histories import History, Maker
from tests.compatibility.consumer_playing import Server, Side

KINDS = ("nats-server", "jetlake")

# How long both may need to come to the same state, and how much longer when a history is played again.
AGREE_SECONDS = 1.0
PATIENCES = (1.0, 3.0, 8.0)

# A long run says after so many histories how far it is.
PROGRESS_SEEDS = 100

# Streams have names of their own, so that nothing of an earlier history is seen in a later one.
_numbers = itertools.count(1)


@contextlib.contextmanager
def both_servers(folder: Path) -> Iterator[list[Server]]:
    with contextlib.ExitStack() as started:
        servers = []
        for kind in KINDS:
            servers.append(Server(kind, folder / kind))
            started.callback(servers[-1].stop)
        yield servers


def play(servers: list[Server], history: History, patience: float) -> str | None:
    """Return the first difference, None if there is none."""
    stream = f"H{next(_numbers)}"
    sides = [Side(server, stream, patience) for server in servers]
    try:
        if different := _compare("the stream", [side.begin(history.stream) for side in sides]):
            return different
        for number, step in enumerate(history.steps):
            answers = [side.play(step) for side in sides]
            at = f"step {number}, {step}"
            if different := _compare(f"{at}: answers", answers) or _compare_seen(at, sides, patience):
                return different
        return _compare("what is stored at the end", [side.contents() for side in sides])
    finally:
        for side in sides:
            # One that could not be started again is what went wrong, not that its connection is closed.
            with contextlib.suppress(OSError):
                side.close()


def _compare_seen(at: str, sides: list[Side], patience: float) -> str | None:
    deadline = time.monotonic() + AGREE_SECONDS * patience
    while different := _compare(at, [side.seen() for side in sides]):
        if time.monotonic() > deadline:
            return different
        time.sleep(0.02)
    return None


def _compare(what: str, values: list[Any]) -> str | None:
    first, second = values
    if first == second:
        return None
    lines = [f"{what}:"]
    if isinstance(first, dict):
        keys = [key for key in first if first[key] != second.get(key)] + [key for key in second if key not in first]
        first, second = ({key: value.get(key) for key in keys} for value in (first, second))
    return "\n".join([*lines, *(f"    {kind}: {value}" for kind, value in zip(KINDS, (first, second), strict=True))])


def difference(servers: list[Server], history: History) -> str | None:
    """Return a difference that comes again and again, None if there is none."""
    different = None
    for patience in PATIENCES:
        different = play(servers, history, patience)
        if different is None:
            return None
    return different


def smallest(servers: list[Server], history: History, different: str) -> tuple[History, str]:
    """Leave out steps as long as there is still a difference."""
    size = max(len(history.steps) // 2, 1)
    while True:
        position = 0
        while position < len(history.steps):
            steps = history.steps[:position] + history.steps[position + size :]
            smaller = dataclasses.replace(history, steps=steps)
            if found := play(servers, smaller, 1.0):
                history, different = smaller, found
            else:
                position += size
        if size == 1:
            return history, different
        size //= 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=100, help="number of histories (default: 100)")
    parser.add_argument("--start", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--most", type=int, default=5, help="stop after this many differences (default: 5)")
    options = parser.parse_args()
    found = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, both_servers(Path(folder)) as servers:
        for seed in range(options.start, options.start + options.seeds):
            history = Maker(seed).history()
            if different := difference(servers, history):
                found += 1
                small, different = smallest(servers, history, different)
                print(f"{small}\n  {different}\n", flush=True)
            if found == options.most:
                break
            if seed % PROGRESS_SEEDS == PROGRESS_SEEDS - 1:
                print(f"up to seed {seed}: {found} differences, {time.monotonic() - begun:.0f} s", flush=True)
        print(f"{seed - options.start + 1} histories, {found} differences, {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
