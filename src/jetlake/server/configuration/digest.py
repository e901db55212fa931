"""The digest of a configuration: the same SHA-256 that nats-server computes over the same content.

It is taken over the values, not the files: comments, order and layout do not count. nats-server hashes its parsed maps
as Go writes them in JSON - keys sorted by their bytes, `<`, `>` and `&` escaped, a newline at the end - so we write the
same bytes.
"""

import hashlib

import msgspec

from jetlake.server.configuration.document import ConfigurationNode, Data, DateLiteral

GO_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})

GO_EXPONENT_FROM = 1e21
"""Below this, Go writes a whole number without a point and without an exponent."""


def digest_of(document: ConfigurationNode) -> str:
    """Return `sha256:` and the digest in hexadecimal."""
    return "sha256:" + hashlib.sha256(f"{_as_json(document.data)}\n".encode()).hexdigest()


def _as_json(data: Data) -> str:
    if isinstance(data, dict):
        ordered = sorted(data.items(), key=lambda entry: entry[0].encode())
        return "{" + ",".join(f"{_text_as_json(key)}:{_as_json(node.data)}" for key, node in ordered) + "}"
    if isinstance(data, list):
        return "[" + ",".join(_as_json(node.data) for node in data) + "]"
    if isinstance(data, DateLiteral):
        return f'"{data.text}"'
    if isinstance(data, str):
        return _text_as_json(data)
    if isinstance(data, float) and data.is_integer() and abs(data) < GO_EXPONENT_FROM:
        return str(int(data))
    return msgspec.json.encode(data).decode()


def _text_as_json(text: str) -> str:
    return msgspec.json.encode(text).decode().translate(GO_ESCAPES)
