"""Every stream as a table of a database: `SELECT … FROM streams.orders`, `INSERT INTO`, `readStream.table`, `toTable`.

Spark loses the options of a table of a Python source, so each stream has a class of its own, with its own format name,
that carries its options. Every query plans its tables again, so they are always fresh; a temporary view would forever
show the rows of its first query.

Invariant: two streams never share a table; names that would are refused.
"""

from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.columns import MESSAGE
from jetlake.spark.connecting import connect
from jetlake.spark.naming import NOT_IN_A_NAME, by_table, names_at, table_name, to_connect
from jetlake.spark.options import parse
from jetlake.spark.planning import Planner
from jetlake.spark.source import JetlakeSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["attach", "table_name"]

TABLES_MAX = 1_000
"""Each takes about a seventh of a second to make; with more streams, name those that are wanted."""


def attach(
    spark: "SparkSession",
    url: str,
    database: str = "streams",
    *,
    streams: "list[str] | None" = None,
    **options: str,
) -> dict[str, str]:
    """Make every stream of a server, or those named, a table of a database; return their streams by table.

    Streams whose names begin with `KV_` or `OBJ_` belong to buckets and are made tables only by name. `options` are
    those of the format, such as `user` or `credentialsFile`. Calling it again adds the streams that are new. Raises
    `ClientError` and `ConfigurationError`.
    """
    given = {"url": url, **{name: str(value) for name, value in options.items()}}
    chosen = names_at(given) if streams is None else streams
    if streams is None:
        chosen = [name for name in chosen if not name.startswith(("KV_", "OBJ_"))]
    else:
        # One by one: a user may be allowed to read these streams and not to list them all.
        check_all(given, streams)
    if len(chosen) > TABLES_MAX:
        raise ConfigurationError(f"there are {len(chosen)} streams: name those to attach, at most {TABLES_MAX}")
    tables = by_table(chosen)
    # The name is checked here because it becomes part of statements.
    if NOT_IN_A_NAME.search(database.lower()):
        raise ConfigurationError(f"the database cannot be called {database!r}: use letters, digits and _")
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
    for table, stream in tables.items():
        forget(spark, database, table)
        spark.dataSource.register(source_class(database, table, {**given, "stream": stream}))
        spark.sql(f"CREATE TABLE {database}.{table} USING {format_name(database, table)}")
    return tables


def forget(spark: "SparkSession", database: str, table: str) -> None:
    """Remove a table of an earlier `attach`, which holds no data; refuse any other table."""
    if not spark.catalog.tableExists(f"{database}.{table}"):
        return
    facts = [fact.col_name for fact in spark.sql(f"DESCRIBE TABLE EXTENDED {database}.{table}").collect()]
    # Spark does not say which Python source a table has; one in files has a provider, and ours have these columns.
    if "Provider" in facts or facts[: len(MESSAGE)] != list(MESSAGE):
        raise ConfigurationError(
            f"{database}.{table} is a table already, and none of a stream: attach the streams to another database"
        )
    spark.sql(f"DROP TABLE {database}.{table}")


def check_all(options: dict[str, str], streams: list[str]) -> None:
    """Raise `ClientError` with the nearest name where one of these streams is not there."""
    values = parse(to_connect(options), "read")
    planner = Planner(connect(values), values)
    try:
        for name in streams:
            planner.state(name)
    finally:
        planner.close()


def format_name(database: str, table: str) -> str:
    return f"js_{table}" if database == "streams" else f"js_{database.lower()}_{table}"


def source_class(database: str, table: str, options: dict[str, str]) -> type[JetlakeSource]:
    """Return a class for one stream, with its options inside."""
    name = format_name(database, table)

    class AttachedSource(JetlakeSource):
        OWN = {**options, "ignoreExtraColumns": "true"}  # noqa: RUF012  # never changed

        @classmethod
        def name(cls) -> str:
            return name

    AttachedSource.__name__ = AttachedSource.__qualname__ = f"Source_{name}"
    return AttachedSource
