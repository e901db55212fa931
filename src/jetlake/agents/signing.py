"""How a node signs its requests: with the key of its certificate (version 1), or with a token's key (version 2).

A node without keys sends requests that are marked as insecure; an adapter that checks signatures refuses them.
"""

import base64
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from jetlake.agents.options import NodeOptions
from jetlake.choria.envelopes import RequestSigner
from jetlake.errors import ConfigurationError, reason_of

__all__ = ["signer_of"]

SEED_BYTES = 32


class CertificateSigner(RequestSigner):
    """Signs with RSA; the proof is the certificate."""

    version = 1

    def __init__(self, certificate: str, key: RSAPrivateKey) -> None:
        self.proof = certificate
        self._key = key

    def sign(self, content: bytes) -> bytes:
        return self._key.sign(content, PKCS1v15(), hashes.SHA256())


class TokenSigner(RequestSigner):
    """Signs with Ed25519; the proof is the token."""

    version = 2

    def __init__(self, token: str, key: Ed25519PrivateKey) -> None:
        self.proof = token
        self._key = key

    def sign(self, content: bytes) -> bytes:
        return self._key.sign(content)


def signer_of(options: NodeOptions) -> CertificateSigner | TokenSigner | None:
    """Return how this node signs; None = it does not. Raises `ConfigurationError`."""
    if options.token_file:
        return TokenSigner(_read(options.token_file).decode().strip(), _seed(_read(options.seed_file)))
    if not options.certificate_file:
        return None
    try:
        key = serialization.load_pem_private_key(_read(options.key_file), None)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"the key in {options.key_file} cannot be read: {error}; it must be PEM") from error
    if not isinstance(key, RSAPrivateKey):
        raise ConfigurationError(f"the key in {options.key_file} is not an RSA key, which requests are signed with")
    return CertificateSigner(_read(options.certificate_file).decode(), key)


def _seed(content: bytes) -> Ed25519PrivateKey:
    """Choria keeps seeds as hexadecimal text."""
    text = content.strip()
    try:
        seed = bytes.fromhex(text.decode())
    except ValueError:
        seed = base64.b64decode(text) if len(text) == 44 else content
    if len(seed) != SEED_BYTES:
        raise ConfigurationError(f"the seed has {len(seed)} bytes: {SEED_BYTES} in hexadecimal are needed")
    return Ed25519PrivateKey.from_private_bytes(seed)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {reason_of(error)}; check the path") from error
