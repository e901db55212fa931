"""Sends the rows of one task as messages, every acknowledgement checked.

A message is a subject, headers and data. The columns of a row are brought into that form here; the engine makes the
messages and their ids, and reads the acknowledgements.

Invariant: when `publish` returns, every row is stored, or was stored before under the same id; or is uploaded.
"""

import json
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake._engine import EngineError, PublishWriter
from jetlake.errors import ClientError, ConfigurationError, reworded
from jetlake.spark.columns import MESSAGE
from jetlake.spark.connecting import connect
from jetlake.spark.ranges import as_ours
from jetlake.spark.signs_of_life import SignsOfLife

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["TaskPublished", "Upload", "check_columns", "publish"]

PAYLOADS = ("data", "value")

SENT = ("subject", "headers", *PAYLOADS)
"""The columns that are part of a message."""

PASSED_OVER = frozenset(MESSAGE) - set(SENT)
"""Columns of a message that the server gives it; they are passed over with ignoreExtraColumns."""


class TaskPublished(msgspec.Struct, frozen=True):
    """What a task has stored, or uploaded."""

    stored: int = 0
    duplicates: int = 0


class Upload(msgspec.Struct, frozen=True):
    """The messages that a task sends to be stored later, with everything else of its batch."""

    id: str
    query: str
    # Of the query; what an earlier one has left is dropped.
    run: str

    @property
    def sign_of_life(self) -> str:
        """The header that tells the server that a task still works on it."""
        return f"{self.id}/0/{self.query}/{self.run}"


def check_columns(schema: "StructType", values: dict[str, Any]) -> None:
    """Raise `ConfigurationError` if rows of this schema are not messages."""
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

    kinds = {field.name: field.dataType for field in schema.fields}
    payloads = [name for name in PAYLOADS if name in kinds]
    if not payloads:
        raise ConfigurationError("the rows have no column data or value: name one of them so")
    if len(payloads) > 1 and not values["ignoreExtraColumns"]:
        raise ConfigurationError("the rows have both data and value: leave one of them out")
    allowed = {*SENT, values["msgIdColumn"]}
    extra = [name for name in kinds if name not in allowed]
    if extra and not values["ignoreExtraColumns"]:
        raise ConfigurationError(
            f"{', '.join(extra)} is not part of a message: select {', '.join(SENT)} only, or set ignoreExtraColumns"
        )
    if "subject" not in kinds and not values["subject"]:
        raise ConfigurationError("nothing says on which subject the rows go: give the option or a column subject")
    payload = kinds[payloads[0]]
    if not isinstance(payload, BinaryType | StringType | StructType | MapType | ArrayType):
        raise ConfigurationError(
            f"the column {payloads[0]} is {payload.simpleString()}: cast it to STRING or BINARY, or write a STRUCT "
            "(a VARIANT by to_json)"
        )
    if "headers" in kinds and kinds["headers"].simpleString() != "map<string,array<string>>":
        raise ConfigurationError(
            f"the column headers is {kinds['headers'].simpleString()}: it must be map<string,array<string>>"
        )
    wanted = values["msgIdColumn"]
    if wanted and not isinstance(kinds.get(wanted), StringType):
        raise ConfigurationError(f"msgIdColumn is {wanted!r}: the rows have no such column of type STRING")


def publish(batches: "Iterator[pa.RecordBatch]", values: dict[str, Any], target: str | Upload) -> TaskPublished:
    """Send all rows, with ids that begin so or as an upload, and return how many are stored. Raises `ClientError`."""
    sender = None
    try:
        with SignsOfLife(values, target.sign_of_life) if isinstance(target, Upload) else nullcontext() as signs:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                # A task without rows needs no connection.
                sender = sender or RowSender(values, target)
                columns = message_columns(batch, values)
                sender.add(columns)
                if signs is not None:
                    signs.note(last_subject(columns))
            return TaskPublished() if sender is None else sender.finish()
    except EngineError as error:
        raise as_ours(error, f"rows for {values['stream'] or values['subject'] or 'streams'}") from error
    finally:
        if sender is not None:
            sender.close()


