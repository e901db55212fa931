"""The format `jetlake` of Spark: `spark.read.format("jetlake")`, found by Spark itself.

A row is a message of a stream. Options are checked here, on the driver, before anything runs; everything that is
pickled to another process is made of plain values.
"""

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pyspark.sql.datasource import DataSource

from jetlake.spark.columns import ddl, narrow
from jetlake.spark.options import OPTIONS, parse
from jetlake.spark.publishing import check_columns

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from jetlake.spark.batch_reader import JetlakeReader
    from jetlake.spark.stream_reader import JetlakeStreamReader
    from jetlake.spark.writers import JetlakeStreamWriter, JetlakeWriter

__all__ = ["FORMAT", "JetlakeSource"]

FORMAT = "jetlake"


class JetlakeSource(DataSource):
    """What Spark asks for a table of this format."""

    OWN: ClassVar[dict[str, str]] = {}
    """Options that a class brings along; those of the query go before them."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        # Spark asks for this before it says whether it is going to read or to write, so only these are looked at.
        asked = {name: value for name, value in self._given().items() if name in ("decode", "valueschema", "decoder")}
        values = parse(asked, "read")
        return ddl(decode=values["decode"], value_schema=values["valueSchema"], decoder=values["decoder"])

    def reader(self, schema: "StructType") -> "JetlakeReader":
        from jetlake.spark.batch_reader import JetlakeReader

        values = self._values("read")
        return JetlakeReader(values, narrow(schema, values["decoder"]))

    def streamReader(self, schema: "StructType") -> "JetlakeStreamReader":  # noqa: N802
        from jetlake.spark.stream_reader import JetlakeStreamReader

        values = self._values("read")
        return JetlakeStreamReader(values, narrow(schema, values["decoder"]))

    def writer(self, schema: "StructType", overwrite: bool) -> "JetlakeWriter":
        from jetlake.spark.writers import JetlakeWriter

        values = self._values("write")
        check_columns(schema, values)
        return JetlakeWriter(values, overwrite=overwrite)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "JetlakeStreamWriter":  # noqa: N802
        from jetlake.spark.writers import JetlakeStreamWriter

        values = self._values("write")
        check_columns(schema, values)
        return JetlakeStreamWriter(values, overwrite=overwrite)

    def _values(self, side: Literal["read", "write"]) -> dict[str, Any]:
        given = self._given(side)
        values = parse(given, side)
        # `load("ORDERS")` says the same as the option.
        if given.get("path") and not any(values.get(key) for key in ("stream", "streams", "streamsPattern")):
            values["stream"] = given["path"]
        return values

    def _given(self, side: str = "") -> dict[str, str]:
        """Return the options by lower-case names: what a class brings for a side (or all), and the query's."""
        others = {option.name for option in OPTIONS if side and option.side not in (side, "both")}
        own = {name.lower(): value for name, value in self.OWN.items() if name not in others}
        return {**own, **{name.lower(): value for name, value in dict(self.options).items()}}
