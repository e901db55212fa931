"""Reads a range straight from the files of a Jetlake server on the same host, as far as that goes.

The server says where the messages of a range lie; they are read without it, checksums verified. Files that are not
here, may not be read, or have changed in the meantime end it, and the rest comes over the connection.

Invariant: the rows that were yielded are those of the range from its start up to `last_sequence`, none left out.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jetlake._engine import EngineError, StoreReader
from jetlake.client.raw_streams import Streams
from jetlake.errors import ClientError
from jetlake.spark.planning import StreamRange

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FileRows"]

ROWS_MIN = 4096
"""For fewer sequences one question more costs as much as it saves."""


class FileRows:
    """The rows of a range that can be had from files."""

    def __init__(self, streams: Streams, wanted: StreamRange, columns: tuple[str, ...], values: dict[str, Any]) -> None:
        self._streams = streams
        self._wanted = wanted
        self._columns = columns
        self._values = values
        self.rows = 0
        self.last_sequence = 0
        # Whether everything came; else why it ended.
        self.complete = False
        self.reason = ""

    def batches(self) -> "Iterator[pa.RecordBatch]":
        """Yield what the files have; `complete` tells afterwards whether that was all."""
        import pyarrow as pa

        bounds = {"start": self._wanted.start, "end": self._wanted.end}
        try:
            pieces = self._streams.ask(f"STREAM.SCAN.FILES.{self._wanted.stream}", bounds)["pieces"]
            reader = StoreReader(json.dumps({"pieces": pieces, **self._options()}).encode())
            while found := reader.read():
                for one in found:
                    batch = pa.record_batch(one)
                    self.rows += batch.num_rows
                    # Counts only returned rows: rows still waiting for their batch when reading ends come again.
                    self.last_sequence = batch.column("sequence")[-1].as_py()
                    yield batch.select(list(self._columns))
            self.complete = True
        except (ClientError, EngineError, KeyError) as error:
            self.reason = str(error)

    def _options(self) -> dict[str, Any]:
        columns = list(self._columns)
        return {
            "stream": self._wanted.stream,
            "columns": columns if "sequence" in columns else [*columns, "sequence"],
            "subjects": list(self._values["subjects"]),
            "decompress": "" if self._values["decompress"] == "none" else self._values["decompress"],
            "bad_payload": self._values["badPayload"],
        }
