"""What a client shows of itself in CONNECT: a user with password, a token, a key, or a credentials file.

A seed is base32 of two bytes of prefix, the 32 bytes of an ed25519 key and a checksum; the server sends a nonce, and
what proves the key is the signature of it. The seed never leaves this process.

Invariant: at most one way of authenticating is in a `Credentials`; two of them are refused when it is made.
"""

import base64
import binascii
import re
from pathlib import Path

import msgspec

from jetlake.errors import ConfigurationError, reason_of

__all__ = ["Credentials"]

SEED_PREFIX = 18 << 3
USER_PREFIX = 20 << 3
KEY_BYTES = 32

CREDENTIALS_BYTES_MAX = 64 * 1024
"""A file larger than this holds no token and key of a user."""

_BLOCK = re.compile(r"-{3,}BEGIN ([A-Z ]+)-{3,}\s*([A-Za-z0-9_\-.=]+)\s*-{3,}END [A-Z ]+-{3,}")


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """How to authenticate; everything empty is a client without a name.

    `nkey_seed` is the seed itself or a file with it, `credentials_file` what `nsc` and its relatives write.
    """

    user: str = ""
    password: str = ""
    token: str = ""
    nkey_seed: str = ""
    credentials_file: str = ""

    def __post_init__(self) -> None:
        given = [
            name
            for name, value in (
                ("user", self.user),
                ("token", self.token),
                ("nkeySeed", self.nkey_seed),
                ("credentialsFile", self.credentials_file),
            )
            if value
        ]
        if len(given) > 1:
            raise ConfigurationError(f"{' and '.join(given)} are both given: authenticate in one way")

    def connect_fields(self, nonce: str) -> dict[str, str]:
        """Return the fields of CONNECT, with the nonce signed where there is a key. Raises `ConfigurationError`."""
        if self.token:
            return {"auth_token": self.token}
        if self.user:
            return {"user": self.user, "pass": self.password}
        if self.credentials_file:
            blocks = dict(_BLOCK.findall(read_secret(self.credentials_file)))
            token = blocks.get("NATS USER JWT")
            seed = blocks.get("USER NKEY SEED")
            if not token or not seed:
                raise ConfigurationError(
                    f"{self.credentials_file} holds no user token and seed: give a file as `nsc` writes it"
                )
            return {"jwt": token, "sig": sign(seed, nonce)}
        if self.nkey_seed:
            seed = self.nkey_seed.strip() if looks_like_a_seed(self.nkey_seed) else seed_in(self.nkey_seed)
            return {"nkey": public_key(seed), "sig": sign(seed, nonce)}
        return {}


def looks_like_a_seed(text: str) -> bool:
    return text.strip().startswith("SU") and "/" not in text and "." not in text


def seed_in(path: str) -> str:
    """Return the seed in a file, alone on a line or between the lines of a credentials file."""
    for line in read_secret(path).splitlines():
        if looks_like_a_seed(line):
            return line.strip()
    raise ConfigurationError(f"{path} holds no seed of a user: one begins with SU")


def read_secret(path: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            return file.read(CREDENTIALS_BYTES_MAX).decode(errors="replace")
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {reason_of(error)}; it must be there on every machine that connects"
        ) from error


def sign(seed: str, nonce: str) -> str:
    """Return the signature of a nonce as CONNECT wants it."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signature = Ed25519PrivateKey.from_private_bytes(key_of(seed)).sign(nonce.encode())
    return base64.urlsafe_b64encode(signature).rstrip(b"=").decode()


def public_key(seed: str) -> str:
    """Return the public key that belongs to a seed, as text beginning with U."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    raw = Ed25519PrivateKey.from_private_bytes(key_of(seed)).public_key().public_bytes_raw()
    body = bytes([USER_PREFIX]) + raw
    return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).rstrip(b"=").decode()


def key_of(seed: str) -> bytes:
    """Return the 32 bytes in a seed. Raises `ConfigurationError`; the seed is in no message."""
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    body, checksum = raw[:-2], int.from_bytes(raw[-2:], "little")
    right = (
        len(body) == 2 + KEY_BYTES
        and body[0] & 0xF8 == SEED_PREFIX
        and ((body[0] & 0x07) << 5 | body[1] >> 3) == USER_PREFIX
        and binascii.crc_hqx(body, 0) == checksum
    )
    if not right:
        raise ConfigurationError("the seed is none of a user: one begins with SU and has 58 letters")
    return body[2:]
