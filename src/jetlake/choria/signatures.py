"""Signatures: whether a message comes from the node that it names.

Version 1 is signed with the key of a certificate (RSA, PKCS #1 v1.5, SHA-256), which must be issued by an authority
that is trusted and carry the sender's name. Version 2 is signed with an Ed25519 key that a token names, and the token
by an issuer that is trusted.

```python
verifier = Verifier(authority_pem=Path("ca.pem").read_bytes())
verifier.check(parse(payload, "request", keep_signature=True))
```

Invariant: `check` returns only when the signature is good, the proof is trusted and in force, and the names agree.
"""

import base64
import json
import time
from functools import lru_cache
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from jetlake.choria.envelopes import EnvelopeError, Received, Signed
from jetlake.errors import ConfigurationError

__all__ = ["Verifier"]

PROOFS_KEPT_MAX = 16_384
"""Certificates and tokens whose issuer has been checked: one for each node of a large fleet."""

ED25519_KEY_BYTES = 32

NODE_PURPOSES = ("choria_server", "choria_client_id")
"""Tokens that may sign requests."""


class _Proof:
    """A certificate or token that is trusted: its key, whom it names, and until when."""

    def __init__(self, key: RSAPublicKey | Ed25519PublicKey, names: frozenset[str], from_s: float, to_s: float) -> None:
        self.key = key
        self.names = names
        self.from_s = from_s
        self.to_s = to_s


class Verifier:
    """Checks messages against what is trusted: authorities in PEM, issuers as Ed25519 keys in hexadecimal."""

    def __init__(self, *, authority_pem: bytes = b"", issuers: tuple[str, ...] = ()) -> None:
        try:
            self._authorities = x509.load_pem_x509_certificates(authority_pem) if authority_pem else []
        except ValueError as error:
            raise ConfigurationError(f"the authorities cannot be read: {error}; they must be PEM") from error
        self._issuers = [_issuer_key(text) for text in issuers]
        if not self._authorities and not self._issuers:
            raise ConfigurationError("signatures cannot be checked: name an authority (ca) or an issuer")
        # One cache for each verifier: what one trusts another does not.
        self._certificate = lru_cache(maxsize=PROOFS_KEPT_MAX)(self._read_certificate)
        self._token = lru_cache(maxsize=PROOFS_KEPT_MAX)(self._read_token)

    def check(self, received: Received, now_s: float | None = None) -> None:
        """Raise `EnvelopeError` unless the sender has signed the message."""
        signed = received.signed
        if signed is None or not signed.signature:
            raise EnvelopeError("the message is not signed")
        proof = self._certificate(signed.proof) if signed.version == 1 else self._token(signed.signer or signed.proof)
        now_s = time.time() if now_s is None else now_s
        if not proof.from_s <= now_s <= proof.to_s:
            raise EnvelopeError("the certificate or token of the sender is not valid at this time")
        # A delegated signer vouches for others; that is its purpose.
        if not signed.signer and received.sender not in proof.names:
            raise EnvelopeError(
                f"signed by {', '.join(sorted(proof.names)) or 'nobody with a name'}, not by {received.sender!r}"
            )
        _check_signature(proof.key, signed)

    def _read_certificate(self, pem: str) -> _Proof:
        if not self._authorities:
            raise EnvelopeError("signed with a certificate, and no authority is trusted")
        try:
            certificate = x509.load_pem_x509_certificate(pem.encode())
        except ValueError as error:
            raise EnvelopeError("the certificate of the sender cannot be read") from error
        if not any(_is_issued_by(certificate, authority) for authority in self._authorities):
            raise EnvelopeError("the certificate of the sender is not issued by a trusted authority")
        key = certificate.public_key()
        if not isinstance(key, RSAPublicKey):
            raise EnvelopeError("the certificate of the sender has no RSA key")
        return _Proof(
            key,
            _names_of(certificate),
            certificate.not_valid_before_utc.timestamp(),
            certificate.not_valid_after_utc.timestamp(),
        )

    def _read_token(self, token: str) -> _Proof:
        if not self._issuers:
            raise EnvelopeError("signed with a token, and no issuer is trusted")
        try:
            header_text, claims_text, signature_text = token.split(".")
            header, claims = _json_part(header_text), _json_part(claims_text)
            signature = _url_bytes(signature_text)
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(str(claims["public_key"])))
        except (ValueError, KeyError, RecursionError) as error:
            raise EnvelopeError("the token of the sender cannot be read") from error
        if header.get("alg") != "EdDSA":
            raise EnvelopeError("the token of the sender is not signed with Ed25519")
        signed = f"{header_text}.{claims_text}".encode()
        if not any(_verifies(issuer, signature, signed) for issuer in self._issuers):
            raise EnvelopeError("the token of the sender is not signed by a trusted issuer")
        if claims.get("purpose") not in NODE_PURPOSES:
            raise EnvelopeError(f"a token with the purpose {str(claims.get('purpose'))[:40]!r} may not sign messages")
        names = frozenset(str(claims[field]) for field in ("identity", "callerid") if claims.get(field))
        return _Proof(key, names, _seconds(claims.get("nbf"), 0.0), _seconds(claims.get("exp"), float("inf")))


def _check_signature(key: RSAPublicKey | Ed25519PublicKey, signed: Signed) -> None:
    try:
        if isinstance(key, RSAPublicKey):
            key.verify(signed.signature, signed.content, PKCS1v15(), SHA256())
        else:
            key.verify(signed.signature, signed.content)
    except InvalidSignature as error:
        raise EnvelopeError("the signature does not match the message") from error


def _is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _names_of(certificate: x509.Certificate) -> frozenset[str]:
    common = [str(name.value) for name in certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = alternative.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        names = []
    return frozenset([*common, *names])


def _verifies(issuer: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    try:
        issuer.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _issuer_key(text: str) -> Ed25519PublicKey:
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(text))
    except ValueError as error:
        raise ConfigurationError(
            f"the issuer {text!r} is not an Ed25519 key: give {ED25519_KEY_BYTES} bytes in hexadecimal"
        ) from error


def _json_part(text: str) -> dict[str, Any]:
    value = json.loads(_url_bytes(text))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _url_bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _seconds(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default
