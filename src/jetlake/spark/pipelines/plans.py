"""What Spark makes of a transformation: does it keep state from batch to batch, and can it run on a stream at all.

A transformation without state gives the same whether it sees a stream or one batch after the other. That is what
lets one query write several tables and set bad rows aside while it reads its stream once.
"""

from typing import TYPE_CHECKING, Any

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.steps import sentence

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

STATELESS_NODES = {
    "CTERelationDef",
    "CTERelationRef",
    "Filter",
    "Generate",
    "Project",
    "Repartition",
    "RepartitionByExpression",
    "ResolvedHint",
    "SubqueryAlias",
    "Union",
    "View",
    "WithCTE",
    "MapInPandas",
    "MapInArrow",
    "PythonMapInArrow",
    "BatchEvalPython",
    "ArrowEvalPython",
    "EventTimeWatermark",
}
"""Nodes that treat every row by itself. A node that is not known is taken to keep state, which is always right."""


def keeps_state(frame: "DataFrame") -> bool:
    """Whether a frame of a stream needs more than one batch at a time."""
    return _any_state(frame._jdf.queryExecution().analyzed())  # noqa: SLF001


def _any_state(node: Any) -> bool:
    if not node.isStreaming():
        return False
    children = [node.children().apply(index) for index in range(node.children().size())]
    if not children:
        return False
    name = node.nodeName()
    if name == "Join":
        if all(child.isStreaming() for child in children):
            return True
    elif name not in STATELESS_NODES:
        return True
    return any(_any_state(child) for child in children)


def check_streaming(frame: "DataFrame", where: str, mode: str = "append") -> None:
    """Refuse a frame that Spark would refuse to run on a stream. Raises `ConfigurationError`."""
    from pyspark.errors import PySparkException

    spark = frame.sparkSession
    jvm = spark._jvm  # noqa: SLF001
    assert jvm is not None
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    output_mode = getattr(jvm.org.apache.spark.sql.streaming.OutputMode, mode.capitalize())()
    try:
        checker.checkForStreaming(plan, output_mode)
    except PySparkException as error:
        text = sentence(error)
        if "watermark" in text:
            text = (
                "it groups rows, and would have to wait for ever for more of them: give the input a `watermark` and "
                "group by window(timestamp, '1 minute')"
            )
        raise ConfigurationError(f"{where}: {text}") from error
