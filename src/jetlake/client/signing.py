"""Keys and credentials of a user: what signs the server's nonce when a connection is made.

A seed as text is base32, without padding, of two bytes that say what it is for, 32 bytes and a checksum. A credentials
file holds a user's JWT and the seed of its key between lines of dashes.

Invariant: a seed is read again for each signature and kept nowhere.
"""

import base64
import binascii
import re
from pathlib import Path
from typing import TYPE_CHECKING

from jetlake.client.guarded import GuardedClient
from jetlake.errors import ClientError, reason_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED_BYTES = 32
USER_PREFIX = 20 << 3
"""Makes the first letter of a user's public key a U."""

_SECTION = re.compile(r"-+BEGIN (?P<title>[A-Z ]+)-+\s+(?P<text>\S+)\s+-+END")
_SEED = re.compile(r"\bS[A-Z][A-Z2-7]{56}\b")


class SigningClient(GuardedClient):
    """A client that proves who it is by a signature, of a key alone or with a JWT."""

    def __init__(self, *, wants_tls: bool, credentials: Path | None = None, key: Path | None = None) -> None:
        super().__init__(wants_tls=wants_tls)
        path = credentials or key
        assert path is not None, "a signature needs a credentials file or a key file"
        # nats-py signs only what it was given itself, and that needs a library more than the one we have.
        self._auth_configured = True
        self._signing_path = path
        if credentials is None:
            self._public_nkey = public_key_of(_key_of(path))
        else:
            read_jwt(path)

    def sign(self, nonce: str) -> bytes:
        """Return the signature of a server's nonce."""
        return base64.b64encode(_key_of(self._signing_path).sign(nonce.encode()))

    def jwt(self) -> bytearray:
        """Return the user's JWT, as it is in the file now."""
        return bytearray(read_jwt(self._signing_path).encode())


def read_jwt(path: Path) -> str:
    """Return the JWT in a credentials file."""
    for section in _SECTION.finditer(_read(path)):
        if section["title"].endswith("USER JWT"):
            return section["text"]
    raise ClientError(f"{path} holds no user JWT: give a credentials file, or a key file with --nkey")


def public_key_of(key: "Ed25519PrivateKey") -> str:
    """Return a user's public key as text, U and 55 letters more."""
    body = bytes([USER_PREFIX]) + key.public_key().public_bytes_raw()
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")


def _key_of(path: Path) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    found = _SEED.search(_read(path))
    if found is None:
        raise ClientError(f"{path} holds no seed of a key: 58 letters and digits that begin with SU")
    raw = base64.b32decode(found[0] + "=" * (-len(found[0]) % 8))
    body, checksum = raw[:-2], int.from_bytes(raw[-2:], "little")
    if binascii.crc_hqx(body, 0) != checksum:
        raise ClientError(f"the seed in {path} is damaged: its checksum is wrong; copy it again")
    return Ed25519PrivateKey.from_private_bytes(body[2 : 2 + SEED_BYTES])


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is no text"
        raise ClientError(f"cannot read {path}: {reason}") from error
