"""Answers of services: what counts, and what of them can be wrong."""

import os
import time

import pytest

from jetlake.server.authentication.presented import Login, Presented
from jetlake.server.callout.authorization_answer import (
    REASON_LENGTH_MAX,
    RefusedAnswerError,
    open_answer,
)
from jetlake.server.callout.authorization_request import ServerDescription, make_request
from jetlake.server.callout.delegation import Delegation
from jetlake.server.callout.identity import Identity
from tests.compatibility.callout_service import Asked, CalloutService, CurveKey, read_token
from tests.compatibility.claims import Key

NOW = time.time()


class Exchange:
    """One request, and what a service makes of it."""

    def __init__(self, xkey=None):
        self.identity = Identity(os.urandom(32))
        self.xkey = xkey
        delegation = Delegation(
            account="AUTH",
            issuer=Key("account").public,
            xkey=xkey.public if xkey else "",
            presented=Presented(user="ada", password="secret"),
            user="ada",
        )
        self.request = make_request(
            Login(connect=b"{}", remote_address="[::1]:4711", connection_id=4),
            delegation,
            ServerDescription(name="harbour", host="0.0.0.0", version="2.15.1"),
            self.identity,
            now_unix_s=NOW,
            timeout_s=2,
        )
        payload = self.request.payload if xkey is None else xkey.open(self.request.payload, self.identity.curve_key)
        self.asked = Asked(read_token(payload.decode()), "reply", self.identity.curve_key if xkey else "")
        self.service = CalloutService.__new__(CalloutService)
        self.service.issuer, self.service.xkey = Key("account"), xkey

    def open(self, payload, xkey=None):
        body = payload.encode() if isinstance(payload, str) else payload
        given = xkey or self.xkey
        return open_answer(
            body,
            identity=self.identity,
            xkey=given.public if given else "",
            user_key=self.request.user_key,
            now_unix_s=NOW,
        )

    def token(self, **claimed):
        return self.service.response(self.asked, jwt=self.service.user_token(self.asked, "APP"), **claimed)


@pytest.fixture(params=[False, True], ids=["plain", "encrypted"])
def exchange(request):
    return Exchange(CurveKey() if request.param else None)


def test_answer_names_the_user_and_who_signed_it(exchange):
    answer = exchange.open(exchange.service.sealed(exchange.asked, exchange.token()))

    assert answer.user.sub == exchange.asked.user_key
    assert answer.user.aud == "APP"
    assert answer.signer == exchange.service.issuer.public
    assert answer.was_encrypted == (exchange.xkey is not None)


def test_address_without_port_is_told(exchange):
    assert exchange.asked.client["host"] == "::1"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "no reason supplied"),
        (b"eyJ", "expected 3 chunks"),
        (b"eyJ.eyJ.eyJ", "header cannot be read"),
        (b"eyJ\xff", "not valid"),
        (b"eyJ" + b"x" * 2_000_000, "exceeds maximum"),
    ],
    ids=["empty", "short", "no JSON", "no text", "long"],
)
def test_garbage_is_refused_with_a_reason(exchange, payload, reason):
    with pytest.raises(RefusedAnswerError, match=reason):
        exchange.open(payload)


@pytest.mark.parametrize(
    "payload", [b"nonsense", b"xkv1", b"xkv1" + b"n" * 24, b"xkv1" + b"n" * 100, b"xkv2" + b"n" * 100, b"\x00"]
)
def test_what_is_neither_a_token_nor_a_box_is_refused(payload):
    with pytest.raises(RefusedAnswerError, match="decrypting"):
        Exchange(CurveKey()).open(payload)


def test_sealed_answer_means_nothing_without_a_curve_key():
    exchange = Exchange()

    with pytest.raises(RefusedAnswerError, match="not valid"):
        exchange.open(CurveKey().seal(exchange.token().encode(), exchange.identity.curve_key))


def test_token_of_another_kind_is_refused(exchange):
    user = exchange.service.user_token(exchange.asked, "APP")

    with pytest.raises(RefusedAnswerError, match="not authorization_response claim"):
        exchange.open(user)


def test_answer_signed_by_a_user_is_refused(exchange):
    with pytest.raises(RefusedAnswerError, match="must not issue"):
        exchange.open(exchange.token(signer=Key("user")))


def test_answer_that_was_changed_is_refused(exchange):
    head, body, signature = exchange.token().split(".")

    with pytest.raises(RefusedAnswerError, match="signature verification"):
        exchange.open(f"{head}.{body}.{signature[::-1]}")


@pytest.mark.parametrize(
    ("claimed", "reason"),
    [
        ({"sub": Key("user").public}, "not for expected user"),
        ({"sub": "UABC"}, "Subject must be a user public key"),
        ({"aud": "APP"}, "Audience must be a server public key"),
        ({"aud": Identity(b"other".ljust(32)).server_key}, "not for server"),
        ({"exp": int(NOW) - 1}, "claim is expired"),
        ({"nbf": int(NOW) + 60}, "claim is not yet valid"),
        ({"error": "no"}, "Only Error or Jwt can be set"),
        ({"issuer_account": "AABC"}, "issuer_account is not an account public key"),
    ],
    ids=["other user", "no user", "no server", "other server", "expired", "too early", "both", "no account"],
)
def test_answer_must_fit_the_request(exchange, claimed, reason):
    with pytest.raises(RefusedAnswerError, match=reason):
        exchange.open(exchange.token(**claimed))


def test_answer_without_a_decision_is_refused(exchange):
    with pytest.raises(RefusedAnswerError, match="Error or Jwt is required"):
        exchange.open(exchange.service.response(exchange.asked))


def test_reason_of_a_service_is_shortened_and_cannot_forge_lines(exchange):
    error = "no\r\n[INF] all is well" + "x" * 10_000

    with pytest.raises(RefusedAnswerError) as refusal:
        exchange.open(exchange.service.response(exchange.asked, error=error))

    reason = str(refusal.value)
    assert "\n" not in reason
    assert "\r" not in reason
    assert len(reason) < REASON_LENGTH_MAX + 100


@pytest.mark.parametrize(
    ("claimed", "reason"),
    [
        ({"exp": int(NOW) - 1}, "claim is expired"),
        ({"pub": {"allow": ["a..b"]}}, "consecutive"),
        ({"src": ["nowhere"]}, "invalid cidr"),
        ({"times": [{"start": "25:00:00", "end": "26:00:00"}]}, "time range"),
        ({"subs": "many"}, "cannot be read"),
    ],
    ids=["expired", "subject", "network", "times", "type"],
)
def test_user_must_be_valid(exchange, claimed, reason):
    token = exchange.service.user_token(exchange.asked, "APP", **claimed)

    with pytest.raises(RefusedAnswerError, match=reason):
        exchange.open(exchange.service.response(exchange.asked, jwt=token))


def test_user_with_another_key_is_refused(exchange):
    token = exchange.service.user_token(exchange.asked, "APP", key=Key("user").public)

    with pytest.raises(RefusedAnswerError, match="Expected authorized user"):
        exchange.open(exchange.service.response(exchange.asked, jwt=token))
