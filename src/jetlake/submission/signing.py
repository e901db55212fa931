"""Signatures of submitted messages, as Choria makes them: ed25519 over the payload, with the signer's token.

Invariant: the seed is read once, when the sender starts, and never shown.
"""

from pathlib import Path

from jetlake.errors import ConfigurationError, reason_of

SEED_BYTES = 32


class Signer:
    """A seed and the token that belongs to it."""

    def __init__(self, seed: bytes, token: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self._token = token

    @classmethod
    def from_files(cls, seed_file: Path, token_file: Path | None) -> "Signer":
        """Read a file with a seed in hexadecimal, as Choria writes it, and a JWT. Raises `ConfigurationError`."""
        try:
            seed = bytes.fromhex(seed_file.read_text(encoding="ascii").strip())
            token = token_file.read_text(encoding="ascii").strip() if token_file is not None else ""
        except OSError as error:
            raise ConfigurationError(f"{error.filename} cannot be read: {reason_of(error)}") from error
        except ValueError as error:
            raise ConfigurationError(
                f"{seed_file} is not a seed: it must be {SEED_BYTES} bytes in hexadecimal"
            ) from error
        if len(seed) != SEED_BYTES:
            raise ConfigurationError(f"{seed_file} has a seed of {len(seed)} bytes: {SEED_BYTES} are needed")
        return cls(seed, token)

    def headers_for(self, payload: bytes) -> dict[str, str]:
        """Return the headers that sign a payload."""
        signature = self._key.sign(payload).hex()
        return {"Choria-Signature": signature, **({"Choria-Token": self._token} if self._token else {})}
