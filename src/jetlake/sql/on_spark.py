"""Answers the same queries with Spark: the same schemas, tables and columns.

A lake table is a temporary view in Spark, which has no schema. So `lake.log_lines` in a query is replaced by the name
of that view before Spark sees it; texts and comments of the query stay as they are.
"""

import re
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.folder import Lake
from jetlake.sql.answers import QueryAnswer
from jetlake.sql.sources import LAKE, STREAMS, LakeSource, QueriedStream, Sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine", "find_sources", "table_names"]

ATTACHED = "jetlake_streams"
"""The database of the streams themselves; `streams` has the views with the column `payload`."""

PART = r"(?:`[^`]+`|[A-Za-z_][A-Za-z0-9_\-]*)"
QUALIFIED = re.compile(rf"\b({STREAMS}|{LAKE})\s*\.\s*({PART})", re.IGNORECASE)
BARE = re.compile(rf"\b(?:FROM|JOIN)\s+({PART})(?![A-Za-z0-9_\-`])(?!\s*[.(])", re.IGNORECASE)
IGNORED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
OWN_WORDS = re.compile(r"jetlake\.errors\.\w+: (.+?)(?:\n SQLSTATE|\n\n|$)", re.DOTALL)


class SparkEngine:
    """See the module. `columns` are the fields of JSON payloads, such as `id BIGINT, total DOUBLE`."""

    def __init__(self, spark: "SparkSession", sources: Sources, columns: str = "") -> None:
        self._spark = spark
        self._sources = sources
        self._columns = columns

    def ask(self, query: str, found: "list[QueriedStream | LakeSource]", rows_max: int | None = None) -> QueryAnswer:
        """Return the answer to a query over these tables, at most `rows_max` rows.

        Raises `ConfigurationError` and `ClientError`. The rows pass through the memory of this process.
        """
        from pyspark.errors import PySparkException

        from jetlake.spark.pipelines.steps import quieten, sentence

        quieten()
        self._attach([source for source in found if isinstance(source, QueriedStream)])
        for source in found:
            if isinstance(source, LakeSource):
                table = Lake(self._sources.lake).existing(source.table)
                table.read(self._spark, as_of=self._sources.as_of).createOrReplaceTempView(view_name(source.table))
        try:
            frame = self._spark.sql(for_spark(query, found))
            table = (frame if rows_max is None or not frame.columns else frame.limit(rows_max)).toArrow()
        except PySparkException as error:
            own = OWN_WORDS.search(str(error))
            if own is None and error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
                # Raises with the nearest name that is there.
                missing = (error.getMessageParameters() or {}).get("relationName", "").replace("`", "")
                self._sources.find([("", missing)])
            raise ConfigurationError(own[1].strip() if own else sentence(error)) from error
        return QueryAnswer.of(table.schema, iter(table.to_batches()))

    def _attach(self, streams: list[QueriedStream]) -> None:
        from jetlake.spark.attached import attach

        if not streams:
            return
        options = {name: value for name, value in self._sources.options.items() if name != "url"}
        if self._columns:
            options["valueSchema"] = self._columns
        names = [source.stream for source in streams]
        attach(self._spark, self._sources.options["url"], ATTACHED, streams=names, **options)
        self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {STREAMS}")
        for source in streams:
            # Both names are made of letters, digits and _.
            text = "try_validate_utf8(CAST(data AS STRING)) AS payload"
            rows = f"SELECT *, {text} FROM {ATTACHED}.{source.table}"  # noqa: S608
            self._spark.sql(f"CREATE OR REPLACE VIEW {STREAMS}.{source.table} AS {rows}")


def find_sources(query: str, sources: Sources) -> "list[QueriedStream | LakeSource]":
    """Return what the names in a query stand for, without Spark. Raises `ConfigurationError`, `ClientError`."""
    qualified, bare = table_names(query)
    found = sources.find(qualified)
    for name in bare:
        try:
            found += sources.find([("", name)])
        except ConfigurationError:
            # A name of the query's own, or one that Spark refuses in its own words.
            continue
    return found


def table_names(query: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the tables a query names: those with a schema of ours, and the bare names behind FROM and JOIN."""
    code = IGNORED.sub(" ", query)
    qualified = [(found[1].lower(), found[2].strip("`")) for found in QUALIFIED.finditer(code)]
    bare = [found[1].strip("`") for found in BARE.finditer(code)]
    return list(dict.fromkeys(qualified)), list(dict.fromkeys(bare))


def view_name(table: str) -> str:
    """Return the temporary view of a lake table."""
    return f"`{LAKE}_{table}`"


def for_spark(query: str, found: "list[QueriedStream | LakeSource]") -> str:
    """Return a query with names that Spark knows; texts and comments stay as they are."""
    lake = {source.table.lower(): source.table for source in found if isinstance(source, LakeSource)}
    streams = {source.table for source in found if isinstance(source, QueriedStream)}
    pieces: list[str] = []
    position = 0
    for ignored in IGNORED.finditer(query):
        pieces += [_renamed(query[position : ignored.start()], lake, streams), ignored[0]]
        position = ignored.end()
    return "".join([*pieces, _renamed(query[position:], lake, streams)])


def _renamed(code: str, lake: dict[str, str], streams: set[str]) -> str:
    from jetlake.spark.naming import table_name

    def with_schema(found: "re.Match[str]") -> str:
        name = found[2].strip("`")
        if found[1].lower() == LAKE and name.lower() in lake:
            return view_name(lake[name.lower()])
        return f"{STREAMS}.{table_name(name)}" if found[1].lower() == STREAMS else found[0]

    def bare(found: "re.Match[str]") -> str:
        name = found[1].strip("`")
        if name.lower() in lake:
            return found[0][: found.start(1) - found.start()] + view_name(lake[name.lower()])
        if table_name(name) in streams:
            return found[0][: found.start(1) - found.start()] + f"{STREAMS}.{table_name(name)}"
        return found[0]

    return QUALIFIED.sub(with_schema, BARE.sub(bare, code))
