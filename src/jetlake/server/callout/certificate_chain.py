"""The certificates of a client, up to the authority that vouches for it, as PEM.

The engine has verified the client; here the authorities are looked up again in the file they were verified against, so
that a service sees the whole chain.
"""

from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

CHAIN_LENGTH_MAX = 16
"""Longer chains do not occur; a circle of certificates must end."""


def verified_chain(certificates: tuple[bytes, ...], authority_file: str) -> list[str]:
    """Return the certificate of a client and those above it. `certificates` are DER, the client's own first."""
    shown = _readable(certificates)
    authorities = _authorities(authority_file)
    chain = shown[:1]
    while chain and len(chain) < CHAIN_LENGTH_MAX and chain[-1].issuer != chain[-1].subject:
        above = next((each for each in (*authorities, *shown[1:]) if _has_issued(each, chain[-1])), None)
        if above is None:
            break
        chain.append(above)
    return [as_pem(certificate) for certificate in chain]


def as_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _readable(certificates: tuple[bytes, ...]) -> list[x509.Certificate]:
    try:
        return [x509.load_der_x509_certificate(each) for each in certificates]
    except ValueError:
        return []


def _authorities(authority_file: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(Path(authority_file).read_bytes()) if authority_file else []
    except (OSError, ValueError):
        # It was there when the server started; a service gets the certificates that the client showed.
        return []


def _has_issued(above: x509.Certificate, below: x509.Certificate) -> bool:
    try:
        below.verify_directly_issued_by(above)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
