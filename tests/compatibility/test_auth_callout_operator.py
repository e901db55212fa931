"""Auth callout in operator mode: the claims of an account name the service that decides about its users."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.compatibility.callout_service import Asked, CalloutService, CurveKey
from tests.compatibility.callout_site import information
from tests.compatibility.claims import EXPIRY_SECONDS, Key, Operator, User, make_user, scoped, user_claims
from tests.compatibility.monitored import monitored_of
from tests.compatibility.operator_site import Site
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient
from tests.compatibility.wire import RawClient

DENIED: dict[str, Any] = {"pub": {"deny": [">"]}, "sub": {"deny": [">"]}}


class CalloutOperator:
    """An operator with the account of a service, and one that the service may put clients into."""

    def __init__(self, start_site: Callable[..., Site], xkey: CurveKey | None = None, **options: Any) -> None:
        self.operator = Operator()
        self.worker = Key("user")
        self.signing_key, self.scoped_key, self.sentinel_key = Key("account"), Key("account"), Key("account")
        template = {"pub": {"allow": ["{{name()}}.>", "$SYS.REQ.USER.INFO", "me"]}, "sub": {"allow": ["me"]}}
        self.app = self.operator.add_account(
            name="app", signing_keys=[self.signing_key.public, scoped(self.scoped_key, **template)]
        )
        self.forbidden = self.operator.add_account(name="forbidden")
        allowed = [self.app.public] if options.pop("allows", "app") == "app" else ["*"]
        authorization = {"auth_users": [self.worker.public], "allowed_accounts": allowed}
        if xkey is not None:
            authorization["xkey"] = xkey.public
        self.auth = self.operator.add_account(
            name="auth",
            authorization=authorization,
            signing_keys=[scoped(self.sentinel_key, **DENIED)],
        )
        self.sentinel = make_user(self.auth, name="sentinel", tags=["guest"], **DENIED)
        further = options.pop("further", "authorization { timeout: 5s }")
        if options.pop("has_default", False):
            bearer = make_user(self.auth, name="anybody", bearer_token=True, **DENIED)
            further += f"\ndefault_sentinel: {bearer.jwt}"
        self.site = start_site(
            operator=self.operator,
            preloads=self.operator.accounts,
            further=further,
            **{"resolver": "MEMORY", **options},
        )
        service = self.site.server.client()
        service.connect(
            headers=True, **User(self.worker, user_claims(self.auth, self.worker)).presented(service.info["nonce"])
        )
        self.service = CalloutService(service, self.auth.key, xkey)
        self.clients = [service]

    def client(self) -> RawClient:
        """A client that has said nothing yet."""
        self.clients.append(self.site.server.client())
        return self.clients[-1]

    def ask(self, user: User | None = None, **presented: Any) -> tuple[RawClient, Asked]:
        """A client that shows claims and something besides, and what the service is asked about it."""
        client = self.client()
        shown = (user or self.sentinel).presented(client.info["nonce"])
        client.send_connect(verbose=False, **{**shown, "protocol": 0, **presented})
        return client, self.service.next()

    def admit(self, asked: Asked, signer: Key | None = None, **claimed: Any) -> str:
        """Let a client into the account of the application, unless another key signs for another account."""
        return self.service.admit(asked, signer=signer or self.app.key, **claimed)

    def come_in(self, **claimed: Any) -> RawClient:
        client, asked = self.ask(auth_token="ticket")
        self.admit(asked, **claimed)
        client.expect_pong()
        return client

    @contextmanager
    def refused(self) -> Iterator[Asked]:
        """A client that is refused after what happens inside."""
        client, asked = self.ask(auth_token="ticket")
        yield asked
        client.expect_error_and_closed("Authorization Violation")

    def close(self) -> None:
        for client in self.clients:
            client.close()


Start = Callable[..., CalloutOperator]


@pytest.fixture
def start(start_site: Callable[..., Site]) -> Iterator[Start]:
    made: list[CalloutOperator] = []

    def start(**options: Any) -> CalloutOperator:
        made.append(CalloutOperator(start_site, **options))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def callout(start: Start) -> CalloutOperator:
    return start()


def test_client_comes_into_the_account_that_signed_its_user(start: Start, xkey: CurveKey | None) -> None:
    callout = start(xkey=xkey)

    about = information(callout.come_in(name="ada"))

    assert (about["user"], about["account"], about["account_name"]) == ("ada", callout.app.public, "app")
    assert about["user_name"] == "sentinel"
    assert "permissions" not in about


def test_request_says_with_which_claims_the_client_came(start: Start, xkey: CurveKey | None) -> None:
    callout = start(xkey=xkey)
    client, asked = callout.ask(auth_token="ticket")

    assert asked.claims["sub"] == callout.auth.public
    assert asked.connect["jwt"] == callout.sentinel.jwt
    assert asked.connect["auth_token"] == "ticket"
    assert asked.connect["sig"] == callout.sentinel.key.sign(client.info["nonce"])
    about = dict(asked.client)
    assert about.pop("id") > 1
    assert about == {
        "host": "127.0.0.1",
        "user": callout.sentinel.key.public,
        "name_tag": "sentinel",
        "tags": ["guest"],
        "kind": "Client",
        "type": "nats",
        "nonce": client.info["nonce"],
    }


def test_auth_users_come_in_by_their_claims(callout: CalloutOperator) -> None:
    about = information(callout.service.client)

    assert (about["user"], about["account"]) == (callout.worker.public, callout.auth.public)
    assert about["permissions"]["publish"] == {"deny": ["$SYS.REQ.USER.AUTH"]}


def test_users_of_accounts_without_a_service_come_in_by_their_claims(callout: CalloutOperator) -> None:
    client = callout.client()

    client.connect(**make_user(callout.app).presented(client.info["nonce"]))

    callout.service.nothing_asked()


def test_sentinel_may_be_signed_by_a_scoped_key(callout: CalloutOperator) -> None:
    sentinel = make_user(callout.auth, issuer=callout.sentinel_key, claimed={})

    client, asked = callout.ask(sentinel)

    callout.admit(asked, name="ada")
    client.expect_pong()


def test_service_is_asked_about_clients_without_claims(start: Start) -> None:
    callout = start(has_default=True)
    client = callout.client()
    client.send_connect(verbose=False, auth_token="ticket")
    asked = callout.service.next()

    assert asked.client["name_tag"] == "anybody"
    callout.admit(asked, name="ada")
    client.expect_pong()
    assert information(client)["account"] == callout.app.public


def test_service_is_asked_about_clients_over_websocket(start: Start) -> None:
    further = websocket_config('jwt_cookie: "ticket"') + "authorization { timeout: 5s }"
    callout = start(further=further)
    bearer = make_user(callout.auth, bearer_token=True, **DENIED)
    with WebSocketClient(callout.site.server, headers={"Cookie": f"ticket={bearer.jwt}"}) as client:
        client.send_connect(verbose=False)
        asked = callout.service.next()

        assert (asked.client["type"], asked.connect["jwt"]) == ("websocket", bearer.jwt)
        callout.admit(asked)
        client.expect_pong()


@pytest.mark.parametrize("claimed", [{}, {"name": "ada"}], ids=["without a name", "with a name"])
def test_client_is_shown_by_what_it_says_or_what_the_service_says(
    callout: CalloutOperator, claimed: dict[str, str]
) -> None:
    about = information(callout.come_in(**claimed))

    assert about["user"] == claimed.get("name", "[REDACTED]")


def test_signing_key_signs_for_its_account(callout: CalloutOperator) -> None:
    client, asked = callout.ask()

    callout.admit(asked, callout.signing_key, issuer_account=callout.app.public)

    client.expect_pong()
    assert information(client)["account"] == callout.app.public


def test_template_of_a_scoped_key_holds(callout: CalloutOperator) -> None:
    client, asked = callout.ask()
    callout.admit(asked, callout.scoped_key, unlimited=False, name="ada", issuer_account=callout.app.public)
    client.expect_pong()

    client.send(b"PUB eve.orders 0\r\n\r\nPUB ada.orders 0\r\n\r\n")

    client.expect_error('Permissions Violation for Publish to "eve.orders"')
    client.expect_pong()
    assert set(information(client)["permissions"]["publish"]["allow"]) == {"ada.>", "$SYS.REQ.USER.INFO", "me"}


def test_user_of_a_scoped_key_with_permissions_of_its_own_refuses(callout: CalloutOperator) -> None:
    with callout.refused() as asked:
        callout.admit(asked, callout.scoped_key, name="ada", issuer_account=callout.app.public)


def test_user_of_the_own_account_of_the_service_comes_in(callout: CalloutOperator) -> None:
    client, asked = callout.ask()

    callout.admit(asked, callout.auth.key)

    client.expect_pong()
    about = information(client)
    assert about["account"] == callout.auth.public
    assert about["permissions"]["publish"] == {"deny": ["$SYS.REQ.USER.AUTH"]}


def test_account_that_is_not_allowed_refuses(callout: CalloutOperator) -> None:
    with callout.refused() as asked:
        callout.admit(asked, callout.forbidden.key)


def test_any_account_may_be_allowed(start: Start) -> None:
    callout = start(allows="any")
    client, asked = callout.ask()

    callout.admit(asked, callout.forbidden.key)

    client.expect_pong()
    assert information(client)["account"] == callout.forbidden.public


def test_account_that_nobody_knows_refuses(start: Start) -> None:
    callout = start(allows="any")

    with callout.refused() as asked:
        callout.admit(asked, Key("account"))


def test_key_that_the_account_does_not_know_refuses(callout: CalloutOperator) -> None:
    with callout.refused() as asked:
        callout.admit(asked, Key("account"), issuer_account=callout.app.public)


def test_answer_signed_by_a_key_of_another_account_refuses(callout: CalloutOperator) -> None:
    with callout.refused() as asked:
        token = callout.service.user_token(asked, signer=callout.app.key)
        callout.service.answer(asked, callout.service.response(asked, jwt=token, signer=callout.app.key))


def test_encrypted_answer_may_be_signed_by_any_key(start: Start) -> None:
    callout = start(xkey=CurveKey())
    client, asked = callout.ask()
    token = callout.service.user_token(asked, signer=callout.app.key)

    response = callout.service.response(asked, jwt=token, signer=callout.app.key)
    callout.service.answer(asked, callout.service.sealed(asked, response))

    client.expect_pong()


def test_answer_may_be_signed_by_a_signing_key_of_the_service(callout: CalloutOperator) -> None:
    client, asked = callout.ask()
    token = callout.service.user_token(asked, signer=callout.app.key)

    callout.service.answer(asked, callout.service.response(asked, jwt=token, signer=callout.sentinel_key))

    client.expect_pong()


@pytest.mark.parametrize("payload", [b"", b"nonsense", b"eyJ.eyJ.eyJ"])
def test_garbage_refuses(callout: CalloutOperator, payload: bytes) -> None:
    with callout.refused() as asked:
        callout.service.answer(asked, payload)

    callout.come_in()


def test_error_refuses(callout: CalloutOperator) -> None:
    with callout.refused() as asked:
        callout.service.refuse(asked, "BAD CREDENTIALS")

    callout.site.server.wait_for_log("BAD CREDENTIALS")


def test_client_ends_when_its_user_expires(callout: CalloutOperator) -> None:
    client = callout.come_in(exp=int(time.time()) + EXPIRY_SECONDS)

    assert 0 < information(client)["expires"] <= EXPIRY_SECONDS * 1_000_000_000
    client.expect_error_and_closed("User Authentication Expired")


def test_permissions_are_those_of_the_claims(callout: CalloutOperator) -> None:
    client = callout.come_in(pub={"allow": ["orders.>"]})

    client.send(b"PUB else 0\r\n\r\n")

    client.expect_error('Permissions Violation for Publish to "else"')


def test_limits_of_zero_in_the_claims_do_not_limit(callout: CalloutOperator) -> None:
    client = callout.come_in(unlimited=False, subs=0, payload=0, data=0)

    client.send(b"SUB x 1\r\nPUB x 2\r\nhi\r\n")

    client.expect(b"MSG x 1 2\r\nhi\r\n")


def test_revoked_user_is_sent_away_and_the_others_stay(start: Start) -> None:
    callout = start(resolver="type: full")
    client, asked = callout.ask()
    callout.admit(asked)
    client.expect_pong()
    other = callout.come_in(name="other")
    admin = callout.site.admin()

    admin.push(callout.app, revocations={asked.user_key: int(time.time()) + 5})

    client.expect_error_and_closed("User Authentication Revoked")
    other.expect_pong()
    callout.service.nothing_asked()


def test_revocation_of_all_users_sends_away_those_the_service_let_in(start: Start) -> None:
    callout = start(resolver="type: full")
    client = callout.come_in(iat=int(time.time()) - 60)

    callout.site.admin().push(callout.app, revocations={"*": int(time.time()) - 30})

    client.expect_error_and_closed("User Authentication Revoked")


def test_service_that_is_named_later_decides(start: Start) -> None:
    callout = start(resolver="type: full")
    account = callout.operator.add_account(name="later")
    admin = callout.site.admin()
    admin.push(account)
    user, worker = make_user(account), Key("user")
    before = callout.site.client(user)

    admin.push(account, authorization={"auth_users": [worker.public]})

    running = callout.site.client(User(worker, user_claims(account, worker)))
    service = CalloutService(running, account.key)
    client = callout.client()
    client.send_connect(verbose=False, **{**user.presented(client.info["nonce"]), "protocol": 0})
    service.admit(service.next())
    client.expect_pong()
    before.expect_pong()


def test_account_of_the_service_is_told_of_refusals(callout: CalloutOperator) -> None:
    listener = callout.service.client
    listener.send(b"SUB $SYS.ACCOUNT.CLIENT.AUTH.ERR 7\r\n")
    listener.expect_pong()

    with callout.refused() as asked:
        callout.service.refuse(asked, "BAD CREDENTIALS")

    event = json.loads(listener.read_line().partition(b"\r\n")[2])
    assert event["reason"] == "Auth callout service returned an error: BAD CREDENTIALS"
    assert event["client"]["acc"] == callout.auth.public
    assert event["client"]["user"] == callout.sentinel.key.public


def test_client_is_shown_without_claims(start: Start) -> None:
    callout = start(flags=("-m", "-1"))
    client = callout.come_in(name="ada")
    client.expect_pong()

    pages = monitored_of(callout.site.server)
    (entry,) = pages.connections(f"?auth=1&acc={callout.app.public}")

    assert (entry["authorized_user"], entry["account"], entry["name_tag"]) == ("ada", callout.app.public, "app")
    assert entry["tags"] == ["guest"]
    assert "jwt" not in entry
    assert entry["issuer_key"] == callout.app.public


def test_sentinel_without_a_signature_is_refused(start: Start) -> None:
    callout = start()
    client = callout.client()

    client.send_connect(verbose=False, jwt=callout.sentinel.jwt)

    client.expect_error_and_closed("Authorization Violation")
    callout.service.nothing_asked()


def test_revoked_sentinel_is_refused(start: Start) -> None:
    callout = start(resolver="type: full")
    callout.site.admin().push(callout.auth, revocations={callout.sentinel.key.public: int(time.time()) + 5})
    client = callout.client()

    client.send_connect(verbose=False, **callout.sentinel.presented(client.info["nonce"]))

    client.expect_error_and_closed("Authorization Violation")
    callout.service.nothing_asked()


def test_callout_cannot_be_configured_beside_an_operator(start_server: Callable[..., Any]) -> None:
    operator = Operator()
    callout = f"authorization {{ auth_callout {{ issuer: {Key('account').public}, auth_users: [ auth ] }} }}"

    with pytest.raises(RuntimeError, match="operators do not allow authorization callouts to be configured directly"):
        start_server(config=operator.configuration(further=callout))


def test_claims_of_services_that_cannot_work_are_not_accepted(start: Start) -> None:
    callout = start(resolver="type: full")
    admin = callout.site.admin()

    for authorization in ({"allowed_accounts": [callout.app.public]}, {"auth_users": ["UABC"]}):
        reply = admin.push(callout.auth, authorization=authorization)
        assert reply["error"]["code"] == 500, reply
