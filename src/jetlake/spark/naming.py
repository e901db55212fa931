"""The names of streams as names of tables, without Spark.

Invariant: a table stands for one stream; two streams whose tables would have one name are refused.
"""

import re

from jetlake.errors import ConfigurationError
from jetlake.spark.connecting import connect
from jetlake.spark.options import OPTIONS, SAME, parse, unknown

__all__ = ["by_table", "names_at", "table_name", "to_connect"]

NOT_IN_A_NAME = re.compile(r"[^a-z0-9_]")


def to_connect(options: dict[str, str]) -> dict[str, str]:
    """Return the options that say where and how to connect, and refuse those that do not exist."""
    sides = {option.name.lower(): option.side for option in OPTIONS}
    options = {SAME.get(name.lower(), name): value for name, value in options.items()}
    for name in options:
        if name.lower() not in sides:
            raise ConfigurationError(unknown(name, "read"))
    return {name: value for name, value in options.items() if sides[name.lower()] == "both"}


def names_at(options: dict[str, str]) -> list[str]:
    """Return the names of the streams at a server. Raises `ClientError`."""
    connected = connect(parse(to_connect(options), "read"))
    try:
        return connected.names()
    finally:
        connected.connection.close()


def by_table(streams: list[str], wanted: set[str] | None = None) -> dict[str, str]:
    """Return the streams by the names of their tables, those wanted only, and refuse two with the same."""
    tables: dict[str, str] = {}
    for stream in streams:
        table = table_name(stream)
        if wanted is not None and table not in wanted:
            continue
        if table in tables:
            raise ConfigurationError(
                f"{tables[table]} and {stream} would both be the table {table}: attach one of them by `streams=[…]`, "
                "the other into another database"
            )
        tables[table] = stream
    return tables


def table_name(stream: str) -> str:
    """Return the name of a stream's table: lower case, with _ for what a name of a table cannot have."""
    return NOT_IN_A_NAME.sub("_", stream.lower())
