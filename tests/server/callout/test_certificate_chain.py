"""The certificates a service is told about."""

from pathlib import Path

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
