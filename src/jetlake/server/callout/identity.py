"""`Identity`: the keys a server signs requests and decrypts answers with, new with each start.

```python
identity = Identity(engine.server_seed)
identity.sign(b"…")                       # as the server that `identity.server_key` names, which is its id
identity.seal(payload, recipient="X…")    # for the holder of that curve key alone
identity.open(sealed, sender="X…")        # raises UnreadableAnswerError
```

A sealed text is the word `xkv1`, 24 random bytes, and a box of NaCl: X25519, XSalsa20 and Poly1305.

Invariant: private keys do not leave this object.
"""

import secrets

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from jetlake.server import nkeys

SEAL_VERSION = b"xkv1"
NONCE_BYTES = 24


class UnreadableAnswerError(Exception):
    """A text that was not sealed for this server by that sender; the message says why."""


class Identity:
    """The keys of one server. Any thread may call."""

    def __init__(self, seed: bytes) -> None:
        self._signing_key = Ed25519PrivateKey.from_private_bytes(seed)
        public = self._signing_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.server_key = nkeys.encode_public_key(nkeys.SERVER_PREFIX, public)
        self._curve_key = secrets.token_bytes(nkeys.KEY_BYTES)

    @property
    def curve_key(self) -> str:
        """The public key that answers are sealed for."""
        # Only servers whose service encrypts pay for loading the library, here and below.
        from nacl.bindings import crypto_scalarmult_base

        return nkeys.encode_public_key(nkeys.CURVE_PREFIX, crypto_scalarmult_base(self._curve_key))

    def sign(self, message: bytes) -> bytes:
        return self._signing_key.sign(message)

    def seal(self, message: bytes, recipient: str) -> bytes:
        """Return a message as only the holder of this public curve key can read it. Raises `UnreadableAnswerError`."""
        from nacl.bindings import crypto_box
        from nacl.exceptions import CryptoError

        nonce = secrets.token_bytes(NONCE_BYTES)
        try:
            return SEAL_VERSION + nonce + crypto_box(message, nonce, _raw(recipient), self._curve_key)
        except CryptoError as error:
            # A key may be well-formed and so chosen that everybody could read what is sealed for it.
            raise UnreadableAnswerError(f'nothing can be sealed for the curve key "{recipient}"') from error

    def open(self, sealed: bytes, sender: str) -> bytes:
        """Return a message that the holder of this public curve key has sealed. Raises `UnreadableAnswerError`."""
        from nacl.bindings import crypto_box_open
        from nacl.exceptions import CryptoError

        version, rest = sealed[: len(SEAL_VERSION)], sealed[len(SEAL_VERSION) :]
        if version != SEAL_VERSION or len(rest) <= NONCE_BYTES:
            raise UnreadableAnswerError("it is neither a token nor encrypted in the way of nkeys")
        try:
            return crypto_box_open(rest[NONCE_BYTES:], rest[:NONCE_BYTES], _raw(sender), self._curve_key)
        except CryptoError as error:
            raise UnreadableAnswerError("it was not encrypted by the configured xkey for this server") from error


def _raw(public_key: str) -> bytes:
    key = nkeys.decode_public_key(public_key, nkeys.CURVE_PREFIX)
    if key is None:
        raise UnreadableAnswerError(f'"{public_key}" is not a public curve key')
    return key
