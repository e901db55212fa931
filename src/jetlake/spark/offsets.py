"""Where a query stands: for each stream the next sequence to read, and when the stream was made.

Spark keeps offsets as JSON text and compares the text, so the same position must always be the same text: sorted keys,
numbers as integers.

Invariant: `from_json(offset.to_json()) == offset`, and a batch is the half-open range from one offset to the next.
"""

from typing import Any

import msgspec

from jetlake.errors import ConfigurationError

__all__ = ["Offset", "StreamPosition"]

VERSION = 1


class StreamPosition(msgspec.Struct, frozen=True):
    """The position in one stream. `created` is the server's word for when the stream was made.

    `parts` is into how many tasks the batch that ends here was split. It is kept because a batch that is repeated, on
    another machine or with other options, must be split in the same way: the ids of the sink are made per task.
    """

    created: str
    next: int
    parts: int = 1


class Offset(msgspec.Struct, frozen=True):
    """The positions in all streams of a query."""

    streams: dict[str, StreamPosition]

    def to_json(self) -> dict[str, Any]:
        """Return what Spark keeps."""
        positions = {
            name: {"created": position.created, "next": position.next, "parts": position.parts}
            for name, position in sorted(self.streams.items())
        }
        return {"streams": positions, "v": VERSION}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> "Offset":
        """Return the offset that Spark kept. Raises `ConfigurationError`."""
        if kept.get("v") != VERSION:
            raise ConfigurationError(
                f"the checkpoint has offsets of version {kept.get('v')!r} and this Jetlake reads version {VERSION}: "
                "use the version that wrote it, or begin with a new checkpoint"
            )
        try:
            return cls(msgspec.convert(kept["streams"], dict[str, StreamPosition]))
        except (KeyError, msgspec.ValidationError) as error:
            raise ConfigurationError(f"the checkpoint's offset is not one of Jetlake: {error}") from error
