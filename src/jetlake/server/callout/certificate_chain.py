"""The certificates of a client, up to the authority that vouches for it, as PEM.

The engine has verified the client; here the authorities are looked up again in the file they were verified against, so
that a service sees the whole chain.
"""

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from jetlake.server.authentication.certificates import UNREADABLE

CHAIN_LENGTH_MAX = 16
"""Longer chains do not occur; a circle of certificates must end."""


def verified_chain(certificates: tuple[bytes, ...], authority_file: str) -> list[str]:
    """Return the certificate of a client and those above it. `certificates` are DER, the client's own first."""
    shown = [_read(each) for each in certificates]
    if not shown or shown[0] is None:
        return []
    others = [*_authorities(authority_file), *(each for each in shown[1:] if each is not None)]
    chain = [shown[0]]
    while len(chain) < CHAIN_LENGTH_MAX and chain[-1].issuer != chain[-1].subject:
        above = next((each for each in others if _has_issued(each, chain[-1])), None)
        if above is None:
            break
        chain.append(above)
    return [as_pem(certificate) for certificate in chain]


def as_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _read(der: bytes) -> x509.Certificate | None:
    """Return a certificate, None if it cannot be read: what a client sends along need not be one."""
    try:
        certificate = x509.load_der_x509_certificate(der)
    except UNREADABLE:
        return None
    return certificate if _has_names(certificate) else None


def _has_names(certificate: x509.Certificate) -> bool:
    """Tell whether issuer and subject can be read: that is not found out before they are wanted."""
    try:
        _ = certificate.issuer, certificate.subject
    except UNREADABLE:
        return False
    return True


def _authorities(authority_file: str) -> list[x509.Certificate]:
    try:
        loaded = x509.load_pem_x509_certificates(Path(authority_file).read_bytes()) if authority_file else []
    except (OSError, *UNREADABLE):
        # It was there when the server started; a service gets the certificates that the client showed.
        return []
    return [each for each in loaded if _has_names(each)]


def _has_issued(above: x509.Certificate, below: x509.Certificate) -> bool:
    try:
        below.verify_directly_issued_by(above)
    except (InvalidSignature, *UNREADABLE):
        return False
    return True
