"""Spark imports every package whose name begins with `pyspark_` and takes its `DefaultSource`.

So `format("jetlake")` needs no registration.
"""

from jetlake.spark.source import JetlakeSource as DefaultSource

__all__ = ["DefaultSource"]