class RowSender:
    """A connection with the engine's writer on top."""

    def __init__(self, values: dict[str, Any], target: str | Upload) -> None:
        self._connection = connect(values, executor=True).connection
        self._silence_s_max = values["ackTimeoutMs"] / 1000
        options: dict[str, Any] = {
            "inbox": self._connection.new_inbox(),
            "sid": self._connection.new_subscription(),
            "subject": values["subject"],
            "stream": values["stream"],
            "outstanding_max": values["maxInflight"],
            "outstanding_bytes_max": values["maxInflightBytes"],
        }
        if isinstance(target, Upload):
            options |= {"ids": "upload", "upload": msgspec.structs.asdict(target)}
        elif values["msgIdColumn"]:
            options["ids"] = "column"
        elif values["guarantee"] == "exactly-once":
            options |= {"ids": "content", "id_prefix": target}
        self._writer = PublishWriter(json.dumps(options).encode())
        if left := self._connection.take_unparsed():
            self._writer.feed(left)

    def add(self, batch: "pa.RecordBatch") -> None:
        """Send one batch; returns when its last message is on its way."""
        self._writer.add(batch)
        while self._writer.waiting:
            self._turn()

    def finish(self) -> TaskPublished:
        """Wait for what is not acknowledged yet."""
        self._writer.end()
        while self._writer.waiting or self._writer.outstanding:
            self._turn()
        return TaskPublished(self._writer.stored, self._writer.duplicates)

    def close(self) -> None:
        self._connection.close()

    def _turn(self) -> None:
        data = self._writer.to_send()
        if data:
            self._connection.send(data)
            return
        try:
            self._writer.feed(self._connection.receive(self._silence_s_max))
        except ClientError as error:
            raise reworded(
                error, f"{self._writer.outstanding} messages are not acknowledged ({error}); the task can be repeated"
            ) from error


def message_columns(batch: "pa.RecordBatch", values: dict[str, Any]) -> "pa.RecordBatch":
    """Return the columns of a batch that make a message, as the engine names them."""
    import pyarrow as pa

    names = batch.schema.names
    payload = next(name for name in PAYLOADS if name in names)
    columns = {payload: as_payload(batch.column(payload))}
    for name in ("subject", "headers"):
        if name in names:
            columns[name] = batch.column(name)
    if "subject" in columns and values["subject"] and columns["subject"].null_count:
        columns["subject"] = columns["subject"].fill_null(values["subject"])
    if values["msgIdColumn"]:
        columns["msg_id"] = batch.column(values["msgIdColumn"])
    return pa.RecordBatch.from_pydict(columns)


def last_subject(columns: "pa.RecordBatch") -> str:
    """Return the subject that the last row has of its own; empty if it has none."""
    own = columns.column("subject")[-1].as_py() if "subject" in columns.schema.names else None
    return own or ""


def as_payload(column: "pa.Array") -> "pa.Array":
    """Return a column as bytes or text: structs, maps and lists as JSON."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return column
    make = json_form(kind)
    rows = [None if row is None else msgspec.json.encode(make(row)) for row in column.to_pylist()]
    return pa.array(rows, pa.binary())


def json_form(kind: "pa.DataType") -> Any:
    """Return a function from Arrow's Python values to what JSON can say: maps as objects, the rest as it is."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        item = json_form(kind.item_type)
        return lambda value: None if value is None else {str(key): item(one) for key, one in value}
    if pa.types.is_list(kind):
        element = json_form(kind.value_type)
        return lambda value: None if value is None else [element(one) for one in value]
    if pa.types.is_struct(kind):
        children = [(child.name, json_form(child.type)) for child in kind]
        # As Spark's to_json does: a field that is NULL is left out.
        return lambda value: (
            None if value is None else {name: make(value[name]) for name, make in children if value[name] is not None}
        )
    return lambda value: value
