"""The Spark side of Jetlake: every stream is a table.

```python
import jetlake.spark

spark = jetlake.spark.session()
jetlake.spark.attach(spark, "nats://127.0.0.1:4222")
spark.sql("SELECT subject, count(*) FROM streams.orders GROUP BY subject").show()
```

- `source`         the format `jetlake`, which Spark finds through the package `pyspark_jetlake`
- `options`        every option of the format, in one table
- `offsets`        where a query stands
- `columns`        the columns of a message, and which of them a query wants
- `naming`         the names of streams as names of tables
- `connecting`     from options to a connection
- `planning`       which sequences are read, and how they are split into tasks
- `plan_once`      the plan of a table that is read once
- `ranges`         reads one range of one stream as Arrow batches
- `files`          the same from the files of a server on the same host
- `decoders`      Python objects that make the column `value` of other payloads
- `packs`         many rows as one value, on the way to and from a state in Python
- `decoding`       payloads that are JSON, as columns
- `variant`        values in the binary form of Spark's VARIANT
- `batch_reader`   reads a table once
- `stream_reader`  reads a table as it grows
- `publishing`     sends the rows of one task, every acknowledgement checked
- `signs_of_life`  tells the server that a task still works on its batch, while it sends no rows
- `writers`        the sink, for batches and for streams
- `attached`       every stream as a table of a database
- `sessions`       a session with good local defaults
- `progress`       how the queries of a session are doing
- `home`           Spark's home without zipped Python, so that its Python processes start fast
- `launch`         starts Java for a session, quickly and quietly
- `java`           finds a Java that Spark can run on, without needing root
- `lake`           tables in a folder
- `pipelines`      the user's own long-running queries

Importing this package imports neither Spark nor Arrow.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetlake.spark.attached import attach
    from jetlake.spark.progress import Progress
    from jetlake.spark.sessions import session

__all__ = ["Progress", "attach", "session"]

_HOME_OF_NAME = {
    "Progress": "jetlake.spark.progress",
    "attach": "jetlake.spark.attached",
    "session": "jetlake.spark.sessions",
}


def __getattr__(name: str) -> object:
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value
