"""Rows as messages for a stream: the subject from a template, the payload from the columns.

A frame with a column `data` or `value` is sent as it is. Of any other frame every column becomes a field of a JSON
object. `alerts.{city}` takes the city of the row; what cannot be part of a subject becomes `_`.
"""

import re
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.model import StreamOutput
from jetlake.suggestions import hint

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLACE = re.compile(r"\{(\w+)\}")
OF_MESSAGES = ("subject", "headers", "msg_id")


def as_messages(frame: "DataFrame", output: StreamOutput) -> "DataFrame":
    """Return a frame with the columns that the sink takes. Raises `ConfigurationError`."""
    from pyspark.sql import functions

    where = f"output {output.stream}"
    chosen = [functions.col(name) for name in ("headers", "msg_id") if name in frame.columns]
    if output.subject:
        chosen.append(subject(frame, output.subject, where).alias("subject"))
    elif "subject" in frame.columns:
        chosen.append(functions.col("subject"))
    else:
        raise ConfigurationError(f"{where}: give a `subject`, such as alerts.{{city}}, or select a column `subject`")
    body = next((name for name in ("data", "value") if name in frame.columns), None)
    if body is not None:
        chosen.append(functions.col(body))
    else:
        fields = [functions.col(f"`{name}`") for name in frame.columns if name not in OF_MESSAGES]
        if not fields:
            raise ConfigurationError(f"{where}: no column is left for the payload; select some besides the subject")
        chosen.append(functions.to_json(functions.struct(*fields)).alias("value"))
    return frame.select(*chosen)


def subject(frame: "DataFrame", template: str, where: str) -> "Column":
    """Return the subject of every row."""
    from pyspark.sql import functions

    parts: list[Column] = []
    position = 0
    for place in PLACE.finditer(template):
        name = place.group(1)
        if name not in frame.columns:
            raise ConfigurationError(
                f"{where}: the subject {template} takes {name}, which is not a column{hint(name, frame.columns)}"
            )
        parts.append(functions.lit(template[position : place.start()]))
        token = functions.coalesce(functions.col(f"`{name}`").cast("string"), functions.lit(""))
        clean = functions.regexp_replace(token, r"[\s.*>\x00-\x1f]", "_")
        parts.append(functions.when(functions.length(clean) == 0, "_").otherwise(clean))
        position = place.end()
    parts.append(functions.lit(template[position:]))
    return functions.concat(*parts)
