"""`jetlake sql`: a question about streams and lake tables, answered as a table.

DuckDB answers in this process, over the columns and sequences that the query needs; `--spark` asks Spark instead.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from jetlake.cli.interrupts import Tidies, ended_by_interrupt
from jetlake.cli.output import console, is_terminal
from jetlake.cli.run import fail
from jetlake.cli.spark_options import connection_options, key_values
from jetlake.errors import JetlakeError

if TYPE_CHECKING:
    from jetlake.spark.lake.as_of import AsOf
    from jetlake.sql.answers import QueryAnswer
    from jetlake.sql.sources import Sources

ROWS_SHOWN_MAX = 1_000
"""Rows that a terminal shows unless more are asked for."""

CELL_CHARACTERS_MAX = 200
"""Characters of one value that a terminal shows."""


def sql(
    query: Annotated[str, typer.Argument(help="The query, such as SELECT count(*) FROM streams.orders; - reads it.")],
    rows: Annotated[
        int | None,
        typer.Option(min=1, help=f"Print at most N rows ({ROWS_SHOWN_MAX:,} on a terminal, else all).", metavar="N"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", "-j", help="Print one JSON object per row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write all rows to a file: .parquet, .csv or .json.", metavar="FILE"),
    ] = None,
    columns: Annotated[
        str,
        typer.Option(help="Fields of JSON payloads, as `id BIGINT, total DOUBLE`; they are in the column `value`."),
    ] = "",
    options: Annotated[
        list[str] | None,
        typer.Option("--option", help="How streams are read, such as subjects=orders.eu.>.", metavar="KEY=VALUE"),
    ] = None,
    lake: Annotated[Path, typer.Option(envvar="JETLAKE_LAKE", help="Folder of the lake tables.")] = Path("lake"),
    as_of: Annotated[
        str,
        typer.Option(help="Lake tables as they were: a version or a time.", metavar="VERSION|TIME"),
    ] = "",
    spark: Annotated[bool, typer.Option("--spark", help="Ask Spark instead of the built-in engine.")] = False,
    master: Annotated[str, typer.Option(help="Where Spark runs, with --spark.")] = "local[*]",
) -> None:
    """Query streams (`streams.orders`) and lake tables (`lake.log_lines`) in SQL.

    Exits with 1 if the server cannot be reached or the query has a mistake.
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv contradict each other: give one of them")
    try:
        with ended_by_interrupt() as tidies:
            given = QueryRequest(
                query, rows, output, columns, options or [], lake, as_of, spark, master, as_json, as_csv
            )
            _ask(given, tidies)
    except JetlakeError as error:
        fail(str(error), error)
    except BrokenPipeError:
        # The reader has seen enough; nothing is left to flush there.
        os._exit(0)


class QueryRequest(NamedTuple):
    """What the line asks for."""

    query: str
    rows: int | None
    output: Path | None
    columns: str
    options: list[str]
    lake: Path
    as_of: str
    spark: bool
    master: str
    as_json: bool
    as_csv: bool

    @property
    def rows_max(self) -> int | None:
        """How many rows are printed; a program that reads them gets all unless it says otherwise."""
        if self.output is not None:
            return None
        return self.rows or (ROWS_SHOWN_MAX if is_terminal() and not (self.as_json or self.as_csv) else None)


def _ask(request: QueryRequest, tidies: Tidies) -> None:
    from jetlake.sql.files import check_output
    from jetlake.sql.sources import Sources

    if request.output is not None:
        check_output(request.output)
    query = sys.stdin.read() if request.query == "-" else request.query
    given = key_values("--option", request.options, "subjects=orders.eu.>")
    sources = Sources({**connection_options(), **given}, request.lake.absolute(), _as_of(request.as_of))
    answered = _with_spark if request.spark else _with_duckdb
    with answered(query, sources, request, tidies) as answer:
        if request.output is not None:
            _write(answer, request.output, tidies)
        else:
            _print(answer, request)


def _as_of(text: str) -> "AsOf | None":
    from jetlake.spark.lake.as_of import parse_as_of

    return parse_as_of(text) if text else None


