"""Keys of a user: where the seed is found, its public key, and the signature of a server's nonce.

A seed as text is base32, without padding, of two bytes that say what it is for, the 32 bytes of an ed25519 key and a
checksum. A credentials file holds a user's JWT and the seed of its key between lines of dashes. Whatever is wrong with
one is a `ConfigurationError` that names the file and shows nothing of it.

Invariant: a seed leaves this process in no form but that of a signature.
"""

import base64
import binascii
from pathlib import Path

from jetlake.errors import ConfigurationError, reason_of
from jetlake.shared.credentials import find_seed, find_user_jwt

__all__ = ["UserKey", "read_jwt", "read_seed"]

SECRET_BYTES_MAX = 64 * 1024
"""A file larger than this holds no credentials of a user."""

KEY_BYTES = 32
SEED_PREFIX = 18 << 3
USER_PREFIX = 20 << 3
"""Makes the first letter of a user's public key a U, and the second of a seed."""


class UserKey:
    """The key that belongs to a seed; `where` names the seed in complaints. Raises `ConfigurationError`."""

    def __init__(self, seed: str, where: str = "the seed") -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key: Ed25519PrivateKey = Ed25519PrivateKey.from_private_bytes(_bytes_of(seed, where))

    @property
    def public_text(self) -> str:
        """The public key as text: U and 55 letters more."""
        body = bytes([USER_PREFIX]) + self._key.public_key().public_bytes_raw()
        return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).decode().rstrip("=")

    def sign(self, nonce: str) -> str:
        """Return the signature of a server's nonce, as CONNECT has it."""
        return base64.urlsafe_b64encode(self._key.sign(nonce.encode())).decode().rstrip("=")


def read_seed(path: Path) -> str:
    """Return the seed in a file, be it alone there or in a credentials file."""
    seed = find_seed(_read(path))
    if seed is None:
        raise ConfigurationError(f"{path} holds no seed of a user's key: 58 letters and digits that begin with SU")
    return seed


def read_jwt(path: Path) -> str:
    """Return the JWT in a credentials file."""
    jwt = find_user_jwt(_read(path))
    if jwt is None:
        raise ConfigurationError(
            f"{path} holds no user JWT: give a credentials file as `nsc` writes it, or a key file as a key"
        )
    return jwt


def _bytes_of(seed: str, where: str) -> bytes:
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    body, checksum = raw[:-2], int.from_bytes(raw[-2:], "little")
    if len(body) != 2 + KEY_BYTES or body[0] & 0xF8 != SEED_PREFIX:
        raise ConfigurationError(f"{where} is not the seed of a user's key: one has 58 letters and begins with SU")
    if binascii.crc_hqx(body, 0) != checksum:
        raise ConfigurationError(f"{where} is damaged: its checksum is wrong; copy it again")
    if (body[0] & 0x07) << 5 | body[1] >> 3 != USER_PREFIX:
        raise ConfigurationError(f"{where} is that of another kind of key: one of a user begins with SU")
    return body[2:]


def _read(path: Path) -> str:
    try:
        with path.expanduser().open("rb") as file:
            return file.read(SECRET_BYTES_MAX).decode(errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {reason_of(error)}; it must be there on every machine that connects"
        ) from error
