"""The results as a table for people and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Result, Spread
from benchmarks.servers import JETLAKE, REFERENCE
from benchmarks.workloads import UNITS

PLAIN_COLUMNS = 160
"""Width when the output is no terminal, so that no row is broken."""


@dataclass(frozen=True)
class Setting:
    """Where and on what a run was made; a figure without it means nothing."""

    taken_at: str
    machine: str
    cores: int
    memory_gib: int
    load_average: str
    build_profile: str
    commit: str
    jetlake: str
    reference: str
    python: str
    repeats: int
    seconds: float

    @classmethod
    def now(cls, *, build_profile: str, jetlake: str, reference: str, repeats: int, seconds: float) -> Setting:
        memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(
            taken_at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            machine=f"{processor()}, {platform.system()} {platform.release()}",
            cores=os.cpu_count() or 1,
            memory_gib=round(memory_bytes / 2**30),
            load_average=" ".join(f"{load:.2f}" for load in os.getloadavg()),
            build_profile=build_profile,
            commit=git_commit(),
            jetlake=jetlake,
            reference=reference,
            python=platform.python_version(),
            repeats=repeats,
            seconds=seconds,
        )

    def lines(self) -> list[str]:
        return [
            f"{self.taken_at}, commit {self.commit}, {self.build_profile} build",
            f"{self.machine}, {self.cores} cores, {self.memory_gib} GiB, load average {self.load_average}",
            f"jetlake {self.jetlake}, {self.reference}, Python {self.python}",
            f"{self.repeats} repeats of {self.seconds:g} s, both servers in each; the clients are on the same machine",
        ]


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def git_commit() -> str:
    name = git("rev-parse", "--short", "HEAD") or "none yet"
    return f"{name} with changes" if git("status", "--porcelain") else name


def git(*arguments: str) -> str:
    """Return what git says, nothing if it fails."""
    folder = Path(__file__).parent
    answer = subprocess.run(["git", *arguments], check=False, cwd=folder, capture_output=True, text=True)
    return answer.stdout.strip() if answer.returncode == 0 else ""


def number(value: float) -> str:
    """Three digits that matter, with separators: 1,230,000 and 0.231."""
    if value == 0:
        return "0"
    digits = 3 - len(f"{abs(value):.0f}") if abs(value) >= 1 else 3
    return f"{round(value, digits):,.{max(0, digits)}f}"


def ratio_text(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f} to {spread.high:.2f})"


def table(results: list[Result]) -> Table:
    """One row per metric: both servers, the ratio with its quartiles, and the goals."""
    shown = Table(box=SIMPLE, pad_edge=False)
    shown.add_column("workload")
    shown.add_column("metric")
    for title in (JETLAKE, REFERENCE, "ratio (quartiles)"):
        shown.add_column(title, justify="right")
    shown.add_column("goal")
    for result in results:
        verdicts = {verdict.goal.metric: verdict for verdict in result.verdicts()}
        for position, metric in enumerate(result.workload.metrics):
            verdict = verdicts.get(metric)
            shown.add_row(
                result.workload.title if position == 0 else "",
                metric,
                number(result.spread(JETLAKE, metric).median),
                number(result.spread(REFERENCE, metric).median),
                ratio_text(result.ratio(metric)),
                "" if verdict is None else str(verdict),
                style="red" if verdict is not None and not verdict.is_reached else None,
                end_section=position == len(result.workload.metrics) - 1,
            )
    return shown


def show(setting: Setting, results: list[Result], console: Console | None = None) -> None:
    """Print everything: framed on a terminal, plain text when piped."""
    console = console or Console()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    for line in setting.lines():
        console.print(line, highlight=False)
    console.print(table(results))
    verdicts = [verdict for result in results for verdict in result.verdicts()]
    reached = sum(verdict.is_reached for verdict in verdicts)
    console.print(f"{reached} of {len(verdicts)} goals reached", highlight=False)


def to_json(setting: Setting, results: list[Result]) -> str:
    """Every single measurement, so that others can compute what they want."""
    return json.dumps(
        {
            "setting": asdict(setting),
            "units": UNITS,
            "workloads": [
                {
                    "name": result.workload.name,
                    "title": result.workload.title,
                    "repeats": result.repeats,
                    "ratios": {metric: asdict(result.ratio(metric)) for metric in result.workload.metrics},
                    "goals": [
                        {
                            "metric": verdict.goal.metric,
                            "goal": str(verdict.goal),
                            "median": verdict.median,
                            "reached": verdict.is_reached,
                        }
                        for verdict in result.verdicts()
                    ],
                }
                for result in results
            ],
        },
        indent=2,
    )