@contextmanager
def _with_duckdb(query: str, sources: "Sources", request: QueryRequest, tidies: Tidies) -> "Iterator[QueryAnswer]":
    from jetlake.sql.duck import DuckEngine

    with DuckEngine(sources, request.columns) as engine:
        tidies.append(engine.remove_files)
        yield engine.ask(query)


@contextmanager
def _with_spark(query: str, sources: "Sources", request: QueryRequest, _tidies: Tidies) -> "Iterator[QueryAnswer]":
    import jetlake.spark
    from jetlake.spark.java import cache_folder
    from jetlake.sql.on_spark import SparkEngine, find_sources

    # Before Spark starts, so that a wrong address or name is reported at once.
    found = find_sources(query, sources)
    session = jetlake.spark.session("jetlake sql", master=request.master, log=cache_folder() / "spark.log")
    session.sparkContext.setLogLevel("ERROR")
    try:
        rows_max = None if request.rows_max is None else request.rows_max + 1
        yield SparkEngine(session, sources, request.columns).ask(query, found, rows_max)
    finally:
        session.stop()


def _write(answer: "QueryAnswer", path: Path, tidies: Tidies) -> None:
    from jetlake.sql.files import unfinished_name, write_answer

    tidies.append(lambda: unfinished_name(path).unlink(missing_ok=True))
    rows = write_answer(answer, path)
    typer.echo(f"{rows:,} rows in {path}", err=True)


def _print(answer: "QueryAnswer", request: QueryRequest) -> None:
    """Print rows as they come; on a terminal as a table, which waits for all of them."""
    rows = _Rows(answer, request.rows_max)
    if request.as_json:
        from jetlake.sql.values import as_json

        for row in rows:
            sys.stdout.write(as_json(row).decode() + "\n")
    elif request.as_csv:
        from jetlake.sql.files import csv_writer

        write = csv_writer(answer.columns, sys.stdout)
        for row in rows:
            write(row)
    elif is_terminal():
        _print_table(answer, list(rows))
    elif answer.columns:
        _print_lines(answer.columns, rows)
    sys.stdout.flush()
    if rows.has_more:
        typer.echo(f"there are more than {request.rows_max:,} rows: use --rows, --csv, or LIMIT in the query", err=True)


class _Rows:
    """The rows of an answer, at most `rows_max`; `has_more` says afterwards whether that left some out."""

    def __init__(self, answer: "QueryAnswer", rows_max: int | None) -> None:
        self._answer = answer
        self._rows_max = rows_max
        self.has_more = False

    def __iter__(self) -> "Iterator[dict[str, Any]]":
        from jetlake.sql.values import rows_of

        count = 0
        for batch in self._answer.batches:
            for row in rows_of(batch):
                if count == self._rows_max:
                    self.has_more = True
                    return
                count += 1
                yield row


def _print_lines(columns: list[str], rows: _Rows) -> None:
    """Print fields with tabs between them, as every command does in a pipe."""
    from jetlake.sql.values import as_text

    sys.stdout.write("\t".join(columns) + "\n")
    for row in rows:
        sys.stdout.write("\t".join("NULL" if row[name] is None else as_text(row[name]) for name in columns) + "\n")


def _print_table(answer: "QueryAnswer", rows: list[dict[str, Any]]) -> None:
    from rich.box import ROUNDED
    from rich.markup import escape
    from rich.table import Table

    if not answer.columns:
        return
    table = Table(box=ROUNDED, caption=f"{len(rows):,} row{'' if len(rows) == 1 else 's'}", caption_justify="left")
    for name, kind in zip(answer.columns, answer.schema.types, strict=True):
        is_number = str(kind).startswith(("int", "uint", "float", "double", "decimal"))
        table.add_column(escape(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    console().print(table)


def _cell(value: Any) -> str:
    from rich.markup import escape

    from jetlake.sql.values import as_text

    return "[dim]NULL[/]" if value is None else escape(as_text(value, CELL_CHARACTERS_MAX))
