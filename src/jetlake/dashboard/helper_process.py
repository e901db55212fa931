"""The process that answers one task of `helpers`: reads it from standard input, writes the reply, ends.

Invariant: memory and processor time are limited before anything of the task is looked at, and the reply is bounded:
`ROWS_MAX` rows, `ANSWER_CELLS_MAX` values, `ANSWER_LETTERS_MAX` letters.
"""

import resource
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.dashboard.helpers import (
    Column,
    FleetTask,
    HelperAnswer,
    HelperReply,
    ReportTask,
    SqlTask,
    TableFacts,
    TablesTask,
    Task,
)
from jetlake.errors import JetlakeError

if TYPE_CHECKING:
    import jetlake.sql.answers

MEMORY_BYTES_MAX = 1536 * 1024 * 1024
"""Above DuckDB's own limit: for what Arrow and the stacks of threads need besides, and for reports."""

PROCESSOR_S_MAX = 60
"""A second limit after the time limit of the dashboard, which may have been killed."""

ROWS_MAX = 1_000
"""Of an answer. A page shows 25 of them at a time; to get more, use `jetlake sql`."""

ANSWER_CELLS_MAX = 20_000
"""Of an answer with many columns."""

ANSWER_LETTERS_MAX = 1_000_000
"""Of an answer with long values: each session keeps its last one, and there may be a hundred sessions."""

CELL_LETTERS_MAX = 400
"""Of one value in a table."""

EXACT_NUMBER_MAX = 2**63
"""A larger number is shown as text."""

NUMBERS = ("int", "uint", "float", "double", "halffloat", "decimal")


def main() -> None:
    """Answer the task on standard input."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S_MAX, PROCESSOR_S_MAX))
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    try:
        reply = _replied(task)
    except JetlakeError as error:
        reply = HelperReply(error=str(error), error_kind=type(error).__name__)
    sys.stdout.buffer.write(msgspec.json.encode(reply))


def _replied(task: Task) -> HelperReply:
    match task:
        case SqlTask():
            return HelperReply(answer=_answer(task))
        case FleetTask():
            from jetlake.dashboard.fleet_query import fleet_query

            return HelperReply(answer=_answer(SqlTask(query=fleet_query(task), options={}, lake=task.lake)))
        case TablesTask():
            return HelperReply(tables=_tables(task))
        case ReportTask():
            from jetlake.spark.pipelines.showing import written_page

            return HelperReply(page=written_page(Path(task.lake), task.pipeline))


def _answer(task: SqlTask) -> HelperAnswer:
    from jetlake.sql.duck import DuckEngine
    from jetlake.sql.sources import Sources

    # A name under which there is nothing stands for the lake that is not there.
    lake = Path(task.lake).absolute() if task.lake else Path("/nonexistent/lake")
    with DuckEngine(Sources(task.options, lake), confined=True) as engine:
        return _cut(engine.ask(task.query))


def _cut(answer: "jetlake.sql.answers.QueryAnswer") -> HelperAnswer:
    from jetlake.sql.values import rows_of

    names = answer.columns
    columns = [Column(name, _kind(str(kind))) for name, kind in zip(names, answer.schema.types, strict=True)]
    rows_max = min(ROWS_MAX, ANSWER_CELLS_MAX // max(1, len(columns)))
    rows: list[list[str | int | float | None]] = []
    letters = 0
    for batch in answer.batches:
        for row in rows_of(batch):
            if len(rows) == rows_max or letters > ANSWER_LETTERS_MAX:
                return HelperAnswer(columns=columns, rows=rows, has_more=True)
            rows.append([_cell(row[name]) for name in names])
            letters += sum(len(cell) for cell in rows[-1] if isinstance(cell, str))
    return HelperAnswer(columns=columns, rows=rows)


def _kind(arrow_type: str) -> str:
    if arrow_type.startswith(NUMBERS):
        return "number"
    return "time" if arrow_type.startswith(("timestamp", "date")) else "text"


def _cell(value: Any) -> str | int | float | None:
    from jetlake.sql.values import as_text, plain

    if value is None:
        return None
    simple = plain(value)
    if isinstance(simple, Decimal):
        simple = _number(simple)
    is_number = isinstance(simple, int | float) and not isinstance(simple, bool)
    if is_number and abs(simple) < EXACT_NUMBER_MAX:
        return simple  # type: ignore[no-any-return]
    return as_text(value, CELL_LETTERS_MAX)


def _number(value: Decimal) -> int | float | str:
    """Return a decimal as a number, which a chart can draw; as text if digits would get lost."""
    if value == value.to_integral_value():
        return int(value)
    number = float(value)
    return number if Decimal(str(number)) == value else format(value, "f")


def _tables(task: TablesTask) -> list[TableFacts]:
    from jetlake.spark.lake.folder import Lake

    found = []
    lake = Lake(task.lake)
    for name in task.names:
        if not (table := lake.table(name)).exists():
            continue
        snapshot = table.snapshot()
        facts = TableFacts(
            name=name,
            version=snapshot.version,
            rows=snapshot.rows,
            files=len(snapshot.files),
            size_bytes=snapshot.size_bytes,
        )
        found.append(facts)
    return found


if __name__ == "__main__":
    main()
