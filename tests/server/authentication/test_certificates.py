"""The user that a certificate belongs to."""

import datetime
import random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtensionOID, NameOID

from jetlake.server.authentication.alternative_names import read_alternative_names
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.certificates import find_user, go_texts, parse_distinguished_name
from jetlake.server.authentication.presented import Login
from jetlake.server.configuration.load import load_text

KINDS = {
    "CN": NameOID.COMMON_NAME,
    "O": NameOID.ORGANIZATION_NAME,
    "OU": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "C": NameOID.COUNTRY_NAME,
    "L": NameOID.LOCALITY_NAME,
    "DC": NameOID.DOMAIN_COMPONENT,
    "PSEUDONYM": NameOID.PSEUDONYM,
}


USAGE = x509.KeyUsage(
    **dict.fromkeys(("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"), True),
    **dict.fromkeys(("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"), False),
)


def name_of(*steps):
    """Make a subject; a step is `CN=alice` or several joined by `+`, from the least specific to the most."""
    return x509.Name(
        x509.RelativeDistinguishedName(
            [x509.NameAttribute(KINDS[part.partition("=")[0]], part.partition("=")[2]) for part in step.split("+")]
        )
        for step in steps
    )


def certificate(*steps, emails=(), dns=(), uris=(), names=b"", has_usage=False):
    """Make a certificate; `names` is a list of alternative names as bytes, which the library would not make."""
    key = Ed25519PrivateKey.generate()
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name_of(*steps))
        .issuer_name(name_of("CN=authority"))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    alternative = [*map(x509.RFC822Name, emails), *map(x509.DNSName, dns), *map(x509.UniformResourceIdentifier, uris)]
    if alternative:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
    if has_usage:
        builder = builder.add_extension(USAGE, critical=False)
    if names:
        encoded = x509.UnrecognizedExtension(ExtensionOID.SUBJECT_ALTERNATIVE_NAME, names)
        builder = builder.add_extension(encoded, critical=False)
    return builder.sign(key, None).public_bytes(serialization.Encoding.DER)


def find(der, *users):
    return find_user(der, users, lambda _: True)


def test_alternative_names_come_in_the_order_email_dns_uri():
    der = certificate("CN=alice", emails=["a@example.com"], dns=["a.example.com"], uris=["spiffe://a/b"])

    assert find(der, "CN=alice", "spiffe://a/b", "a.example.com", "a@example.com") == "a@example.com"
    assert find(der, "CN=alice", "spiffe://a/b", "a.example.com") == "a.example.com"
    assert find(der, "CN=alice", "spiffe://a/b") == "spiffe://a/b"
    assert find(der, "CN=alice") == "CN=alice"
    assert find(der, "alice") is None


@pytest.mark.parametrize(
    "user",
    [
        "CN=alice,OU=sales,O=Acme",
        "cn=alice, ou=sales, o=Acme",
        "O=Acme,OU=sales,CN=alice",
        "OU=sales,CN=alice,O=Acme",
        r"CN=\61lice,OU=sales,O=Acme",
    ],
)
def test_subject_matches_in_any_order_and_spelling_of_its_kinds(user):
    assert find(certificate("O=Acme", "OU=sales", "CN=alice"), user) == user


@pytest.mark.parametrize(
    "user",
    [
        "CN=alice",
        "CN=alice,O=Acme",
        "CN=Alice,OU=sales,O=Acme",
        "CN=alice,OU=sales,O=Acme,C=DE",
        "CN=alice,CN=alice,OU=sales,O=Acme",
        "CN=alice,OU=sales,OU=sales",
        "CN=alice+OU=sales,O=Acme",
        "alice",
        "",
        "CN",
        ",,,",
        "=,=",
    ],
)
def test_part_of_a_subject_is_another_subject(user):
    assert find(certificate("O=Acme", "OU=sales", "CN=alice"), user) is None


def test_repeated_parts_must_be_repeated():
    twice = certificate("O=Acme", "OU=a", "OU=b", "CN=x")

    assert find(twice, "CN=x,OU=a,OU=a,O=Acme") is None
    assert find(twice, "CN=x,OU=a,OU=b,O=Acme") == "CN=x,OU=a,OU=b,O=Acme"


