"""`Stream`: one stream as it is kept, and its definition as the engine keeps it."""

import msgspec

from jetlake.management.streams.config import StreamConfig
from jetlake.management.wire.json_dialect import write_json


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """One stream as it is kept."""

    config: StreamConfig
    # As it stands in answers.
    created: str

    @property
    def definition(self) -> bytes:
        """What the engine keeps."""
        return write_json({"config": self.config.to_json(), "created": self.created})
