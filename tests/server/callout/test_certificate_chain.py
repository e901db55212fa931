"""The certificates a service is told about."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from jetlake.server.callout.certificate_chain import verified_chain
from tests.compatibility.certificates import Authority


def der(path):
    return x509.load_pem_x509_certificate(Path(path).read_bytes()).public_bytes(Encoding.DER)


def test_chain_ends_with_the_authority(tmp_path):
    authority = Authority(tmp_path)
    client = authority.client("ada", subject={"CN": "ada"})

    own, above = verified_chain((der(client.certificate_file),), str(authority.file))

    assert own.startswith("-----BEGIN CERTIFICATE-----\n")
    assert above == Path(authority.file).read_text()


def test_authority_that_the_client_sends_along_occurs_once(tmp_path):
    authority = Authority(tmp_path)
    client = authority.client("ada", subject={"CN": "ada"})

    chain = verified_chain((der(client.certificate_file), der(authority.file)), str(authority.file))

    assert len(chain) == 2


def test_file_that_has_gone_leaves_what_the_client_showed(tmp_path):
    authority = Authority(tmp_path)
    client = authority.client("ada", subject={"CN": "ada"})

    assert len(verified_chain((der(client.certificate_file),), str(tmp_path / "gone"))) == 1
    assert verified_chain((b"damaged",), str(authority.file)) == []


UNKNOWN_CURVE = (bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06072a8648ce3d0209"))
"""The identifier of keys on elliptic curves, and one of the same length that stands for nothing."""


@pytest.mark.parametrize(
    ("what", "instead"),
    [
        UNKNOWN_CURVE,
        (bytes.fromhex("a003020102"), bytes.fromhex("a003020113")),
        (b"\x0c\x0eTest Authority", b"\x03\x0e\x00est Authority"),
        (b"\x0c\x0eTest Authority", b"\x0c\x0e\xffest Authority"),
    ],
    ids=["key of an unknown kind", "version 19", "bits as its name", "name that is not UTF-8"],
)
def test_what_a_client_sends_along_need_not_be_a_certificate(tmp_path, what, instead):
    authority = Authority(tmp_path)
    client = authority.client("ada", subject={"CN": "ada"})
    own, above = der(client.certificate_file), der(authority.file)
    assert what in above
    odd = above.replace(what, instead)

    chain = verified_chain((own, odd, above), "")

    assert len(chain) == 2
    assert chain[1] == Path(authority.file).read_text()
    assert len(verified_chain((own, odd), str(authority.file))) == 2
    assert len(verified_chain((own, odd), "")) == 1


def test_certificate_of_a_client_that_cannot_be_read_has_no_chain(tmp_path):
    authority = Authority(tmp_path)
    own = der(authority.client("ada", subject={"CN": "ada"}).certificate_file)
    assert own.count(b"\x0c\x03ada") == 1

    for odd in (b"\x03\x03\x00da", b"\x0c\x03\xffda"):
        assert verified_chain((own.replace(b"\x0c\x03ada", odd), der(authority.file)), "") == []
    assert verified_chain((), str(authority.file)) == []