def test_step_of_several_parts_matches_as_a_whole():
    der = certificate("O=Acme", "CN=x+OU=a")

    assert find(der, "OU=a+CN=x,O=Acme") == "OU=a+CN=x,O=Acme"
    assert find(der, "CN=x,O=Acme") is None


def test_exact_order_wins_over_any_order():
    der = certificate("O=Acme", "OU=sales", "CN=alice")

    assert find(der, "O=Acme,OU=sales,CN=alice", "CN=alice,OU=sales,O=Acme") == "CN=alice,OU=sales,O=Acme"


def test_text_of_go_has_its_own_order_and_joins_equal_kinds():
    subject = name_of("DC=com", "DC=acme", "OU=b", "OU=a", "O=Acme", "C=DE", "CN=x,y")

    assert go_texts(subject) == [
        r"CN=x\,y,OU=b+OU=a,O=Acme,C=DE,DC=com,DC=acme",
        r"CN=x\,y,OU=b+OU=a,O=Acme,C=DE",
    ]


def test_subject_with_a_kind_that_no_user_has_matches_by_the_text_of_go_only():
    der = certificate("O=Acme", "PSEUDONYM=p", "CN=x")

    assert find(der, "CN=x,O=Acme") == "CN=x,O=Acme"
    assert find(der, "O=Acme,CN=x") is None


def test_user_that_is_not_allowed_is_passed_over():
    der = certificate("CN=alice", emails=["a@example.com"])

    assert find_user(der, ["a@example.com", "CN=alice"], lambda name: name == "CN=alice") == "CN=alice"


def part(tag, content):
    """Return one part of a certificate: its tag, its length, what it contains."""
    length = len(content)
    size = bytes([length]) if length < 0x80 else b"\x82" + length.to_bytes(2, "big")
    return bytes([tag]) + size + content


EDI_PARTY = part(0xA5, part(0xA1, part(0x0C, b"x")))
X400_ADDRESS = part(0xA3, b"")
OTHERS = [EDI_PARTY, X400_ADDRESS, EDI_PARTY + X400_ADDRESS]


@pytest.mark.parametrize("other", OTHERS, ids=["EDI party", "X.400 address", "both"])
def test_names_of_kinds_that_nobody_uses_are_passed_over(other):
    alone = certificate("CN=alice", names=part(0x30, other))
    names = part(0x86, b"spiffe://a/b") + other + part(0x82, b"a.example.com") + part(0x81, b"a@example.com")
    beside = certificate("CN=alice", names=part(0x30, names + part(0x82, b"b" * 300)))

    assert find(alone, "CN=alice") == "CN=alice"
    assert find(beside, "CN=alice", "spiffe://a/b", "a.example.com", "a@example.com") == "a@example.com"
    assert find(beside, "CN=alice", "spiffe://a/b", "a.example.com") == "a.example.com"
    assert find(beside, "CN=alice", "spiffe://a/b") == "spiffe://a/b"
    assert find(beside, "b" * 300) == "b" * 300
    assert find(beside, "CN=alice") == "CN=alice"


def test_names_are_read_as_the_library_reads_them():
    alternative = {"emails": ["a@b", "c@d"], "dns": ["a.b", "*.c"], "uris": ["spiffe://a/b"]}
    read = x509.load_der_x509_certificate(certificate("O=Acme", "CN=alice", **alternative))

    names = read_alternative_names(read.tbs_certificate_bytes)

    assert names == ["a@b", "c@d", "a.b", "*.c", "spiffe://a/b"]


@pytest.mark.parametrize(
    "names",
    [
        part(0x30, X400_ADDRESS + part(0x82, b"\xff")),
        part(0x30, X400_ADDRESS + b"\x82"),
        part(0x30, X400_ADDRESS + b"\x82\x05abc"),
        part(0x30, X400_ADDRESS + b"\x82\x80abc"),
        part(0x30, X400_ADDRESS + b"\x82\x85\1\1\1\1\1abc"),
        part(0x31, X400_ADDRESS),
        part(0x30, X400_ADDRESS) + part(0x30, X400_ADDRESS),
    ],
)
def test_certificate_with_damaged_names_belongs_to_nobody(names):
    assert find(certificate("CN=alice", names=names), "CN=alice") is None


