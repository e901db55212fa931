"""Clients over WebSocket and over TCP: the same users, and credentials of the block's own."""

import base64
import json

import msgspec
import pytest

from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.presented import Handshake, Login
from jetlake.server.authentication.verdict import REDACTED, Verdict
from jetlake.server.configuration.load import load_text
from tests.compatibility.certificates import Authority

# Of the password "secret", with the lowest cost there is.
HASH = "$2b$04$En96ugxyIhOm3Db1IULX5ObmugSFMtiGfPg.i15/I0xZrVfAZ44Mi"

PLAIN = "websocket { port: -1, no_tls: true }"

MAPPED = "websocket { port: -1, tls { cert_file: c, key_file: k, verify_and_map: true } }"

USERS = """
    authorization { users: [
      {user: ada, password: secret}
      {user: "alice@example.com"}
      {user: page, allowed_connection_types: [WEBSOCKET]}
      {user: wired, allowed_connection_types: [STANDARD]}
    ] }
"""


def by(text):
    options = load_text(text).options
    return Authenticator(options.access, websocket=options.websocket)


def login(*, websocket=False, certificate=None, **fields):
    renamed = {"pass" if name == "password" else name: value for name, value in fields.items()}
    tls = b"" if certificate is None else msgspec.json.encode(Handshake("1.3", "x", (certificate,)))
    connection_type = "WEBSOCKET" if websocket else "STANDARD"
    return Login(connect=json.dumps(renamed).encode(), tls=tls, connection_type=connection_type)


def decide_both(authenticator, **fields):
    """Return whether a client comes in over TCP, and over WebSocket."""
    return [authenticator.decide(login(websocket=websocket, **fields)) is not None for websocket in (False, True)]


@pytest.fixture(scope="module")
def alice(tmp_path_factory):
    """A certificate of the user alice@example.com, as DER."""
    file = Authority(tmp_path_factory.mktemp("authority")).client("alice", email="alice@example.com").certificate_file
    lines = file.read_text().split("-----")[2].split()
    return base64.b64decode("".join(lines))


def test_same_credentials_hold_for_both():
    authenticator = by(f"{PLAIN}\nauthorization {{ user: ada, password: secret }}")

    assert decide_both(authenticator, user="ada", password="secret") == [True, True]
    assert decide_both(authenticator, user="ada", password="wrong") == [False, False]


def test_credentials_of_the_block_hold_for_websocket_alone():
    authenticator = by("""
        websocket { port: -1, no_tls: true, authorization { token: page } }
        authorization { user: ada, password: secret }
    """)

    assert decide_both(authenticator, user="ada", password="secret") == [True, False]
    assert decide_both(authenticator, auth_token="page") == [False, True]
    assert authenticator.decide(login(websocket=True, auth_token="page")) == Verdict(account="$G", user=REDACTED)


def test_websocket_alone_may_be_closed_to_strangers():
    authenticator = by("websocket { port: -1, no_tls: true, authorization { user: a, password: b } }")

    assert decide_both(authenticator) == [True, False]
    assert decide_both(authenticator, user="a", password="b") == [True, True]


def test_strangers_become_the_user_of_the_way_they_come():
    accounts = "accounts { A { users: [{user: a, password: x}] }, B { users: [{user: b, password: x}] } }"
    authenticator = by(f"websocket {{ port: -1, no_tls: true, no_auth_user: b }}\n{accounts}\nno_auth_user: a")

    assert authenticator.decide(login()).account == "A"
    assert authenticator.decide(login(websocket=True)).account == "B"


def test_users_come_in_the_ways_that_they_are_allowed():
    authenticator = by(PLAIN + USERS)

    assert decide_both(authenticator, user="ada", password="secret") == [True, True]
    assert decide_both(authenticator, user="page") == [False, True]
    assert decide_both(authenticator, user="wired") == [True, False]


def test_stranger_must_be_allowed_to_come_so():
    authenticator = by("websocket { port: -1, no_tls: true, no_auth_user: wired }" + USERS)

    assert decide_both(authenticator) == [False, False]


def test_certificate_makes_a_user_only_where_that_is_configured(alice):
    authenticator = by(MAPPED + USERS)

    assert decide_both(authenticator, certificate=alice) == [False, True]


def test_user_known_by_certificate_is_not_known_by_an_empty_password(alice):
    over_tcp = by(MAPPED + USERS)
    over_websocket = by(f"tls {{ cert_file: c, key_file: k, verify_and_map: true }}\n{PLAIN}\n{USERS}")

    assert over_tcp.decide(login(user="alice@example.com")) is None
    assert over_websocket.decide(login(user="alice@example.com", websocket=True)) is None
    assert over_websocket.decide(login(certificate=alice)) is not None
    # Nobody becomes these two by a certificate: where certificates count, they must not connect.
    assert over_tcp.decide(login(user="wired")) is not None
    assert over_websocket.decide(login(user="page", websocket=True)) is not None


def test_user_without_credentials_may_be_named_although_certificates_know_it():
    authenticator = by(f"{MAPPED}\n{USERS}\nno_auth_user: 'alice@example.com'")

    assert authenticator.decide(login()) is not None
    assert authenticator.decide(login(user="alice@example.com")) is not None


def test_hash_of_the_block_makes_every_decision_slow():
    block = f'websocket {{ port: -1, no_tls: true, authorization {{ user: a, password: "{HASH}" }} }}'

    assert by(block).slow
    assert not by(PLAIN).slow
    assert by(block).decide(login(user="a", password="secret", websocket=True)) is not None


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("websocket { port: -1, no_tls: true, authorization { user: a, password: b } }", True),
        (f"websocket {{ port: -1, no_tls: true, authorization {{ user: a, password: '{HASH}' }} }}", False),
        ("websocket { port: -1, no_tls: true, authorization { token: b } }", False),
        (f"{MAPPED}\nauthorization {{ users: [{{user: a}}] }}", False),
        (f"{MAPPED}\nauthorization {{ users: [{{user: a, allowed_connection_types: [STANDARD]}}] }}", True),
    ],
)
def test_plain_passwords_are_found_in_both(text, plain):
    assert by(text).has_plain_passwords is plain
