"""`jetlake sql`: one question about streams, in SQL, answered as a table.

Spark is started for it, which takes some seconds; only the streams that the question names become tables.
"""

import os
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from jetlake.cli.spark_options import connection_options
from jetlake.errors import ConfigurationError, JetlakeError

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

ROWS_SHOWN_MAX = 1_000
"""Rows that are printed unless more are asked for."""

BYTES_SHOWN_MAX = 200
"""Bytes of one value that are shown in a table."""

OWN_WORDS = re.compile(r"jetlake\.errors\.\w+: (.+?)(?:\n SQLSTATE|\n\n|$)", re.DOTALL)

NAMED = re.compile(r"\bstreams\s*\.\s*`?([A-Za-z0-9_\-]+)`?", re.IGNORECASE)


def sql(
    query: Annotated[str, typer.Argument(help="What to ask, such as: SELECT count(*) FROM streams.orders")],
    rows: Annotated[int, typer.Option(min=1, help="Print at most so many rows.")] = ROWS_SHOWN_MAX,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per row.")] = False,
) -> None:
    """Ask a question in SQL; every stream is a table of the database `streams`.

    Ends with 1 when the server cannot be reached or the question has a mistake.
    """
    try:
        _run(query, rows, master, as_json=as_json)
    except JetlakeError as error:
        typer.echo(f"jetlake sql: {error}", err=True)
        raise typer.Exit(1) from error


def _run(query: str, rows: int, master: str, *, as_json: bool) -> None:
    # Spark takes a second to import; a wrong option is told before.
    import jetlake.spark
    from jetlake.spark.attached import streams_of_tables

    options = connection_options()
    server = options.pop("url")
    named = sorted({name.lower() for name in NAMED.findall(query)})
    # Before Spark starts, so that a wrong address or name is told at once.
    streams = streams_of_tables(server, named, **options)
    _quieten()
    spark = jetlake.spark.session("jetlake sql", master=master, config={"spark.log.level": "ERROR"})
    try:
        jetlake.spark.attach(spark, server, streams=streams, **options)
        columns, found = _asked(spark, query, rows + 1)
        _print(columns, [row.asDict(recursive=True) for row in found[:rows]], as_json=as_json)
        if len(found) > rows:
            typer.echo(f"there are more than {rows} rows: give --rows, or LIMIT in the question", err=True)
    finally:
        spark.stop()


def _quieten() -> None:
    """Have Spark not tell on every start which settings of its log it took."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-Dlog4j2.level=error")


def _asked(spark: "SparkSession", query: str, rows: int) -> "tuple[list[str], list[Row]]":
    """Return the columns and rows of the answer; a mistake is told in Spark's words, without its stack."""
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql(query)
        return frame.columns, frame.limit(rows).collect() if frame.columns else []
    except PySparkException as error:
        raise ConfigurationError(first_sentence(str(error))) from error


def first_sentence(text: str) -> str:
    """Return what Spark says of a mistake, in our own words where it has some, without the plan and the stack."""
    own = OWN_WORDS.search(text)
    return own[1].strip() if own else text.split("\n\n", maxsplit=1)[0].split(";\n", maxsplit=1)[0].strip()


def _print(columns: list[str], rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        for row in rows:
            typer.echo(msgspec.json.encode({name: _plain(value) for name, value in row.items()}).decode())
        return
    console = Console(file=sys.stdout)
    texts = [[_text(row[name]) for name in columns] for row in rows]
    if console.is_terminal:
        table = Table(*columns)
        for row_texts in texts:
            table.add_row(*row_texts)
        console.print(table)
        return
    typer.echo("\t".join(columns))
    for row_texts in texts:
        typer.echo("\t".join(row_texts))


def _plain(value: Any) -> Any:
    """Return a value as JSON can say it: bytes as text where they are text."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="backslashreplace")
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _text(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return "NULL"
    text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    text = text.replace("\t", " ").replace("\n", " ")
    return text if len(text) <= BYTES_SHOWN_MAX else f"{text[:BYTES_SHOWN_MAX]}…"
