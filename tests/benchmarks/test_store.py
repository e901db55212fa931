"""How the figures of the store are read and judged."""

import io

import pytest
from rich.console import Console

from benchmarks.store import GOALS, read_figures, table


def test_figures_are_read_from_among_other_lines() -> None:
    lines = ["Compiling something\n", '{"name": "point_read_p50_us", "value": 1.5}\n', "\n"]

    assert read_figures(lines) == {"point_read_p50_us": 1.5}


@pytest.mark.parametrize(("value", "word"), [(1.5, "reached: at most 5"), (7.0, "not reached: at most 5")])
def test_a_figure_is_compared_with_its_goal(value: float, word: str) -> None:
    console = Console(file=io.StringIO(), width=160)

    console.print(table({"point_read_p50_us": value, "append_128_per_sync": 90.0}))

    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert word in printed
    assert "append 128 per sync" in printed
    assert len({goal.name for goal in GOALS}) == len(GOALS)
