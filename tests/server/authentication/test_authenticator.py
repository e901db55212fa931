"""The decision over one client."""

import base64
import json

import nkeys
import pytest

from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.presented import Login, read_presented
from jetlake.server.authentication.verdict import Verdict
from jetlake.server.configuration.load import load_text
from jetlake.server.options import AccessOptions, Credentials, Permissions, SubjectPermissions

SEED = b"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
NONCE = "PXoWU7zWAMt75FY"

# Of the password "secret", with the lowest cost there is.
HASH = "$2b$04$En96ugxyIhOm3Db1IULX5ObmugSFMtiGfPg.i15/I0xZrVfAZ44Mi"


def login(**fields):
    renamed = {"pass" if name == "password" else name: value for name, value in fields.items()}
    return Login(connect=json.dumps(renamed).encode(), nonce=NONCE)


def by(text):
    return Authenticator(load_text(text).options.access)


def signature(nonce=NONCE):
    raw = nkeys.from_seed(bytearray(SEED)).sign(nonce.encode())
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


SHARED = Authenticator(AccessOptions(credentials=Credentials(user="ada", password="pässword")))
TOKEN = Authenticator(AccessOptions(credentials=Credentials(user="ada", password="secret", token="t0ken")))


def test_right_user_and_password_are_admitted_under_that_name():
    assert SHARED.decide(login(user="ada", password="pässword")) == Verdict(account="$G", user="ada")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"user": "ada"},
        {"user": "ada", "password": "wrong"},
        {"user": "eve", "password": "pässword"},
        {"user": "ada", "password": None},
        {"auth_token": "pässword"},
        {"user": 7, "password": "pässword"},
        {"user": "ada", "password": "pässword\ud800"},
    ],
)
def test_anything_else_is_refused(fields):
    assert SHARED.decide(login(**fields)) is None


def test_token_is_enough_where_a_token_is_wanted():
    assert TOKEN.decide(login(auth_token="t0ken")) == Verdict(account="$G", user="[REDACTED]")
    assert TOKEN.decide(login(auth_token="wrong")) is None
    assert TOKEN.decide(login(user="ada", password="secret")) is None


def test_empty_password_matches_an_empty_password():
    assert by("authorization { user: ada }").decide(login(user="ada")) is not None


def test_keys_match_in_any_case():
    connect = b'{"User":"ada","PASS":"p\xc3\xa4ssword","Verbose":false}'

    assert SHARED.decide(Login(connect=connect)) is not None


@pytest.mark.parametrize("text", [b"[]", b"{", b"7", b"\xff"])
def test_what_is_no_object_is_refused(text):
    assert read_presented(text) is None
    assert SHARED.decide(Login(connect=text)) is None


def test_everybody_is_admitted_where_nothing_is_wanted():
    anybody = Authenticator(AccessOptions())

    assert anybody.decide(login(user="ada")) == Verdict(account="$G", user="ada")
    assert not anybody.slow


def test_bcrypt_passwords_and_tokens_are_compared_by_their_hash():
    users = by(f"authorization {{ users: [{{user: a, password: '{HASH}'}}] }}")
    token = by(f"authorization {{ token: {HASH} }}")

    assert users.decide(login(user="a", password="secret")) is not None
    assert users.decide(login(user="a", password="Secret")) is None
    assert users.decide(login(user="b", password="secret")) is None
    assert token.decide(login(auth_token="secret")) is not None
    assert token.decide(login(auth_token=HASH)) is None
    assert users.slow
    assert token.slow


