"""The decision over one CONNECT."""

import json

import pytest

from jetlake.server.authentication import Authenticator, Verdict, read_presented
from jetlake.server.options import Credentials

USER = Authenticator(Credentials(user="ada", password="pässword"))
TOKEN = Authenticator(Credentials(user="ada", password="secret", token="t0ken"))


def connect(**fields):
    return json.dumps(fields).encode()


def test_right_user_and_password_are_admitted_under_that_name():
    assert USER.decide(connect(user="ada", **{"pass": "pässword"})) == Verdict(account="$G", user="ada")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"user": "ada"},
        {"user": "ada", "pass": "wrong"},
        {"user": "eve", "pass": "pässword"},
        {"user": "ada", "pass": None},
        {"auth_token": "pässword"},
        {"user": 7, "pass": "pässword"},
        {"user": "ada", "pass": "pässword\ud800"},
    ],
)
def test_anything_else_is_refused(fields):
    assert USER.decide(connect(**fields)) is None


def test_token_is_enough_where_a_token_is_wanted():
    assert TOKEN.decide(connect(auth_token="t0ken")) == Verdict()
    assert TOKEN.decide(connect(auth_token="wrong")) is None
    assert TOKEN.decide(connect(user="ada", **{"pass": "secret"})) is None


def test_empty_password_matches_an_empty_password():
    assert Authenticator(Credentials(user="ada")).decide(connect(user="ada")) is not None


def test_keys_match_in_any_case():
    assert USER.decide(b'{"User":"ada","PASS":"p\xc3\xa4ssword","Verbose":false}') is not None


@pytest.mark.parametrize("text", [b"[]", b"{", b"7", b"\xff"])
def test_what_is_no_object_is_refused(text):
    assert read_presented(text) is None
    assert USER.decide(text) is None


def test_verdict_crosses_as_account_and_user():
    assert json.loads(Verdict(user="ada").to_json()) == {"account": "$G", "user": "ada"}
