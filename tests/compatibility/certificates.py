"""Throw-away certificates: an authority, and servers and clients that it vouches for.

Nothing of this outlives a test run: keys are made anew and written to a temporary folder.
"""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NAME_FIELDS = {"CN": NameOID.COMMON_NAME, "O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME}


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, as files."""

    certificate_file: Path
    key_file: Path

    @property
    def key_fingerprint(self) -> str:
        """SHA-256 of the public key, as `pinned_certs` wants it."""
        certificate = x509.load_pem_x509_certificate(self.certificate_file.read_bytes())
        key = certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return hashlib.sha256(key).hexdigest()


class Authority:
    """Signs certificates into a folder. Two authorities do not trust each other."""

    def __init__(self, folder: Path, name: str = "Test Authority") -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(self._name, self._name, self._key.public_key(), days=1)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, file_name: str = "server", *, host: str = "localhost", days: int = 1) -> Certificate:
        """A certificate for this machine, known by a name."""
        names = [x509.DNSName(host), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return self._certify(file_name, {"CN": file_name}, names, days)

    def client(
        self, file_name: str = "client", *, subject: dict[str, str] | None = None, email: str = "", days: int = 1
    ) -> Certificate:
        """A certificate for a client; `email` is another name it may be known by. With negative days it has expired."""
        names: list[x509.GeneralName] = [x509.RFC822Name(email)] if email else []
        return self._certify(file_name, subject or {"CN": file_name}, names, days)

    def context(
        self, certificate: Certificate | None = None, *, version: ssl.TLSVersion | None = None
    ) -> ssl.SSLContext:
        """What a client needs to trust servers of this authority, and to show a certificate of its own."""
        context = ssl.create_default_context(cafile=str(self.file))
        if version is not None:
            context.minimum_version = context.maximum_version = version
        if certificate is not None:
            context.load_cert_chain(certificate.certificate_file, certificate.key_file)
        return context

    def _certify(
        self, file_name: str, subject: dict[str, str], names: list[x509.GeneralName], days: int
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NAME_FIELDS[field], value) for field, value in subject.items()]
        builder = _builder(x509.Name(attributes), self._name, key.public_key(), days).add_extension(
            _key_usage(signs_certificates=False), critical=True
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        files = Certificate(self.folder / f"{file_name}.pem", self.folder / f"{file_name}-key.pem")
        files.certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        files.key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int):
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=10))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