def test_user_brings_its_account_permissions_and_limits():
    authenticator = by("""
        accounts { A { limits { max_conn: 3, max_subs: 4, max_payload: 5 }
          users: [ {user: a, password: a, permissions: {publish: foo}} ] } }
    """)

    verdict = authenticator.decide(login(user="a", password="a"))

    assert verdict == Verdict(
        account="A",
        user="a",
        permissions=Permissions(publish=SubjectPermissions(allow=("foo",))),
        max_account_connections=3,
        max_subscriptions=4,
        max_payload_bytes=5,
    )
    assert json.loads(verdict.to_json()) == {
        "account": "A",
        "user": "a",
        "permissions": {
            "publish": {"allow": ["foo"], "deny": []},
            "subscribe": {"allow": None, "deny": []},
            "responses": None,
        },
        "max_payload_bytes": 5,
        "max_subscriptions": 4,
        "max_account_connections": 3,
    }


def test_key_must_have_signed_the_nonce():
    authenticator = by(f"accounts {{ A {{ users: [{{nkey: {PUBLIC}}}] }} }}")

    assert authenticator.decide(login(nkey=PUBLIC, sig=signature())) == Verdict(account="A", user=PUBLIC)
    assert authenticator.decide(login(nkey=PUBLIC)) is None
    assert authenticator.decide(login(nkey=PUBLIC, sig=signature("another-nonce-0"))) is None
    assert authenticator.decide(login(nkey="U" + "A" * 55, sig=signature())) is None
    assert authenticator.decide(login(user=PUBLIC)) is None
    assert authenticator.decide(login()) is None


def test_client_without_credentials_becomes_the_user_for_that():
    authenticator = by("authorization { users: [{user: a, password: a}, {user: b, password: b}] }\nno_auth_user: b")

    assert authenticator.decide(login()).user == "b"
    assert authenticator.decide(login(nkey=PUBLIC)).user == "b"
    assert authenticator.decide(login(user="b")) is None
    assert authenticator.decide(login(user="a", password="a")).user == "a"
    assert authenticator.decide(login(password="b")) is None
    assert authenticator.decide(login(auth_token="x")) is None


def test_user_without_credentials_may_be_a_key():
    authenticator = by(f"authorization {{ users: [{{nkey: {PUBLIC}}}] }}\nno_auth_user: {PUBLIC}")

    assert authenticator.decide(login()).user == PUBLIC
    # Whoever names the key must have it.
    assert authenticator.decide(login(nkey=PUBLIC)) is None
    assert authenticator.decide(login(user="x")) is None


def test_everybody_is_admitted_where_only_the_system_account_has_users():
    authenticator = by("accounts { $SYS { users: [{user: s, password: s}] } }")

    assert authenticator.decide(login()) == Verdict(account="$G", user="")
    assert authenticator.decide(login(user="s", password="s")).account == "$SYS"
    assert authenticator.decide(login(user="s", password="x")) is None
    assert authenticator.decide(login(user="x")) is None


def test_user_for_other_connections_is_refused():
    authenticator = by("""
        authorization { users: [ {user: a, connection_types: [WEBSOCKET]}, {user: b, connection_types: [STANDARD]} ] }
    """)

    assert authenticator.decide(login(user="a")) is None
    assert authenticator.decide(login(user="b")) is not None


def test_refusal_that_names_no_user_is_as_good_as_any():
    authenticator = by("authorization { users: [{user: a, password: a}] }")

    assert authenticator.decide(login()) is None
    assert authenticator.decide(login(auth_token="a")) is None


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("authorization { user: a, password: b }", True),
        (f"authorization {{ user: a, password: '{HASH}' }}", False),
        ("authorization { users: [{user: a}] }", True),
        ("authorization { token: t }", False),
        (f"authorization {{ users: [{{nkey: {PUBLIC}}}] }}", False),
        ("authorization { users: [{user: a}] }\ntls { cert_file: c, key_file: k, verify_and_map: true }", False),
        ("port: 1", False),
    ],
)
def test_plain_passwords_are_noticed(text, plain):
    assert by(text).has_plain_passwords is plain


def test_secrets_are_not_shown():
    shown = repr(login(user="a", password="hidden")) + repr(read_presented(b'{"pass":"hidden"}'))

    assert "hidden" not in shown
