"""The format `jetlake` of Spark: `spark.read.format("jetlake")`, found by Spark itself.

A row is a message of a stream. This version of Jetlake has no streams yet, so asking for rows is refused, on the
driver and before anything runs, with what to do; the name and the columns are those that will stay.
"""

from typing import NoReturn

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from jetlake.errors import ConfigurationError

FORMAT = "jetlake"

COLUMNS = (
    "stream STRING, subject STRING, sequence BIGINT, timestamp TIMESTAMP, time_ns BIGINT, "
    "headers MAP<STRING, ARRAY<STRING>>, data BINARY"
)
"""The columns of a message."""


class JetlakeSource(DataSource):
    """What Spark asks for a table of this format."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        self._refuse()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ConfigurationError(
            f"format({FORMAT!r}) reads streams, and this version of Jetlake has none yet: install a later version, or "
            "read from a file or a socket until then"
        )
