"""The plan of a table that is read once: what its streams hold now, as ranges."""

from typing import Any

from jetlake.spark.connecting import connect
from jetlake.spark.planning import Planner, StreamRange

__all__ = ["plan_once"]


def plan_once(values: dict[str, Any]) -> list[StreamRange]:
    """Return the ranges of all streams of a table as they are now."""
    planner = Planner(connect(values), values)
    try:
        ranges = []
        for state in planner.states().values():
            position = planner.begin(state, "earliest")
            chosen = values["startingSequence"]
            if isinstance(chosen, int | dict):
                position = planner.check(state, position)
            start, end = max(position.next, state.first_sequence), planner.finish(state)
            ranges += planner.divide(state, start, end)
        return ranges
    finally:
        planner.close()
