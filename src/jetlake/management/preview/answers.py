"""Answers as they were: `+OK`, `-ERR` with a reason, or JSON indented by two spaces."""

import json
from typing import Any

from jetlake.management.streams.dialect import OF_2019

OK = b"+OK"


class PreviewError(Exception):
    """Is raised when a request is refused for a reason that only the old dialects know; its text is the reason."""


def failure(text: str, dialect: str) -> bytes:
    """Return the answer to a request that was refused."""
    return (f"-ERR {text}" if dialect == OF_2019 else f"-ERR '{text}'").encode()


def document(value: Any) -> bytes:
    """Return the JSON of an answer, whose objects are in order already."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode()
