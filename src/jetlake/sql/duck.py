"""Answers queries with DuckDB, in this process.

Each stream that a query names is a view of the schema `streams`: the columns of a message, `payload` (the data as text,
NULL where it is not UTF-8) and, if the fields of the payload are given, `value`. Lake tables are views of `lake`.

An engine for queries of others is confined: they may read streams and lake tables, and nothing else of this machine.

Invariant: memory is bounded by `MEMORY_MAX`; what does not fit is written to a temporary folder. A confined engine
opens no file but those of lake tables that the query names, and runs nothing but one SELECT.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

from jetlake.errors import ConfigurationError, JetlakeError, MissingDependencyError
from jetlake.spark.columns import MESSAGE
from jetlake.spark.options import parse
from jetlake.sql.answers import QueryAnswer
from jetlake.sql.fields import structure_of
from jetlake.sql.mistakes import sentence
from jetlake.sql.sources import LAKE, STREAMS, LakeSource, QueriedStream, Sources

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from jetlake.sql.stream_table import StreamTable

__all__ = ["DuckEngine"]

MEMORY_MAX = "1GB"
"""Beyond it groups and sorted rows go to a temporary folder: a query must not take the machine down."""

CONFINED_SETTINGS = {
    # For queries that several people send to one machine at once.
    "memory_limit": "256MB",
    "max_temp_directory_size": "1GB",
    "threads": "2",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
"""Of a confined engine, beside those of every engine."""

BATCH_ROWS = 8_192
"""Rows of one batch of an answer, as many as the scan has."""

COLUMNS = (*MESSAGE, "payload", "value")
OWN_SCHEMAS = ("information_schema", "pg_catalog", "system", "temp", "main")
ALIAS = re.compile(r' AS (?:"(?:[^"]|"")*"|\w+)$')
NAME = re.compile(r'"((?:[^"]|"")*)"|([^".]+)')

GET_JSON_OBJECT = "CREATE MACRO get_json_object(text, path) AS json_extract_string(text, path)"
"""Spark's function, so that a query about JSON payloads is the same on both."""


