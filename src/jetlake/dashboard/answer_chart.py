"""`chart_of`: what of an answer is drawn, and as what.

The first time or category is the axis, or else the first of several numbers; the other numbers are lines. Over
categories the first number is drawn as bars.
"""

from datetime import UTC, datetime
from typing import TypeAlias

import msgspec

from jetlake.dashboard.helpers import HelperAnswer

__all__ = ["AnswerChart", "chart_of"]

LINES_MAX = 3
"""As many as there are colours that can be told apart."""

BARS_MAX = 60
"""More categories than that are not readable as bars."""

Number: TypeAlias = int | float | None
Value: TypeAlias = str | Number


class AnswerLine(msgspec.Struct, frozen=True):
    """One line, or the bars."""

    name: str
    values: list[Number]


class AnswerChart(msgspec.Struct, frozen=True, kw_only=True):
    """What the browser draws. `labels` are categories, whose bars stand at 0, 1, 2, …"""

    axis: str
    is_time: bool
    x: list[float]
    labels: list[str]
    lines: list[AnswerLine]


def chart_of(answer: HelperAnswer) -> AnswerChart | None:
    """Return the chart; None if there are not two rows with numbers to draw."""
    axis = _axis(answer)
    numbers = [at for at, column in enumerate(answer.columns) if column.kind == "number" and at != axis][:LINES_MAX]
    if axis is None or not numbers or len(answer.rows) < 2:
        return None
    kind = answer.columns[axis].kind
    if kind == "text":
        # Bars of one colour: several beside each other cannot be read at phone width.
        numbers = numbers[:1]
        rows = answer.rows[:BARS_MAX]
        x = [float(number) for number in range(len(rows))]
        labels = ["NULL" if row[axis] is None else str(row[axis]) for row in rows]
    else:
        placed = [(_place(row[axis], kind), row) for row in answer.rows]
        known = sorted(((at, row) for at, row in placed if at is not None), key=lambda pair: pair[0])
        x, rows, labels = [at for at, _ in known], [row for _, row in known], []
    if len(rows) < 2:
        return None
    lines = [AnswerLine(answer.columns[at].name, [_number(row[at]) for row in rows]) for at in numbers]
    return AnswerChart(axis=answer.columns[axis].name, is_time=kind == "time", x=x, labels=labels, lines=lines)


def _axis(answer: HelperAnswer) -> int | None:
    for kind in ("time", "text", "number"):
        for at, column in enumerate(answer.columns):
            if column.kind == kind:
                return at
    return None


def _place(value: Value, kind: str) -> float | None:
    if kind == "number":
        return float(value) if isinstance(value, int | float) else None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number(value: Value) -> Number:
    return value if isinstance(value, int | float) else None
