"""How fast the message store is by itself: `python -m benchmarks.store`, part of `make bench`.

Runs `crates/engine/benches/store.rs` in release mode on the disk of the current folder, and compares its figures with
what we want to reach. There is no other server in it: the goals are absolute, so the machine counts, and so does
whatever else it does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.report import PLAIN_COLUMNS


@dataclass(frozen=True)
class StoreGoal:
    """One figure of the store, and what it should be."""

    name: str
    what: str
    relation: str
    bound: float

    def is_reached(self, value: float) -> bool:
        return value >= self.bound if self.relation == "at least" else value <= self.bound


GOALS = (
    StoreGoal("append_128_per_second", "messages/s, 128 B, group commit, 1,000 in flight", "at least", 2_000_000),
    StoreGoal("append_65536_of_disk", "64 KB messages, part of what synced 1 MiB writes reach", "at least", 0.8),
    StoreGoal("open_after_kill_ms", "ms to open 10 million messages after a kill", "at most", 1_000),
    StoreGoal("open_after_close_ms", "ms to open 10 million messages after a clean stop", "at most", 1_000),
    StoreGoal("disk_bytes_per_byte", "bytes on disk per byte of length, subject and payload, 128 B", "at most", 1.25),
    StoreGoal("sequential_read_per_second", "messages/s read in order, 128 B", "at least", 3_000_000),
    StoreGoal("point_read_p50_us", "µs to read one message, median", "at most", 5),
    StoreGoal("memory_bytes_per_subject", "bytes of memory per subject, 1 million subjects", "at most", 120),
)


def measure() -> dict[str, float]:
    """Run the benchmark and return its figures by name."""
    command = ["cargo", "bench", "-q", "-p", "jetlake-engine", "--bench", "store"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        figures = read_figures(process.stdout.readlines())
    if process.returncode != 0:
        raise SystemExit(f"benchmarks: `{' '.join(command)}` ended with {process.returncode}")
    return figures


def read_figures(lines: list[str]) -> dict[str, float]:
    figures = {}
    for line in lines:
        if line.startswith("{"):
            figure = json.loads(line)
            figures[figure["name"]] = float(figure["value"])
    return figures


def table(figures: dict[str, float]) -> Table:
    shown = Table("figure", "value", "goal", box=SIMPLE)
    goals = {goal.name: goal for goal in GOALS}
    for name, value in figures.items():
        goal = goals.get(name)
        if goal is None:
            shown.add_row(name.replace("_", " "), f"{value:,.2f}", "")
            continue
        word = "[green]reached[/green]" if goal.is_reached(value) else "[red]not reached[/red]"
        shown.add_row(goal.what, f"{value:,.2f}", f"{word}: {goal.relation} {goal.bound:,g}")
    return shown


def main() -> int:
    console = Console(width=None if sys.stdout.isatty() else PLAIN_COLUMNS)
    console.print("the message store alone ...")
    console.print(table(measure()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
