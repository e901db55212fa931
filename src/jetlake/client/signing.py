"""`SigningClient`: nats-py's client for users with keys, with `cryptography` in place of a library more.

Invariant: a seed is read again for each signature and kept nowhere.
"""

import base64
from pathlib import Path

from jetlake.client.guarded import GuardedClient
from jetlake.client.user_keys import UserKey, read_jwt, read_seed


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
            self._public_nkey = self._key().public_text
        else:
            read_jwt(path)

    def sign(self, nonce: str) -> bytes:
        """Return the signature of a server's nonce, in the alphabet nats-py sends."""
        text = self._key().sign(nonce)
        return base64.b64encode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def jwt(self) -> bytearray:
        """Return the user's JWT, as it is in the file now."""
        return bytearray(read_jwt(self._signing_path).encode())

    def _key(self) -> UserKey:
        return UserKey(read_seed(self._signing_path), f"the seed in {self._signing_path}")
