"""Keys of tests: an authority with certificates of nodes, and tokens."""

import base64
import json
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

from jetlake.choria.envelopes import RequestSigner

DAY = timedelta(days=1)


class Authority:
    """Issues certificates."""

    def __init__(self, name="Test CA"):
        self.key = rsa.generate_private_key(65537, 2048)
        self.name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self.certificate = self._issue(self.name, self.key.public_key())

    @property
    def pem(self):
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def node(self, name, *, days=1):
        key = rsa.generate_private_key(65537, 2048)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        return CertificateSigner(key, self._issue(subject, key.public_key(), days))

    def _issue(self, subject, key, days=1):
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * DAY)
            .not_valid_after(now + days * DAY)
            .sign(self.key, hashes.SHA256())
        )


class CertificateSigner(RequestSigner):
    """Signs as a node with a certificate does."""

    def __init__(self, key, certificate):
        self.key = key
        self.proof = certificate.public_bytes(serialization.Encoding.PEM).decode()

    def sign(self, content):
        return self.key.sign(content, padding.PKCS1v15(), hashes.SHA256())


class Issuer:
    """Signs tokens."""

    def __init__(self):
        self.key = ed25519.Ed25519PrivateKey.generate()

    @property
    def hex(self):
        return self.key.public_key().public_bytes_raw().hex()

    def node(self, name, *, purpose="choria_server", seconds=3600):
        key = ed25519.Ed25519PrivateKey.generate()
        claims = {
            "identity": name,
            "purpose": purpose,
            "public_key": key.public_key().public_bytes_raw().hex(),
            "exp": int(time.time()) + seconds,
        }
        head = f"{part({'alg': 'EdDSA', 'typ': 'JWT'})}.{part(claims)}"
        signature = base64.urlsafe_b64encode(self.key.sign(head.encode())).decode().rstrip("=")
        return TokenSigner(key, f"{head}.{signature}")


class TokenSigner(RequestSigner):
    """Signs as a node with a token does."""

    def __init__(self, key, token):
        self.key = key
        self.proof = token

    def sign(self, content):
        return self.key.sign(content)


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
