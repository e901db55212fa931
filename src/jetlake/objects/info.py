"""`ObjectInfo`: what is known about an object, as every NATS client stores it.

Invariant: `ObjectInfo.read(info.stored())` is the same information, except for the time, which is the server's.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any

import msgspec

from jetlake.client.timestamps import datetime_of
from jetlake.errors import ClientError

__all__ = ["Link", "ObjectInfo", "shown_digest"]

DIGEST_PREFIX = "SHA-256="


class Link(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a link leads: an object of a store, or a whole store."""

    bucket: str
    name: str = ""


class _Options(msgspec.Struct, frozen=True, omit_defaults=True):
    link: Link | None = None
    max_chunk_size: int = 0


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON in the stream; some clients write null for what they have not."""

    name: str
    bucket: str = ""
    nuid: str | None = ""
    size: int | None = 0
    chunks: int | None = 0
    digest: str | None = ""
    deleted: bool | None = False
    description: str | None = ""
    headers: dict[str, Any] | None = None
    metadata: dict[str, str] | None = None
    options: _Options | None = None


class ObjectInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about an object."""

    name: str
    bucket: str
    # Names this version of the contents; another put makes another one.
    nuid: str = ""
    size: int = 0
    chunks: int = 0
    # As `SHA-256=` and the digest in base64; empty for links and deleted objects.
    digest: str = ""
    deleted: bool = False
    description: str = ""
    headers: dict[str, list[str]] = {}
    metadata: dict[str, str] = {}
    chunk_bytes: int = 0
    link: Link | None = None
    # When the server stored this, in nanoseconds since 1970; 0 = it has not yet.
    modified_ns: int = 0
    # Its sequence in the stream.
    revision: int = 0

    @property
    def modified(self) -> datetime:
        """When the server stored this, in UTC."""
        return datetime_of(self.modified_ns)

    @property
    def is_link(self) -> bool:
        return self.link is not None

    def stored(self) -> bytes:
        """Return the JSON that is stored; the time is never part of it."""
        fields: dict[str, Any] = {
            "name": self.name,
            "bucket": self.bucket,
            "nuid": self.nuid,
            "size": self.size,
            "chunks": self.chunks,
        }
        optional = {
            "digest": self.digest,
            "deleted": self.deleted,
            "description": self.description,
            "headers": self.headers,
            "metadata": self.metadata,
        }
        fields |= {name: value for name, value in optional.items() if value}
        if self.link or self.chunk_bytes:
            fields["options"] = _Options(self.link, self.chunk_bytes)
        return msgspec.json.encode(fields)

    @classmethod
    def read(cls, data: bytes, *, modified_ns: int = 0, revision: int = 0) -> "ObjectInfo":
        """Return what is stored about an object. Raises `ClientError`."""
        try:
            stored = msgspec.json.decode(data, type=_Stored)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"the description of an object cannot be read: {error}") from error
        options = stored.options or _Options()
        return cls(
            name=stored.name,
            bucket=stored.bucket,
            nuid=stored.nuid or "",
            size=stored.size or 0,
            chunks=stored.chunks or 0,
            digest=stored.digest or "",
            deleted=bool(stored.deleted),
            description=stored.description or "",
            headers={
                name: [str(value) for value in values] if isinstance(values, list) else [str(values)]
                for name, values in (stored.headers or {}).items()
            },
            metadata=stored.metadata or {},
            chunk_bytes=options.max_chunk_size,
            link=options.link,
            modified_ns=modified_ns,
            revision=revision,
        )

    def has_digest(self, digest: bytes) -> bool:
        """Tell whether the contents have the digest that is stored; one of another kind is not compared."""
        kind, separator, text = self.digest.partition("=")
        if not separator or kind.upper() != DIGEST_PREFIX[:-1]:
            return True
        try:
            # Some clients leave the padding out.
            return urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)) == digest
        except ValueError:
            return False


def shown_digest(digest: bytes) -> str:
    """Return a digest as it is stored."""
    return DIGEST_PREFIX + urlsafe_b64encode(digest).decode()
