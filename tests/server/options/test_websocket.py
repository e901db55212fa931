"""`WebSocketOptions`: what the engine is told, and what decides about WebSocket clients."""

import pytest

from jetlake.config import EngineWebSocket
from jetlake.errors import ConfigurationError
from jetlake.server.options import AccessOptions, Credentials, TlsOptions, User, WebSocketOptions

SHARED = AccessOptions(credentials=Credentials(user="ada", password="secret"), map_certificates=True)
USERS = AccessOptions(users=(User(name="ada"), User(name="page")), no_auth_user="ada")


def options(**fields):
    return WebSocketOptions(**{"port": 0, "allows_plain": True, **fields})


def test_listener_needs_tls_or_the_word_that_it_does_not():
    with pytest.raises(ConfigurationError, match="add a tls block to it, or no_tls: true"):
        WebSocketOptions(port=8080)


def test_engine_is_told_only_what_was_given():
    assert options().for_engine() == EngineWebSocket(host="0.0.0.0", port=0)


def test_times_are_told_in_milliseconds_and_never_as_none():
    told = options(handshake_timeout_s=1.5, auth_timeout_s=0.0001, ping_interval_s=2.0).for_engine()

    assert (told.handshake_timeout_ms, told.auth_timeout_ms, told.ping_interval_ms) == (1500, 1, 2000)


def test_certificates_are_read_when_the_engine_is_told(tmp_path):
    (tmp_path / "c.pem").write_text("certificate")
    (tmp_path / "k.pem").write_text("key")
    tls = TlsOptions(certificate_file=str(tmp_path / "c.pem"), key_file=str(tmp_path / "k.pem"))

    assert options(tls=tls).for_engine().tls.certificate_pem == "certificate"
    (tmp_path / "k.pem").unlink()
    with pytest.raises(ConfigurationError, match="private key cannot be read"):
        options(tls=tls).for_engine()


@pytest.mark.parametrize(
    ("fields", "required"),
    [
        ({}, False),
        ({"auth_timeout_s": 1.0}, False),
        ({"credentials": Credentials(password="x")}, False),
        ({"credentials": Credentials(user="x")}, True),
        ({"credentials": Credentials(token="x")}, True),
        ({"no_auth_user": "x"}, True),
    ],
)
def test_clients_are_asked_if_the_block_says_who_they_are(fields, required):
    assert options(**fields).for_engine().auth_required is required


def test_same_rules_hold_without_others_but_for_certificates():
    assert options().access(SHARED) == AccessOptions(credentials=SHARED.credentials)
    assert options().access(USERS) == USERS


def test_certificates_of_the_block_make_users():
    tls = TlsOptions(certificate_file="c", key_file="k", map_users=True)

    assert options(tls=tls).access(USERS).map_certificates


def test_credentials_of_the_block_replace_those_of_the_server():
    access = options(credentials=Credentials(token="t")).access(SHARED)

    assert access == AccessOptions(credentials=Credentials(token="t"))


def test_user_without_credentials_of_the_block_replaces_that_of_the_server():
    assert options(no_auth_user="page").access(USERS).no_auth_user == "page"
    assert options(credentials=Credentials(user="x")).access(USERS).no_auth_user == ""


@pytest.mark.parametrize(("tls", "scheme"), [(None, "ws"), (TlsOptions(certificate_file="c", key_file="k"), "wss")])
def test_scheme_says_whether_there_is_tls(tls, scheme):
    assert options(tls=tls).scheme == scheme


def test_no_secret_is_shown():
    shown = repr(options(credentials=Credentials(user="a", password="hidden", token="hidden")))

    assert "hidden" not in shown
