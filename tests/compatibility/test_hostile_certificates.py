"""Certificates of clients with odd contents: their clients are let in or refused, and the server serves the others.

They are signed by the authority that the server trusts: the holder of any such certificate could else end it.
"""

from __future__ import annotations

import contextlib
import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from tests.compatibility.callout_site import Start
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

EDI_PARTY = bytes.fromhex("a505a1030c0178")
X400_ADDRESS = bytes.fromhex("a300")

ELLIPTIC, UNKNOWN = bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06072a8648ce3d0209")
"""The identifier of keys on elliptic curves, and one of the same length that stands for nothing."""


def name_of(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Signer:
    """An authority, or one that an authority vouches for."""

    def __init__(self, folder: Path, name: str, above: Signer | None = None) -> None:
        self.folder = folder
        self.name = name_of(name)
        self.key = ec.generate_private_key(ec.SECP256R1())
        constraints = (x509.BasicConstraints(ca=True, path_length=None), True)
        self.certificate = (above or self).sign(self.name, self.key.public_key(), constraints)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(pem(self.der))

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def sign(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *extensions: tuple[x509.ExtensionType, bool]
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(issuer_name=self.name, subject_name=subject, public_key=key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        builder = builder.not_valid_after(now + datetime.timedelta(days=1))
        for extension, is_critical in extensions:
            builder = builder.add_extension(extension, is_critical)
        return builder.sign(self.key, hashes.SHA256())

    def issue(self, name: str, *extensions: x509.ExtensionType, beside: tuple[bytes, ...] = ()) -> tuple[Path, Path]:
        """Write a certificate with others beside it, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        own = self.sign(name_of(name), key.public_key(), *((each, False) for each in extensions))
        certificate_file, key_file = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        shown = (own.public_bytes(serialization.Encoding.DER), *beside)
        certificate_file.write_bytes(b"".join(map(pem, shown)))
        form, encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        key_file.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))
        return certificate_file, key_file

    def context(self, files: tuple[Path, Path]) -> ssl.SSLContext:
        """What a client needs to show a certificate. It looks at nothing of the server's."""
        context = ssl.create_default_context(cafile=str(self.file))
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # The library would not send keys that it does not know.
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        context.load_cert_chain(*files)
        return context


def pem(der: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(der).encode()


@pytest.fixture
def authority(tmp_path: Path) -> Signer:
    return Signer(tmp_path, "authority")


def tls(authority: Signer, rule: str) -> str:
    host = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    certificate_file, key_file = authority.issue("server", host)
    files = f'cert_file: "{certificate_file}", key_file: "{key_file}", ca_file: "{authority.file}"'
    return f"tls {{ {files}, {rule}: true, timeout: 60 }}"


def start_with_users(start_server, authority: Signer) -> ServerProcess:
    users = ", ".join(f'{{ user: "{name}", permissions: {{ publish: own }} }}' for name in ("CN=bob", "bob.example"))
    started: ServerProcess = start_server(
        config=f"{tls(authority, 'verify_and_map')}\nauthorization {{ users: [ {users} ], timeout: 60 }}\n"
    )
    return started


def is_let_in(server: ServerProcess, context: ssl.SSLContext) -> bool:
    """Tell whether a client with this certificate is one of the users; a server may also end the handshake."""
    with server.client() as client, contextlib.suppress(ssl.SSLError, ConnectionError):
        client.encrypt(context)
        client.send(b'CONNECT {"verbose":false}\r\nPUB own 0\r\n\r\nPING\r\n')
        return client.read_frame() == b"PONG\r\n"
    return False


def alternative(names: bytes) -> tuple[x509.ExtensionType, ...]:
    encoded = bytes([0x30, len(names)]) + names
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    return usage, x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, encoded)


@pytest.mark.parametrize("other", [EDI_PARTY, X400_ADDRESS], ids=["EDI party", "X.400 address"])
def test_user_is_known_though_its_certificate_has_names_that_nobody_uses(
    start_server, authority: Signer, other: bytes
) -> None:
    dns = bytes([0x82, 11]) + b"bob.example"
    server = start_with_users(start_server, authority)

    assert is_let_in(server, authority.context(authority.issue("bob", *alternative(other))))
    assert is_let_in(server, authority.context(authority.issue("eve", *alternative(dns + other))))
    assert is_let_in(server, authority.context(authority.issue("eve", *alternative(other + dns))))
    assert not is_let_in(server, authority.context(authority.issue("eve", *alternative(other))))
    assert server.process.poll() is None


@pytest.mark.parametrize(
    "names",
    [b"\x87\x03abc", b"\x81\x02\xff\xfe", X400_ADDRESS + b"\x82\x02\xff\xfe"],
    ids=["address of three bytes", "e-mail", "DNS name beside an X.400 address"],
)
def test_certificate_with_damaged_names_harms_nobody(start_server, authority: Signer, names: bytes) -> None:
    server = start_with_users(start_server, authority)

    assert not is_let_in(server, authority.context(authority.issue("bob.example", *alternative(names))))
    assert is_let_in(server, authority.context(authority.issue("bob")))
    assert server.process.poll() is None


def test_service_is_asked_though_a_client_sends_along_a_key_of_an_unknown_kind(
    start_callout: Start, authority: Signer
) -> None:
    between = Signer(authority.folder, "between", authority)
    # Of the same name, so that it could be the one that has issued the client's.
    false = Signer(authority.folder, "between").der
    assert false.count(ELLIPTIC) == 1
    files = between.issue("bob", beside=(false.replace(ELLIPTIC, UNKNOWN), between.der))
    plain = authority.context(authority.issue("service"))
    site = start_callout(timeout="60s", further=tls(authority, "verify"), tls=plain)

    for context in (authority.context(files), plain):
        client = site.client()
        client.encrypt(context)
        forget_errors()
        client.send_connect(verbose=False, user="bob")
        asked = site.service.next()
        site.service.admit(asked, "APP")
        expect_pong(client)
        (chain,) = asked.claims["nats"]["client_tls"]["verified_chains"]
        assert chain[-1] == pem(authority.der).decode()


def forget_errors() -> None:
    """Have OpenSSL forget that it could not read the odd key: else the next one to read would be told."""
    with contextlib.suppress(ssl.SSLError):
        ssl.create_default_context(cadata="none")


def expect_pong(client: RawClient) -> None:
    client.send(b"PING\r\n")
    assert client.read_frame() == b"PONG\r\n"
