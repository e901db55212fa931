"""Claims of strangers: whatever they say, they are refused, and nothing breaks."""

import json
import random

import pytest

from jetlake.server.authentication.presented import Login
from jetlake.server.claims.operator_mode import OperatorMode
from jetlake.server.configuration.load import load_text
from jetlake.server.python_log import PythonLog
from tests.compatibility.claims import ANY_USER, STORING, Key, Operator, User, make_user, scoped

NONCE = "PXoWU7zWAMt75FY"
ODD = [
    *(None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 1.5, 1e300),
    *("", " ", ".", "..", ">", "*", "a b", "{{name()}}", "\x00", "é", "x" * 500, "../../etc/passwd", "::/0"),
    *([], {}, [[]], [None], [1], [""], {"": ""}, {"a": {"a": {}}}, ["*"] * 50, {"allow": [">"]}, {"start": "1"}),
]
FIELDS = [
    *("aud", "exp", "iat", "nbf", "name", "sub", "jti", "type", "tags", "nats"),
    *("subs", "data", "payload", "pub", "sub", "resp", "src", "times", "times_location", "bearer_token"),
    *("proxy_required", "allowed_connection_types", "issuer_account", "version", "type", "tags"),
]


@pytest.fixture(scope="module")
def operator():
    return Operator()


@pytest.fixture(scope="module")
def known(operator):
    key = Key("account")
    template = {"pub": {"allow": ["{{name()}}.{{tag(a)}}"], "deny": ["{{tag(b)}}"]}, "subs": -1, "payload": -1}
    account = operator.add_account(signing_keys=[scoped(key, **template)], limits=STORING)
    account.scope = key
    return account


@pytest.fixture(scope="module")
def mode(operator, known):
    mode = OperatorMode(load_text(operator.configuration()).options.access, PythonLog(), on_change=lambda _: None)
    mode.open()
    assert decide(mode, make_user(known)) is not None
    return mode


def decide(mode, user, **fields):
    presented = {**user.presented(NONCE), **fields}
    connect = json.dumps(presented, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return mode.decide(Login(connect=connect, nonce=NONCE, remote_address="127.0.0.1:1"))


def strange(generator, issuer, key):
    """Return claims of a user in which some fields are odd."""
    nats = {"type": "user", "version": 2, **ANY_USER}
    body = {"iss": issuer.public, "sub": key.public, "iat": 1_700_000_000, "name": "ada"}
    for _ in range(generator.randint(1, 4)):
        target = generator.choice([nats, nats, body])
        target[generator.choice(FIELDS)] = generator.choice(ODD)
    return issuer.token({**body, "nats": body.get("nats", nats)})


@pytest.mark.parametrize("seed", range(4))
def test_strange_claims_of_a_stranger_are_refused(mode, seed):
    generator = random.Random(seed)
    for _ in range(150):
        issuer, key = Key("account"), Key("user")

        assert decide(mode, User(key, strange(generator, issuer, key))) is None


@pytest.mark.parametrize("seed", range(4))
def test_strange_claims_of_a_known_account_break_nothing(mode, known, seed):
    """The holder of an account's key is let in or refused; what the engine is told fits its numbers."""
    generator = random.Random(seed)
    for _ in range(150):
        key = Key("user")
        verdict = decide(mode, User(key, strange(generator, known.key, key)))
        if verdict is not None:
            told = json.loads(verdict.to_json())
            assert told["account"] == known.public
            assert all(0 <= value < 2**63 for value in told.values() if isinstance(value, int))


@pytest.mark.parametrize("name", [*(value for value in ODD if isinstance(value, str)), "*.x", "a.>"])
def test_names_of_users_fill_templates_with_subjects_or_nothing(mode, known, name):
    for tags in ([f"a:{name}", "b:x"], ["a:x", f"b:{name}"]):
        user = make_user(known, issuer=known.scope, claimed={}, name=name, tags=tags)

        verdict = decide(mode, user)

        if verdict is not None:
            for subject in (*(verdict.permissions.publish.allow or ()), *verdict.permissions.publish.deny):
                assert all(token and not any(letter.isspace() for letter in token) for token in subject.split("."))


@pytest.mark.parametrize(
    "connect", [b"", b"{", b"[]", b"null", b"\xff", b'{"jwt": 1}', b'{"jwt": null}', b'{"jwt": []}']
)
def test_unreadable_connects_are_refused(mode, connect):
    assert mode.decide(Login(connect=connect, nonce=NONCE, remote_address="")) is None