class DuckEngine:
    """See the module. `columns` are the fields of JSON payloads, such as `id BIGINT, total DOUBLE`."""

    def __init__(self, sources: Sources, columns: str = "", *, confined: bool = False) -> None:
        try:
            import duckdb
            import pyarrow as pa  # noqa: F401  # asked for here so that the error names both
        except ImportError as error:
            raise MissingDependencyError(
                f"SQL without Spark needs DuckDB and pyarrow ({error}): run `pip install 'jetlake[sql]'`"
            ) from error
        self._sources = sources
        self._structure = structure_of(columns) if columns else ""
        self._is_confined = confined
        self._streams: list[StreamTable] = []
        self._errors: type[Exception] = duckdb.Error
        self._folder = tempfile.TemporaryDirectory(prefix="jetlake-sql-", ignore_cleanup_errors=True)
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(
            config={
                "memory_limit": MEMORY_MAX,
                "temp_directory": self._folder.name,
                # A query never installs anything by itself.
                "autoinstall_known_extensions": "false",
                **(CONFINED_SETTINGS if confined else {}),
            }
        )
        for statement in ("SET TimeZone = 'UTC'", f"CREATE SCHEMA {STREAMS}", f"CREATE SCHEMA {LAKE}", GET_JSON_OBJECT):
            self._connection.execute(statement)
        self._connection.execute(f"SET search_path = '{STREAMS},{LAKE},main'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._connection.close()
        self._folder.cleanup()

    def remove_files(self) -> None:
        """Remove what a query has written to disk, without waiting for it to end."""
        shutil.rmtree(self._folder.name, ignore_errors=True)

    def ask(self, query: str) -> QueryAnswer:
        """Return the answer to a query. Raises `ConfigurationError`, `ClientError`."""
        if self._is_confined:
            self._tried(lambda: check_reads_only(self._connection, query))
        sources = self._named(query)
        for source in sources:
            self._add(source)
        if self._is_confined:
            self._confine(sources)
        relation = self._tried(lambda: self._connection.sql(query))
        if relation is None:
            import pyarrow as pa

            return QueryAnswer.of(pa.schema([]), iter(()))
        reader: pa.RecordBatchReader = self._tried(lambda: relation.to_arrow_reader(BATCH_ROWS))
        return QueryAnswer.of(reader.schema, self._batches(reader))

    def _named(self, query: str) -> "list[QueriedStream | LakeSource]":
        """Return what the tables of a query stand for; everything if it names none of ours."""
        names = self._tried(lambda: table_names(self._connection, query))
        if not names or any(schema.lower() == "information_schema" for schema, _ in names):
            return self._sources.everything() if is_about_tables(query) else []
        ours = [(schema, name) for schema, name in names if schema.lower() not in OWN_SCHEMAS and not is_file(name)]
        return self._sources.find(ours)

    def _add(self, source: "QueriedStream | LakeSource") -> None:
        from jetlake.sql.lake_table import lake_query
        from jetlake.sql.stream_table import StreamTable

        if isinstance(source, QueriedStream):
            table = StreamTable(parse({**self._sources.options, "stream": source.stream}, "read"))
            self._streams.append(table)
            self._connection.register(f"_{source.table}", table)
            rows = f'SELECT *{self._more_columns()} FROM "_{source.table}"'  # noqa: S608  # letters, digits and _
            # By its own name as well: "My-Orders".
            for name in dict.fromkeys((source.table, source.stream.lower())):
                self._view(STREAMS, name, rows)
        else:
            path = self._sources.lake / source.table
            self._view(LAKE, source.table, self._tried(lambda: lake_query(self._connection, path, self._sources.as_of)))

    def _confine(self, sources: "list[QueriedStream | LakeSource]") -> None:
        """Close everything but the folders of the lake tables that a query names, for good."""
        folders = [str(self._sources.lake / source.table) for source in sources if isinstance(source, LakeSource)]
        self._connection.execute("SET allowed_directories = ?", [folders])
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _more_columns(self) -> str:
        payload = "TRY(decode(data))"
        if not self._structure:
            return f", {payload} AS payload"
        structure = self._structure.replace("'", "''")
        value = f"CASE WHEN json_valid({payload}) THEN json_transform({payload}, '{structure}') END"
        return f", {payload} AS payload, {value} AS value"

    def _view(self, schema: str, table: str, rows: str) -> None:
        self._connection.execute(f'CREATE VIEW {schema}."{table}" AS {rows}')

    def _batches(self, reader: "pa.RecordBatchReader") -> "Iterator[pa.RecordBatch]":
        while True:
            try:
                batch = self._tried(reader.read_next_batch)
            except StopIteration:
                return
            yield batch

    def _tried(self, work: Any) -> Any:
        import pyarrow as pa

        try:
            return work()
        except (self._errors, pa.ArrowException, RuntimeError) as error:
            failure = next((table.failure for table in self._streams if table.failure is not None), None)
            if failure is not None:
                raise failure from error
            if isinstance(error, JetlakeError):
                raise
            raise ConfigurationError(sentence(str(error), COLUMNS)) from error


def check_reads_only(connection: "duckdb.DuckDBPyConnection", query: str) -> None:
    """Refuse everything but one SELECT: COPY, ATTACH, INSTALL, SET and all others. Raises `ConfigurationError`."""
    # EXPLAIN is refused too: with ANALYZE it runs what it explains, which may be a COPY.
    kinds = [statement.type.name for statement in connection.extract_statements(query)]
    if len(kinds) != 1:
        raise ConfigurationError(f"the query has {len(kinds)} statements: write one SELECT")
    if kinds[0] != "SELECT":
        raise ConfigurationError(
            "only queries are answered here: write SELECT, DESCRIBE, SHOW or SUMMARIZE; `jetlake sql` does the rest"
        )


def table_names(connection: "duckdb.DuckDBPyConnection", query: str) -> list[tuple[str, str]]:
    """Return schema and name of every table that a query reads; the schema is empty for a bare name."""
    found = connection.execute("SELECT json_serialize_sql(CAST(? AS VARCHAR))", [query]).fetchall()
    tree = json.loads(found[0][0])
    if not tree["error"]:
        return sorted(_tables_in(tree, set()))
    # Other statements than SELECT have no tree: DESCRIBE, SUMMARIZE. This reports a syntax error.
    return [split_name(name) for name in sorted(connection.get_table_names(query, qualified=True))]


def _tables_in(node: Any, own: set[str]) -> set[tuple[str, str]]:
    """Return the tables below a node of a syntax tree; `own` are names that the query itself gives."""
    if isinstance(node, list):
        return set().union(*(_tables_in(child, own) for child in node))
    if not isinstance(node, dict):
        return set()
    own = own | {entry["key"].lower() for entry in (node.get("cte_map") or {}).get("map", [])}
    found = set().union(*(_tables_in(child, own) for child in node.values()))
    if node.get("type") == "BASE_TABLE" and (node["schema_name"] or node["table_name"].lower() not in own):
        found.add((node["schema_name"], node["table_name"]))
    return found


def split_name(qualified: str) -> tuple[str, str]:
    """Return schema and name of a table as DuckDB writes it; the schema is empty for a bare name."""
    qualified = ALIAS.sub("", qualified)
    parts = [(found[1].replace('""', '"') if found[1] is not None else found[2]) for found in NAME.finditer(qualified)]
    return ("", parts[0]) if len(parts) == 1 else (parts[-2], parts[-1])


def is_file(name: str) -> bool:
    """Tell whether a name is a file that DuckDB reads by itself, such as 'cities.csv'."""
    return "/" in name or "." in name


def is_about_tables(query: str) -> bool:
    """Tell whether a query lists tables, or describes what it does not read."""
    return bool(re.search(r"\b(show|describe|information_schema|duckdb_\w+|pragma)\b", query, re.IGNORECASE))
