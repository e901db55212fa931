"""The caller's identity, as the call gives it: the user's own NATS credentials.

| the caller sends                            | and is                                     |
|---------------------------------------------|--------------------------------------------|
| `authorization: Basic base64(user:secret)`  | that user                                  |
| `authorization: Bearer TOKEN`               | the user of that token                     |
| `nats-credentials-bin`, a file's bytes      | the user of a `.creds` file or of a seed   |
| nothing                                     | a client without a name, if the server has such |

Invariant: a call without credentials never uses those of the service.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from jetlake.errors import DeviceError

AUTHORIZATION = "authorization"
FILE = "nats-credentials-bin"
FILE_HTTP = "nats-credentials"
"""The same over HTTP, in base64."""

FILE_BYTES_MAX = 64 * 1024
"""A JWT has a few kilobytes."""

_JWT = b"BEGIN NATS USER JWT"


class UserCredentials(NamedTuple):
    """What a user shows to the server."""

    user: str | None = None
    password: str | None = None
    token: str | None = None
    # The content of a credentials file, or of one with a seed alone.
    file: bytes = b""

    @property
    def has_jwt(self) -> bool:
        return _JWT in self.file


def of_call(metadata: Mapping[str, Any]) -> UserCredentials:
    """Return the credentials in the metadata of a call. Raises `DeviceError`."""
    file = metadata.get(FILE, b"")
    if file:
        return _of_file(file if isinstance(file, bytes) else str(file).encode())
    if FILE_HTTP in metadata:
        return _of_file(_decoded(str(metadata[FILE_HTTP]), FILE_HTTP))
    return _of_authorization(str(metadata.get(AUTHORIZATION, "")))


def _of_authorization(text: str) -> UserCredentials:
    if not text:
        return UserCredentials()
    scheme, _, value = text.partition(" ")
    match scheme.lower():
        case "bearer" if value.strip():
            return UserCredentials(token=value.strip())
        case "basic":
            try:
                user, separator, password = _decoded(value.strip(), AUTHORIZATION).decode().partition(":")
            except UnicodeDecodeError as error:
                raise _refusal("Basic needs base64 of user:password in UTF-8") from error
            if separator:
                return UserCredentials(user=user, password=password)
        case _:
            pass
    raise _refusal("write `Basic` with base64 of user:password, or `Bearer` with a token")


def _of_file(content: bytes) -> UserCredentials:
    if len(content) > FILE_BYTES_MAX:
        raise _refusal(f"a credentials file has at most {FILE_BYTES_MAX:,} bytes")
    return UserCredentials(file=content)


def _decoded(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _refusal(f"{name} is not base64") from error


def _refusal(reason: str) -> DeviceError:
    return DeviceError("UNAUTHENTICATED", f"the credentials cannot be read: {reason}")
