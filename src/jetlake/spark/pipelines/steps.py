"""SQL steps as a transformation: each step is a query over the inputs and the steps before it.

What Spark says about a query that does not fit is turned into one sentence with the nearest name.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.model import Frames, Transform
from jetlake.suggestions import hint, nearest

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame


class QueryStep(NamedTuple):
    """One query and the name of its result."""

    name: str
    sql: str


def transform_of(steps: Sequence[QueryStep]) -> Transform:
    """Return the transformation that runs these steps in their order."""

    def transform(inputs: Frames) -> Frames:
        frames = dict(inputs)
        spark = next(iter(inputs.values())).sparkSession
        for name, frame in inputs.items():
            frame.createOrReplaceTempView(name)
        for step in steps:
            frames[step.name] = explained(
                lambda step=step: spark.sql(step.sql),  # type: ignore[misc]
                f"step {step.name}",
                list(frames),
            )
            frames[step.name].createOrReplaceTempView(step.name)
        return {step.name: frames[step.name] for step in steps} or frames

    return transform


def quieten() -> None:
    """Keep Spark from printing every refused query with its stack: we report it in one sentence."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)


def explained(work: "Callable[[], DataFrame]", where: str, names: Sequence[str] = ()) -> "DataFrame":
    """Do something that Spark may refuse; raises `ConfigurationError` with one sentence instead."""
    from pyspark.errors import PySparkException

    try:
        return work()
    except PySparkException as error:
        raise ConfigurationError(f"{where}: {sentence(error, names)}") from error


def sentence(error: "PySparkException", names: Sequence[str] = ()) -> str:
    """Return what Spark refused, in one sentence with what to do."""
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    if condition.startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND")):
        wanted = bare(parameters.get("objectName") or parameters.get("fieldName") or "?")
        there = [bare(name) for name in (parameters.get("proposal") or parameters.get("fields") or "").split(", ")]
        near = nearest(wanted.rpartition(".")[2], [name.rpartition(".")[2] for name in there if name])
        return f"there is no column {wanted}" + (
            f"; did you mean {near}?" if near else f"; there are {', '.join(there)}"
        )
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        wanted = bare(parameters.get("relationName", "?"))
        return f"there is no input or step {wanted}{hint(wanted, names)}"
    if condition == "UNRESOLVED_ROUTINE":
        return f"there is no function {bare(parameters.get('routineName', '?'))}"
    if condition == "PARSE_SYNTAX_ERROR":
        return f"this is not SQL: something is wrong at {parameters.get('error', 'its end')}"
    first = re.split(r"\n| SQLSTATE", str(error).strip())[0]
    return re.sub(r"^\[[A-Z_.0-9]+\] *", "", first)


def bare(name: str) -> str:
    """Return a name without the quotes that Spark puts around it."""
    return name.replace("`", "")
