"""Whom a service decides about by a file, and what its answers make of them."""

import time

import pytest

from jetlake.server.authentication.presented import Login, Presented
from jetlake.server.authentication.verdict import Verdict
from jetlake.server.callout.admitted import read_admitted
from jetlake.server.callout.authorization_answer import AuthorizationAnswer, RefusedAnswerError
from jetlake.server.callout.configured import ConfiguredCallout
from jetlake.server.callout.delegation import Delegation, without_callout
from jetlake.server.claims.model import UserClaimBody, UserClaims
from jetlake.server.options.accounts import AccessOptions, Account
from jetlake.server.options.callout import CalloutOptions
from jetlake.server.options.users import Permissions, SubjectPermissions
from jetlake.server.options.users import User as FileUser
from tests.compatibility.claims import Key

ISSUER = Key("account").public
ACCESS = AccessOptions(
    accounts=(Account(name="AUTH"), Account(name="APP", max_payload_bytes=100), Account(name="OTHER")),
    users=(FileUser(name="auth", password="pwd", account="AUTH"), FileUser(name="bob", password="b", account="APP")),
)
LOGIN = Login(connect=b"{}", remote_address="127.0.0.1:4711")


def callout(**changes):
    options = {"issuer": ISSUER, "account": "AUTH", "auth_users": ("auth",), **changes}
    return ConfiguredCallout(ACCESS, CalloutOptions(**options))


def conclude(service=None, *, was_encrypted=False, signer=ISSUER, **claimed):
    fields = {name: claimed.pop(name) for name in ("iss", "aud", "name", "exp") if name in claimed}
    user = UserClaims(
        **{"iss": ISSUER, "aud": "APP", "sub": Key("user").public, **fields}, nats=UserClaimBody(**claimed)
    )
    answer = AuthorizationAnswer(user=user, user_jwt="eyJ", signer=signer, was_encrypted=was_encrypted)
    return (service or callout()).conclude(LOGIN, Delegation(account="AUTH", issuer=ISSUER, user="ada"), answer)


def test_auth_users_are_what_the_file_says():
    admitted = callout().review(Presented(user="auth"), Verdict(account="AUTH", user="auth"))

    assert admitted.permissions.publish.deny == ("$SYS.REQ.USER.AUTH",)
    assert callout().review(Presented(user="auth"), None) is None


@pytest.mark.parametrize("verdict", [None, Verdict(account="APP", user="bob"), Verdict(account="$G", user="eve")])
def test_everybody_else_is_asked_about(verdict):
    delegation = callout().review(Presented(user="bob", password="b"), verdict)

    assert (delegation.account, delegation.issuer) == ("AUTH", ISSUER)


def test_accounts_that_are_not_allowed_stay_with_the_file():
    service = callout(allowed_accounts=("OTHER",))
    verdict = Verdict(account="APP", user="bob")

    assert service.review(Presented(user="bob"), verdict) is verdict
    assert isinstance(service.review(Presented(user="bob"), None), Delegation)


def test_user_of_a_certificate_or_without_credentials_is_named_to_the_service():
    verdict = Verdict(account="APP", user="bob")

    unsaid = callout().review(Presented(), verdict).presented
    mapped = callout().review(Presented(user="CN=x", password="p"), verdict).presented

    assert (unsaid.user, unsaid.password) == ("bob", "b")
    assert (mapped.user, mapped.password) == ("bob", "p")


def test_what_leads_nowhere_is_said():
    service = callout(account="NOWHERE", auth_users=("auth", "nobody"))

    assert service.mistakes() == [
        'Authorization callout user "nobody" not valid',
        'Authorization callout account "NOWHERE" not valid',
    ]
    assert service.review(Presented(user="ada"), None) is None
    assert callout().mistakes() == []


def test_user_comes_into_the_account_with_its_limits_and_expiry():
    expires = int(time.time()) + 60

    verdict = conclude(name="Ada", exp=expires, subs=5, payload=1000)

    assert (verdict.account, verdict.user) == ("APP", "Ada")
    assert (verdict.max_subscriptions, verdict.max_payload_bytes) == (5, 100)
    assert verdict.expires_unix_ms == expires * 1000
    assert read_admitted(verdict.details).user_jwt == "eyJ"


def test_limits_of_zero_are_none():
    verdict = conclude(subs=0, payload=0)

    assert (verdict.max_subscriptions, verdict.max_payload_bytes) == (None, 100)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"iss": Key("account").public}, "Wrong issuer"),
        ({"signer": Key("account").public}, "signing key is unknown"),
        ({"issuer_account": ISSUER}, "issuer_account"),
        ({"aud": "NOWHERE"}, "No valid account"),
        ({"src": ("10.0.0.0/8",)}, "may not connect from 127.0.0.1"),
        ({"allowed_connection_types": ("WEBSOCKET",)}, "may not connect as STANDARD"),
        ({"proxy_required": True}, "through a proxy"),
    ],
    ids=["issuer", "signer", "issuer account", "account", "network", "connection type", "proxy"],
)
def test_answer_that_must_not_count_is_refused(changes, reason):
    with pytest.raises(RefusedAnswerError, match=reason):
        conclude(**changes)


def test_encrypted_answer_may_be_signed_by_any_key():
    assert conclude(was_encrypted=True, signer=Key("account").public).account == "APP"


def test_subject_of_the_service_is_denied_once():
    given = Permissions(publish=SubjectPermissions(allow=(">",), deny=("secret",)))

    denied = without_callout(given)

    assert denied.publish.deny == ("secret", "$SYS.REQ.USER.AUTH")
    assert without_callout(denied) is denied
