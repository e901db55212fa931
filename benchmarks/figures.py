"""From single measurements to medians, spreads and ratios; and whether a goal is reached."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from benchmarks.servers import JETLAKE, REFERENCE
from benchmarks.workloads import Goal, Measured


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles around it."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Raises `ValueError` when there are no values."""
        if not values:
            raise ValueError("a spread needs at least one value")
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)


@dataclass(frozen=True)
class Verdict:
    """A goal and what became of it."""

    goal: Goal
    median: float

    @property
    def is_reached(self) -> bool:
        return self.goal.is_met_by(self.median)

    def __str__(self) -> str:
        return f"{'reached' if self.is_reached else 'not reached'}: {self.goal}"


@dataclass
class Result:
    """All repeats of one workload. The repeats of both servers belong together, one by one."""

    workload: Measured
    repeats: dict[str, list[dict[str, float]]] = field(default_factory=lambda: {JETLAKE: [], REFERENCE: []})

    def add(self, server: str, metrics: dict[str, float]) -> None:
        self.repeats[server].append(metrics)

    def values(self, server: str, metric: str) -> list[float]:
        return [metrics[metric] for metrics in self.repeats[server]]

    def spread(self, server: str, metric: str) -> Spread:
        return Spread.of(self.values(server, metric))

    def ratio(self, metric: str) -> Spread:
        """Ours divided by the reference's, repeat by repeat."""
        pairs = zip(self.values(JETLAKE, metric), self.values(REFERENCE, metric), strict=True)
        return Spread.of([own / reference for own, reference in pairs])

    def verdicts(self) -> list[Verdict]:
        found = []
        for goal in self.workload.goals:
            spread = self.ratio(goal.metric) if goal.of == "ratio" else self.spread(JETLAKE, goal.metric)
            found.append(Verdict(goal, spread.median))
        return found
