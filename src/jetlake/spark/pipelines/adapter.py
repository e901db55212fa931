"""The pipeline `adapter`: requests as nodes broadcast them become output documents, on a stream and in a table.

It does what `jetlake adapter` does in a process of its own, with the same functions: an envelope is taken apart and
checked (`choria.envelopes`), and its body is wrapped (`choria.documents`). The difference is that it begins with a
stream: what was received while nobody was there is not lost, and what cannot be read is in a table with the reason.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from jetlake.choria import documents
from jetlake.choria.envelopes import EnvelopeError, Protocol, parse
from jetlake.choria.subjects import expand, is_publishable
from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.messages import BAD
from jetlake.spark.pipelines.model import Frames, Pipeline, StreamInput, StreamOutput, TableOutput

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

ABOUT = "Requests of nodes, as they broadcast them, into output documents: a stream and a table."

COLUMNS = (
    "stream STRING, subject STRING, sequence BIGINT, timestamp TIMESTAMP, data BINARY, topic STRING, document BINARY, "
    f"msg_id STRING, sender STRING, time STRING, requestid STRING, body STRING, {BAD} STRING"
)

PROTOCOLS: tuple[Protocol, ...] = ("request", "reply")


@dataclass(frozen=True)
class Parameters:
    """What can be set with `--set` or under `with`."""

    stream: str = "CHORIA_DISCOVERY"
    """The stream that captures what nodes broadcast."""

    subjects: str = "choria.discovery"
    protocol: str = "request"
    output: str = "CHORIA_REGISTRATION"
    """The stream that documents are published to."""

    topic: str = "choria.node_metadata"
    """The subject of the documents; `%s` in it stands for the sender."""

    type: str = "jetstream"
    table: str = "node_metadata"
    start: str = "earliest"
    trigger: str = "1 second"


def build(name: str, parameters: Parameters) -> Pipeline:
    """Return the pipeline. Raises `ConfigurationError`."""
    if parameters.protocol not in PROTOCOLS:
        raise ConfigurationError(f"pipeline {name}: protocol is {parameters.protocol!r}; use {' or '.join(PROTOCOLS)}")
    if parameters.type not in documents.KINDS:
        raise ConfigurationError(f"pipeline {name}: type is {parameters.type!r}; use {' or '.join(documents.KINDS)}")
    if not is_publishable(expand(parameters.topic, "node")):
        raise ConfigurationError(f"pipeline {name}: {parameters.topic!r} is not a subject to publish to")
    convert = partial(
        converted,
        protocol=parameters.protocol,
        output_protocol=documents.output_protocol(parameters.type),
        topic=parameters.topic,
    )
    return Pipeline(
        name=name,
        about=ABOUT,
        inputs={
            "requests": StreamInput(
                stream=parameters.stream,
                subjects=tuple(part.strip() for part in parameters.subjects.split(",") if part.strip()),
                start=parameters.start,
                prepare=preparing(convert),
            )
        },
        transform=transform,
        outputs=(
            StreamOutput(parameters.output, of="documents", options={"msgIdColumn": "msg_id"}),
            TableOutput(parameters.table, of="rows", partition_by=("day",)),
        ),
        trigger=parameters.trigger,
    )


def preparing(convert: "Callable[[Iterator[Any]], Iterator[Any]]") -> "Callable[[DataFrame], DataFrame]":
    """Return the function from messages to documents, batch by batch of Arrow."""

    def prepare(messages: "DataFrame") -> "DataFrame":
        return messages.select("stream", "subject", "sequence", "timestamp", "data").mapInArrow(convert, COLUMNS)

    return prepare


def transform(frames: Frames) -> Frames:
    """Documents as they are published, and the same as rows."""
    requests = frames["requests"]
    return {
        "documents": requests.selectExpr("topic AS subject", "msg_id", "document AS data"),
        "rows": requests.selectExpr(
            "sender",
            "to_timestamp(time) AS time",
            "requestid",
            "body AS data",
            "stream",
            "sequence",
            "timestamp",
            "to_date(timestamp) AS day",
        ),
    }


def converted(
    batches: "Iterator[pyarrow.RecordBatch]", *, protocol: Protocol, output_protocol: str, topic: str
) -> "Iterator[pyarrow.RecordBatch]":
    """Messages → documents; what cannot be read keeps its payload and says why."""
    import pyarrow

    for batch in batches:
        made = [document(payload, protocol, output_protocol, topic) for payload in batch.column("data").to_pylist()]
        names = ("topic", "document", "msg_id", "sender", "time", "requestid", "body", BAD)
        kinds = {"document": pyarrow.binary()}
        columns = [batch.column(name) for name in batch.schema.names]
        columns += [
            pyarrow.array([row[index] for row in made], kinds.get(name, pyarrow.string()))
            for index, name in enumerate(names)
        ]
        yield pyarrow.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *names])


def document(
    payload: bytes | None, protocol: Protocol, output_protocol: str, topic: str
) -> tuple[str | None, bytes | None, str | None, str | None, str | None, str | None, str | None, str | None]:
    """Return subject, document, id, sender, time, request and body of a message; or, as the last, why not."""
    try:
        received = parse(payload or b"", protocol)
        body = documents.encode(received, output_protocol)
    except EnvelopeError as error:
        return None, None, None, None, None, None, None, str(error)
    message_id = documents.header_id_of(received)
    subject = expand(topic, received.sender)
    return subject, body, message_id, received.sender, received.time, received.request_id, received.data, None
