"""Which streams and lake tables the names in a query stand for.

`streams.orders` is a stream, `lake.log_lines` a table of a lake; a bare name is whichever of them is there.

Invariant: a name stands for one thing; a bare name that is both a stream and a table is refused.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jetlake.errors import ClientError, ConfigurationError
from jetlake.spark.connecting import connect
from jetlake.spark.naming import by_table, names_at, table_name, to_connect
from jetlake.spark.options import parse
from jetlake.suggestions import suggestion

if TYPE_CHECKING:
    from jetlake.spark.lake.as_of import AsOf

__all__ = ["LakeSource", "QueriedStream", "Sources"]

STREAMS = "streams"
LAKE = "lake"

LISTED_MAX = 1_000
"""Streams that become tables when a query names none, as `SHOW ALL TABLES` does."""

DELTA_LOG = "_delta_log"
"""The folder that makes a folder a Delta table."""

BUCKET_PREFIXES = ("KV_", "OBJ_")
"""Streams of buckets: found by name, not listed."""


class QueriedStream(NamedTuple):
    """A stream that a query reads, and the name of its table."""

    table: str
    stream: str


class LakeSource(NamedTuple):
    """A lake table that a query reads."""

    table: str


class Sources:
    """The streams of a server and the tables of a lake. Methods raise `ClientError` and `ConfigurationError`."""

    def __init__(self, options: dict[str, str], lake: Path, as_of: "AsOf | None" = None) -> None:
        # Options of the format `jetlake`: the connection, and how streams are read.
        self.options = options
        self.lake = lake
        # Which version of lake tables is meant; the newest unless given.
        self.as_of = as_of
        self._streams: dict[str, str] | None = None

    def find(self, names: "list[tuple[str, str]]") -> "list[QueriedStream | LakeSource]":
        """Return what these names, each with its schema or an empty one, stand for."""
        found: dict[str, QueriedStream | LakeSource] = {}
        for schema, name in names:
            source = self._one(schema.lower(), name)
            found[f"{type(source).__name__}.{source.table}"] = source
        return list(found.values())

    def everything(self) -> "list[QueriedStream | LakeSource]":
        """Return every stream, those of buckets left out, and every lake table."""
        streams = {table: name for table, name in self._listed().items() if not name.startswith(BUCKET_PREFIXES)}
        if len(streams) > LISTED_MAX:
            raise ConfigurationError(f"there are {len(streams)} streams: name one, as in DESCRIBE streams.orders")
        return [
            *(QueriedStream(table, stream) for table, stream in streams.items()),
            *(LakeSource(table) for table in self.lake_tables()),
        ]

    def lake_tables(self) -> list[str]:
        """Return the names of the lake tables."""
        if not self.lake.is_dir():
            return []
        return sorted(path.name for path in self.lake.iterdir() if (path / DELTA_LOG).is_dir())

    def _one(self, schema: str, name: str) -> "QueriedStream | LakeSource":
        if schema == STREAMS:
            return self._stream(name) or self._refuse(name, schema)
        if schema == LAKE:
            return self._lake_table(name) or self._refuse(name, schema)
        stream = self._stream(name)
        table = self._lake_table(name)
        if stream is not None and table is not None:
            raise ConfigurationError(f"{name} is a stream and a lake table: write {STREAMS}.{name} or {LAKE}.{name}")
        return stream or table or self._refuse(name, schema)

    def _stream(self, name: str) -> QueriedStream | None:
        try:
            stream = self._listed().get(table_name(name))
        except ClientError as error:
            # A user may be allowed to read one stream and not to list them all.
            stream = self._asked_for(name, error)
        return None if stream is None else QueriedStream(table_name(name), stream)

    def _asked_for(self, name: str, refusal: ClientError) -> str:
        connected = connect(parse(to_connect(self.options), "read"))
        try:
            for spelled in dict.fromkeys((name, name.upper())):
                try:
                    return connected.state(spelled).name
                except ClientError:
                    continue
        finally:
            connected.connection.close()
        raise refusal

    def _lake_table(self, name: str) -> LakeSource | None:
        wanted = name.lower()
        return next((LakeSource(table) for table in self.lake_tables() if table.lower() == wanted), None)

    def _listed(self) -> dict[str, str]:
        if self._streams is None:
            self._streams = by_table(names_at(self.options))
        return self._streams

    def _refuse(self, name: str, schema: str) -> "QueriedStream":
        there: list[str] = []
        if schema != LAKE:
            there += [f"{STREAMS}.{table}" for table in self._listed()]
        if schema != STREAMS:
            there += [f"{LAKE}.{table}" for table in self.lake_tables()]
        wanted = f"{schema}.{name}" if schema else name
        # A bare name is compared with bare names.
        near = suggestion(wanted, there) if schema else suggestion(name, [one.partition(".")[2] for one in there])
        otherwise = (
            f"; `jetlake stream ls` lists the streams, and {self.lake} is the folder of lake tables"
            if there
            else f"; the server has no streams, and {self.lake} no lake tables"
        )
        raise ConfigurationError(f"there is no table {wanted}{near or otherwise}")
