"""The alternative names of a certificate, read from its bytes: for those that `cryptography` does not read.

It refuses a whole list of names if one of them is an X.400 address or the name of an EDI party. nats-server passes over
these, as it does over all kinds that say nothing about users, and so does this module.

```text
TBSCertificate = SEQUENCE { …, [3] SEQUENCE OF Extension }
Extension      = SEQUENCE { OBJECT IDENTIFIER, BOOLEAN (optional), OCTET STRING of the value }
SubjectAltName = SEQUENCE OF [kind] name
```
"""

from collections.abc import Iterator

SEQUENCE, OBJECT_IDENTIFIER, OCTET_STRING = 0x30, 0x06, 0x04
EXTENSIONS = 0xA3
EMAIL, DNS, URI = 0x81, 0x82, 0x86

SUBJECT_ALTERNATIVE_NAME = bytes.fromhex("551d11")
"""The object identifier 2.5.29.17."""

LONG_TAG = 0x1F
"""Announces a tag of several bytes, which no certificate has."""

LENGTH_BYTES_MAX = 4
"""No certificate of a handshake is longer than three bytes can say."""


def read_alternative_names(certificate: bytes) -> list[str]:
    """Return e-mail addresses, DNS names and URIs, in this order. `certificate` is the part of it that is signed.

    Raises `ValueError` if it is damaged.
    """
    names: dict[int, list[str]] = {EMAIL: [], DNS: [], URI: []}
    for tag, content in _parts_of(_only(certificate, SEQUENCE)):
        for extension in _extensions_in(content) if tag == EXTENSIONS else ():
            for kind, name in _parts_of(_only(extension, SEQUENCE)):
                if kind in names:
                    names[kind].append(name.decode("ascii"))
    return [*names[EMAIL], *names[DNS], *names[URI]]


def _extensions_in(content: bytes) -> Iterator[bytes]:
    """Yield the values of the extensions that hold alternative names."""
    for tag, extension in _parts_of(_only(content, SEQUENCE)):
        parts = list(_parts_of(extension))
        if tag != SEQUENCE or len(parts) < 2 or parts[-1][0] != OCTET_STRING:
            raise ValueError("this is not an extension")
        if parts[0] == (OBJECT_IDENTIFIER, SUBJECT_ALTERNATIVE_NAME):
            yield parts[-1][1]


def _only(content: bytes, wanted: int) -> bytes:
    """Return the content of the one part that there is."""
    ((tag, inner),) = _parts_of(content)
    if tag != wanted:
        raise ValueError(f"the part has the tag {tag}, and not {wanted}")
    return inner


def _parts_of(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tag and the content of each part, one after the other."""
    position = 0
    while position < len(content):
        header = content[position : position + 2]
        if len(header) < 2 or header[0] & LONG_TAG == LONG_TAG:
            raise ValueError("the header of a part is damaged")
        length, position = header[1], position + 2
        if length >= 0x80:
            count = length - 0x80
            written = content[position : position + count]
            if not 0 < len(written) == count <= LENGTH_BYTES_MAX:
                raise ValueError("the length of a part is damaged")
            length, position = int.from_bytes(written, "big"), position + count
        if len(content) - position < length:
            raise ValueError("a part is longer than what is there")
        yield header[0], content[position : position + length]
        position += length