def with_version(der, number):
    assert der.count(b"\xa0\x03\x02\x01\x02") == 1
    return der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01" + bytes([number]))


def with_bits_as_name(der):
    """The common name is a string of bits: a kind that a text cannot have."""
    assert der.count(part(0x0C, b"alice")) == 1
    return der.replace(part(0x0C, b"alice"), part(0x03, b"\0lice"))


def with_a_second_list_of_names(der):
    """The extension for the use of the key, under the number of the one for alternative names."""
    assert der.count(bytes.fromhex("0603551d0f")) == 1
    return der.replace(bytes.fromhex("0603551d0f"), bytes.fromhex("0603551d11"))


def test_certificate_that_the_library_does_not_read_belongs_to_nobody():
    der = certificate("CN=alice", dns=["a.b"])
    twice = with_a_second_list_of_names(certificate("CN=alice", dns=["a.b"], has_usage=True))

    for damaged in (with_version(der, 19), with_bits_as_name(der), twice):
        assert find(damaged, "CN=alice", "a.b") is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_damaged_certificates_break_nothing(seed):
    generator = random.Random(seed)
    names = part(0x30, EDI_PARTY + part(0x82, b"a.b"))
    for der in (certificate("O=Acme", "CN=alice", emails=["a@b"], dns=["a.b"]), certificate("CN=alice", names=names)):
        for _ in range(1000):
            damaged = bytearray(der)
            for _ in range(generator.randint(1, 3)):
                damaged[generator.randrange(len(der))] = generator.choice([0x00, 0x03, 0xA3, 0xA5, 0xFF, *range(256)])

            assert find(bytes(damaged), "CN=alice", "a.b") in (None, "CN=alice", "a.b")


@pytest.mark.parametrize("der", [b"", b"\x30\x00", b"x" * 100])
def test_what_is_no_certificate_belongs_to_nobody(der):
    assert find(der, "CN=alice") is None


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("CN=a", [{("CN", "a")}]),
        ("CN=a\\,b", [{("CN", "a,b")}]),
        ("CN=a\\20", [{("CN", "a ")}]),
        ("CN= a b  ,O=c", [{("CN", "a b")}, {("O", "c")}]),
        ("CN=\\c3\\a9", [{("CN", "é")}]),
        ("CN=a=b", [{("CN", "a=b")}]),
        ("CN=#0401", []),
        ("CN=\\zz", []),
        ("CN=\\ff", []),
        ("CN=a+CN=a", []),
        ("CN=a,", []),
    ],
)
def test_distinguished_name_is_read_as_rfc_4514_writes_it(text, steps):
    assert parse_distinguished_name(text) == steps


def test_decision_takes_the_client_certificate_and_a_password_if_the_user_has_one():
    import base64
    import json

    der = certificate("CN=alice")
    tls = json.dumps({"version": "1.3", "cipher": "x", "certificates": [base64.b64encode(der).decode()]}).encode()
    files = "tls { cert_file: c, key_file: k, verify_and_map: true }"
    free = Authenticator(load_text(f"authorization {{ users: [{{user: 'CN=alice'}}] }}\n{files}").options.access)
    locked = Authenticator(
        load_text(f"authorization {{ users: [{{user: 'CN=alice', password: p}}] }}\n{files}").options.access
    )

    assert free.decide(Login(connect=b"{}", tls=tls)).user == "CN=alice"
    # What the client says about itself does not count.
    assert free.decide(Login(connect=b'{"user":"eve"}', tls=tls)).user == "CN=alice"
    assert free.decide(Login(connect=b'{"user":"CN=alice"}')) is None
    assert free.decide(Login(connect=b'{"user":"CN=alice"}', tls=b'{"certificates":[]}')) is None
    assert locked.decide(Login(connect=b"{}", tls=tls)) is None
    assert locked.decide(Login(connect=b'{"pass":"p"}', tls=tls)) is not None
