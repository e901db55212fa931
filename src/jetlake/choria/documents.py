"""Output documents: what an adapter publishes for each message it has received.

```json
{"protocol":"choria:adapters:jetstream:output:1","data":"…","sender":"web1.ldn.example.net","time":"2018-03-03T14:49:17Z","requestid":"…"}
```

The published schema gives `time` as an integer, while the original and its documentation write RFC 3339; so do we.
Pure functions, shared by the adapter and the Spark pipeline.
"""

import hashlib
from typing import Literal, TypeAlias

import msgspec

from jetlake.choria.envelopes import EnvelopeError, Received

__all__ = ["Kind", "OutputDocument", "document_of", "encode", "header_id_of", "message_id_of", "output_protocol"]

Kind: TypeAlias = Literal["jetstream", "choria_streams"]

MESSAGE_ID_LETTERS_MAX = 256
"""Of an id in a header; a longer one, or one with odd characters, is replaced by its digest."""

KINDS: tuple[Kind, ...] = ("jetstream", "choria_streams")


class OutputDocument(msgspec.Struct, frozen=True, gc=False):
    """The document, its fields in the order in which they are written."""

    protocol: str
    data: str
    sender: str
    time: str
    requestid: str


_encode = msgspec.json.Encoder().encode


def output_protocol(kind: Kind) -> str:
    """Return the protocol that documents of a kind of adapter name."""
    return f"choria:adapters:{kind}:output:1"


def document_of(received: Received, protocol: str) -> OutputDocument:
    """Return the document for a message; `protocol` is what `output_protocol` returns."""
    return OutputDocument(protocol, received.data, received.sender, received.time, received.request_id)


def encode(received: Received, protocol: str) -> bytes:
    """Return the document for a message as JSON. Raises `EnvelopeError` for text that JSON cannot carry."""
    try:
        return _encode(document_of(received, protocol))
    except UnicodeEncodeError as error:
        raise EnvelopeError("the body has half a surrogate pair, which no JSON document can repeat") from error


def message_id_of(received: Received) -> str:
    """Return the id by which a stream finds a document that was published twice.

    Replies of many nodes share the id of the request they answer, so the sender is part of it.
    """
    return f"{received.request_id}.{received.sender}"


def header_id_of(received: Received) -> str:
    """Return the same id as a header can have it: in one line, not too long."""
    message_id = message_id_of(received)
    if len(message_id) > MESSAGE_ID_LETTERS_MAX or not message_id.isascii() or not message_id.isprintable():
        return hashlib.sha256(message_id.encode(errors="surrogatepass")).hexdigest()
    return message_id
