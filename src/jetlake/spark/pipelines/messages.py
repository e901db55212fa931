"""Messages as frames: payloads into columns, bad ones set aside with the reason.

A row whose payload is not what was promised must not stop the rows after it. So nothing here fails for one row: it
gets a reason in the column `_bad`, goes to the table `<pipeline>_bad` with its payload, and can be read again.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.columns import MESSAGE
from jetlake.spark.pipelines.model import StreamInput

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

BAD = "_bad"
CORRUPT = "_corrupt"
VALUE = "value"

NOT_TEXT = "the payload is not UTF-8"
NOT_JSON = "the payload is not JSON"
WRONG_FIELD = "a field is not of the type that was promised"


def parse_fields(columns: str, where: str) -> "StructType":
    """Return the fields of a payload from their text. Raises `ConfigurationError`."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        fields = StructType.fromDDL(columns)
        assert isinstance(fields, StructType), "a list of columns makes a structure"
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigurationError(
            f"{where}: columns {columns!r} cannot be read ({first}); write them like id BIGINT, total DOUBLE"
        ) from error
    reserved = {BAD, CORRUPT, VALUE}
    for name in fields.names:
        if name.lower() in reserved:
            raise ConfigurationError(f"{where}: a column cannot be called {name}; the name is used for something else")
    return fields


def prepared(frame: "DataFrame", given: StreamInput, where: str) -> "DataFrame":
    """Return the rows of an input with a column `_bad`: NULL, or why the row is set aside."""
    from pyspark.sql import functions

    if given.prepare is not None:
        frame = given.prepare(frame)
    if given.columns:
        frame = decoded(frame, parse_fields(given.columns, where))
    if BAD not in frame.columns:
        frame = frame.withColumn(BAD, functions.lit(None).cast("string"))
    if given.expect:
        frame = checked(frame, given.expect)
    if given.watermark:
        frame = frame.withWatermark(given.watermark_column, given.watermark)
    return frame


def decoded(frame: "DataFrame", fields: "StructType") -> "DataFrame":
    """Return the frame with the payload as `value`, its fields as columns of their own, and `_bad`.

    A field that has the name of a column of messages is found in `value` only.
    """
    from pyspark.sql import functions
    from pyspark.sql.types import StringType, StructField, StructType

    text = functions.col("data").cast("string")
    with_corrupt = StructType([*fields.fields, StructField(CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    parsed = functions.from_json(text, with_corrupt, options)
    corrupt = functions.col(f"{VALUE}.{CORRUPT}").isNotNull() | functions.col(VALUE).isNull()
    reason = (
        functions.when(~functions.expr("is_valid_utf8(data)"), NOT_TEXT)
        .when(functions.expr("try_parse_json(CAST(data AS STRING)) IS NULL"), NOT_JSON)
        .when(corrupt, WRONG_FIELD)
    )
    value = functions.struct(*(functions.col(f"{VALUE}.`{name}`").alias(name) for name in fields.names))
    there = set(frame.columns)
    return (
        frame.withColumn(VALUE, parsed)
        .withColumn(BAD, reason)
        .withColumn(VALUE, value)
        .select(
            "*",
            *(functions.col(f"{VALUE}.`{name}`").alias(name) for name in fields.names if name not in there),
        )
    )


def checked(frame: "DataFrame", expect: Mapping[str, str]) -> "DataFrame":
    """Return the frame with a reason in `_bad` where one of the conditions is not true."""
    from pyspark.sql import functions

    reason = functions.col(BAD)
    for text, condition in expect.items():
        reason = reason_unless(reason, functions.expr(condition), text)
    return frame.withColumn(BAD, reason)


def reason_unless(reason: "Column", condition: "Column", text: str) -> "Column":
    """Return a reason: the one there is, or this text where the condition is false or NULL."""
    from pyspark.sql import functions

    failed = ~functions.coalesce(condition, functions.lit(False))
    return functions.coalesce(reason, functions.when(failed, text))


def good(frame: "DataFrame") -> "DataFrame":
    """Return the rows that nothing speaks against."""
    return frame.where(f"{BAD} IS NULL").drop(BAD)


def bad(frame: "DataFrame", input_name: str) -> "DataFrame":
    """Return the rows that were set aside, as they are kept: the message, the input and the reason."""
    from pyspark.sql import functions

    there = [name for name in MESSAGE if name in frame.columns]
    return frame.where(f"{BAD} IS NOT NULL").select(
        functions.lit(input_name).alias("input"),
        functions.col(BAD).alias("reason"),
        *there,
        functions.to_date("timestamp").alias("day"),
    )
