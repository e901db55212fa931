"""Pipelines: streams through steps into tables and streams, every row once.

A pipeline is a pure function from frames to frames with a description of where the rows come from and where they go:

```python
from jetlake.spark.pipelines import StreamInput, TableOutput, pipeline

@pipeline(
    inputs={"orders": StreamInput("ORDERS", columns="id BIGINT, total DOUBLE")},
    outputs=[TableOutput("large_orders")],
)
def large_orders(orders):
    return orders.where("total > 100")
```

- `model`         what a pipeline is: inputs, transformation, outputs, trigger
- `definition`    a pipeline as YAML
- `python_file`   a pipeline as a Python function with a decorator
- `catalog`       finds pipelines by name: those that ship and those in a folder
- `adapter`       ships: requests of nodes into output documents, a stream and a table
- `archive`       ships: any stream into a table
- `fleet`         ships: nodes with their inventory, availability, checks, machines and governors
- `logs`          ships: log lines, their rates and what is unusual about them
- `logs_report`   what `show logs` says
- `devices`       ships: device events as tables; `device_packs` how they are read, `device_tables` their columns
- `device_history` changes of resources, each with the value before it
- `device_state`  what is remembered of a device; `device_rows` the rows of tables that change with it
- `device_quality` what the bus did to an aggregate; `device_arrivals` the messages of a batch, by aggregate
- `device_processor` all of them in Spark's own state; `device_targets` the rows that leave it, by table
- `device_report` the page; `device_bus_report` what it says of the bus, `device_figures` what the sections share
- `dead`          ships: dead letters, their causes and trends; `dead_report` the page
- `messages`      messages as frames: payloads into columns, bad ones set aside with the reason
- `steps`         SQL steps as a transformation
- `plans`         what Spark makes of a transformation: does it keep state, can it run on a stream
- `trial`         a pipeline on a few rows, without a stream
- `stream_names`  whether the streams that a pipeline names are there
- `validation`    what is wrong with a pipeline, before it runs
- `flows`         a pipeline as queries of Spark
- `batches`       what happens to one micro-batch
- `targets`       the rows of many tables in one frame, packed
- `processes`     what processors of the state do with the process they run in
- `tallies`       sums that grow batch by batch
- `outgoing`      rows as messages for a stream
- `refresh`       a pipeline from tables only
- `progress`      how the queries are doing
- `state`         the files by which a running pipeline is known to others
- `runner`        runs many pipelines in one session
- `summary`       the tables of a pipeline in numbers
- `sections`      what a pipeline that ships has to say about its tables
- `charts`        plots as SVG
- `report`        a page about a pipeline that needs nothing else
- `showing`       all of that about one pipeline, read from the lake
- `scaffold`      the files of a new pipeline
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetlake.spark.pipelines.catalog import Catalog
    from jetlake.spark.pipelines.model import Derived, Pipeline, StreamInput, StreamOutput, TableInput, TableOutput
    from jetlake.spark.pipelines.python_file import pipeline
    from jetlake.spark.pipelines.runner import Runner
    from jetlake.spark.pipelines.trial import Trial, try_out

__all__ = [
    "Catalog",
    "Derived",
    "Pipeline",
    "Runner",
    "StreamInput",
    "StreamOutput",
    "TableInput",
    "TableOutput",
    "Trial",
    "pipeline",
    "try_out",
]

_HOME_OF_NAME = {
    "Catalog": "catalog",
    "Derived": "model",
    "Pipeline": "model",
    "Runner": "runner",
    "StreamInput": "model",
    "StreamOutput": "model",
    "TableInput": "model",
    "TableOutput": "model",
    "Trial": "trial",
    "pipeline": "python_file",
    "try_out": "trial",
}


def __getattr__(name: str) -> object:
    home = _HOME_OF_NAME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it exports {', '.join(__all__)}")
    value: object = getattr(import_module(f"jetlake.spark.pipelines.{home}"), name)
    globals()[name] = value
    return value
