"""Auth callout by a configuration file: who is asked about, and what the answer makes of a client."""

from __future__ import annotations

import json
import time

import pytest

from tests.compatibility.callout_service import CurveKey
from tests.compatibility.callout_site import CalloutSite, Start, information, refused
from tests.compatibility.claims import EXPIRY_SECONDS, Key


@pytest.fixture
def site(start_callout: Start) -> CalloutSite:
    return start_callout()


def test_client_comes_into_the_account_that_the_service_names(start_callout: Start, xkey: CurveKey | None) -> None:
    site = start_callout(xkey=xkey)

    client = site.come_in("APP", name="ada lovelace")

    about = information(client)
    assert (about["user"], about["account"]) == ("ada lovelace", "APP")
    assert "permissions" not in about


def test_user_keeps_its_own_name_if_the_service_gives_none(site: CalloutSite) -> None:
    assert information(site.come_in("APP"))["user"] == "ada"


def test_client_with_a_token_is_shown_without_it(site: CalloutSite) -> None:
    client, asked = site.ask(auth_token="s3cr3t")

    assert asked.connect["auth_token"] == "s3cr3t"
    assert asked.client["user"] == "[REDACTED]"
    site.service.admit(asked, "APP")
    client.expect_pong()
    assert information(client)["user"] == "[REDACTED]"


def test_request_says_who_asks_to_come_in(start_callout: Start, xkey: CurveKey | None) -> None:
    site = start_callout(xkey=xkey, further="server_tags: [ north, BLUE ]")
    before = int(time.time())

    presented = {"user": "ada", "pass": "secret", "name": "till", "lang": "test", "version": "1.2.3", "protocol": 1}
    client, asked = site.ask(**presented)

    claims, nats = asked.claims, asked.claims["nats"]
    assert claims["aud"] == "nats-authorization-request"
    assert claims["sub"] == site.issuer.public
    assert before + 5 <= claims["exp"] <= int(time.time()) + 5
    assert before <= claims["iat"] <= int(time.time())
    assert len(claims["jti"]) == 52
    assert (nats["type"], nats["version"]) == ("authorization_request", 2)
    assert claims["iss"] == asked.server_id
    server = dict(nats["server_id"])
    assert (server.pop("id"), server.pop("version")) == (client.info["server_id"], client.info["version"])
    assert server.pop("xkey", "") == asked.server_xkey
    assert server == {"name": "harbour", "host": "127.0.0.1", "tags": ["north", "blue"]}
    about = dict(nats["client_info"])
    assert about.pop("id") > 1
    assert about == {"host": "127.0.0.1", "user": "ada", "name": "till", "kind": "Client", "type": "nats"}
    assert asked.connect == presented
    assert nats["user_nkey"].startswith("U")
    assert "client_tls" not in nats


def test_every_request_is_about_another_key(site: CalloutSite) -> None:
    keys = {site.ask(user="ada")[1].user_key for _ in range(3)}

    assert len(keys) == 3


@pytest.mark.parametrize(
    "presented", [{}, {"user": "nobody", "pass": "x"}, {"user": "local", "pass": "wrong"}, {"nkey": "UNKNOWN"}]
)
def test_service_is_asked_about_clients_that_the_file_refuses(site: CalloutSite, presented: dict[str, str]) -> None:
    client, asked = site.ask(**presented)

    assert asked.connect.get("user", "") == presented.get("user", "")
    site.service.admit(asked, "APP")
    client.expect_pong()


def test_service_is_asked_about_users_that_the_file_would_admit(site: CalloutSite) -> None:
    client, asked = site.ask(user="local", **{"pass": "pwd"})

    site.service.refuse(asked, "not today")
    client.expect_error_and_closed("Authorization Violation")


def test_auth_users_come_in_by_the_file_alone(site: CalloutSite) -> None:
    client = site.local("admin")

    assert information(client)["account"] == "SYS"


def test_auth_user_with_a_wrong_password_is_refused_without_asking(site: CalloutSite) -> None:
    client = site.client()

    client.send_connect(verbose=False, user="auth", **{"pass": "wrong"})

    client.expect_error_and_closed("Authorization Violation")
    site.service.nothing_asked()


def test_users_of_accounts_that_are_not_allowed_come_in_by_the_file(start_callout: Start) -> None:
    site = start_callout("allowed_accounts: [ APP ]")

    assert information(site.local("elsewhere"))["account"] == "OTHER"

    client, asked = site.ask(user="local", **{"pass": "pwd"})
    site.service.admit(asked, "OTHER")
    client.expect_pong()
    assert information(client)["account"] == "OTHER"


def test_user_of_an_account_that_is_not_allowed_is_asked_about_with_a_wrong_password(start_callout: Start) -> None:
    site = start_callout("allowed_accounts: [ APP ]")

    client, asked = site.ask(user="elsewhere", **{"pass": "wrong"})

    site.service.admit(asked, "APP")
    client.expect_pong()


def test_service_is_asked_about_the_user_of_clients_without_credentials(start_callout: Start) -> None:
    site = start_callout(further="no_auth_user: local")

    client, asked = site.ask()

    assert (asked.client["user"], asked.connect["user"], asked.connect["pass"]) == ("local", "local", "pwd")
    site.service.refuse(asked, "no")
    client.expect_error_and_closed("Authorization Violation")


def test_service_is_asked_about_a_client_that_does_not_say_connect(start_callout: Start) -> None:
    site = start_callout(further="no_auth_user: local")
    client = site.client()
    client.send(b"PING\r\n")
    asked = site.service.next()

    site.service.answer(asked, b"")

    client.expect_error_and_closed("Authorization Violation")


def test_empty_answer_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        site.service.answer(asked, b"")


def test_error_refuses(start_callout: Start, xkey: CurveKey | None) -> None:
    site = start_callout(xkey=xkey)

    with refused(site) as asked:
        site.service.refuse(asked, "BAD CREDENTIALS")

    site.server.wait_for_log("BAD CREDENTIALS")


@pytest.mark.parametrize(
    "payload",
    [b"nonsense", b"eyJ", b"eyJ.eyJ.eyJ", b"\xff\xfe", b"xkv1", b"x" * 5000],
    ids=["text", "start of a token", "no token", "bytes", "start of a box", "long"],
)
def test_garbage_refuses(start_callout: Start, xkey: CurveKey | None, payload: bytes) -> None:
    site = start_callout(xkey=xkey)

    with refused(site) as asked:
        site.service.answer(asked, payload)

    site.come_in("APP")


def test_answer_after_a_refusal_comes_too_late(site: CalloutSite) -> None:
    with refused(site) as asked:
        site.service.answer(asked, b"no")
        site.service.admit(asked, "APP")


def test_plain_answer_is_taken_though_the_request_was_encrypted(start_callout: Start) -> None:
    site = start_callout(xkey=CurveKey())
    client, asked = site.ask(user="ada")

    site.service.answer(asked, site.service.response(asked, jwt=site.service.user_token(asked, "APP")))

    client.expect_pong()


def test_answer_encrypted_by_another_key_refuses(start_callout: Start) -> None:
    site = start_callout(xkey=CurveKey())

    with refused(site) as asked:
        token = site.service.response(asked, jwt=site.service.user_token(asked, "APP"))
        site.service.answer(asked, CurveKey().seal(token.encode(), asked.server_xkey))


def test_answer_for_another_server_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP")
        other = Key("user").public.replace("U", "N", 1)
        site.service.answer(asked, site.service.response(asked, jwt=token, aud=other))


def test_answer_about_another_user_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP")
        site.service.answer(asked, site.service.response(asked, jwt=token, sub=Key("user").public))
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP", key=Key("user").public)
        site.service.answer(asked, site.service.response(asked, jwt=token))


def test_answer_of_before_does_not_let_the_next_one_in(site: CalloutSite) -> None:
    client, asked = site.ask(user="ada")
    token = site.service.admit(asked, "APP")
    client.expect_pong()

    with refused(site) as again:
        site.service.answer(again, site.service.response(again, jwt=token))


def test_user_signed_by_another_key_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP", signer=Key("account"))
        site.service.answer(asked, site.service.response(asked, jwt=token))


def test_answer_signed_by_another_key_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP")
        site.service.answer(asked, site.service.response(asked, jwt=token, signer=Key("account")))


def test_encrypted_answer_may_be_signed_by_any_key(start_callout: Start) -> None:
    site = start_callout(xkey=CurveKey())
    client, asked = site.ask(user="ada")
    token = site.service.user_token(asked, "APP")

    response = site.service.response(asked, jwt=token, signer=Key("account"))
    site.service.answer(asked, site.service.sealed(asked, response))

    client.expect_pong()


def test_answer_signed_by_another_key_for_the_issuer_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP")
        claimed = {"jwt": token, "issuer_account": site.issuer.public}
        site.service.answer(asked, site.service.response(asked, signer=Key("account"), **claimed))


def test_user_with_an_issuer_account_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        site.service.admit(asked, "APP", issuer_account=site.issuer.public)


@pytest.mark.parametrize("account", ["", "NOWHERE", "app"])
def test_account_that_is_not_there_refuses(site: CalloutSite, account: str) -> None:
    with refused(site) as asked:
        site.service.admit(asked, account)


@pytest.mark.parametrize("account", ["$G", "SYS", "AUTH"])
def test_service_may_name_any_account(site: CalloutSite, account: str) -> None:
    assert information(site.come_in(account))["account"] == account


@pytest.mark.parametrize("both", [{"jwt": "x", "error": "y"}, {}])
def test_answer_with_neither_or_both_of_user_and_error_refuses(site: CalloutSite, both: dict[str, str]) -> None:
    with refused(site) as asked:
        site.service.answer(asked, site.service.response(asked, **both))


def test_expired_answer_refuses(site: CalloutSite) -> None:
    with refused(site) as asked:
        token = site.service.user_token(asked, "APP")
        site.service.answer(asked, site.service.response(asked, jwt=token, exp=int(time.time()) - 5))


@pytest.mark.parametrize("times", [{"exp": -5}, {"nbf": 60}], ids=["expired", "not yet"])
def test_user_whose_time_is_not_now_refuses(site: CalloutSite, times: dict[str, int]) -> None:
    with refused(site) as asked:
        now = int(time.time())
        site.service.admit(asked, "APP", **{name: now + seconds for name, seconds in times.items()})


def test_user_that_must_come_through_a_proxy_is_refused(site: CalloutSite) -> None:
    with refused(site) as asked:
        site.service.admit(asked, "APP", proxy_required=True)


def test_user_of_an_unknown_connection_type_is_refused(site: CalloutSite) -> None:
    with refused(site) as asked:
        site.service.admit(asked, "APP", allowed_connection_types=["CARRIER_PIGEON"])


def test_user_outside_of_its_times_is_refused(site: CalloutSite) -> None:
    hour = (time.gmtime().tm_hour + 6) % 24
    times = [{"start": f"{hour:02}:00:00", "end": f"{hour:02}:59:59"}]

    with refused(site) as asked:
        site.service.admit(asked, "APP", times=times, times_location="UTC")


def test_client_ends_when_its_user_expires(site: CalloutSite) -> None:
    client = site.come_in("APP", exp=int(time.time()) + EXPIRY_SECONDS)

    assert 0 < information(client)["expires"] <= EXPIRY_SECONDS * 1_000_000_000
    client.expect_error_and_closed("User Authentication Expired")


def test_permissions_are_those_of_the_claims(site: CalloutSite) -> None:
    permissions = {
        "pub": {"allow": ["orders.>", "me", "$SYS.REQ.USER.INFO"], "deny": ["orders.secret"]},
        "sub": {"deny": ["x"]},
    }
    client = site.come_in("APP", **permissions)

    about = information(client)["permissions"]
    client.send(b"PUB orders.secret 0\r\n\r\n")
    client.expect_error('Permissions Violation for Publish to "orders.secret"')
    client.send(b"SUB x 1\r\n")
    client.expect_error('Permissions Violation for Subscription to "x"')

    assert set(about["publish"]["allow"]) == {"orders.>", "me", "$SYS.REQ.USER.INFO"}
    assert about["publish"]["deny"] == ["orders.secret"]
    assert about["subscribe"] == {"deny": ["x"]}


def test_right_to_answer_is_that_of_the_claims(site: CalloutSite) -> None:
    client = site.come_in("APP", sub={"allow": ["work", "me"]}, resp={"max": 1, "ttl": 60_000_000_000})
    other = site.come_in("APP", name="asking")
    client.send(b"SUB work 1\r\n")
    client.expect_pong()

    other.send(b"SUB answers 1\r\nPUB work answers 0\r\n\r\n")
    client.expect(b"MSG work 1 answers 0\r\n\r\n")
    client.send(b"PUB answers 2\r\nhi\r\nPUB answers 2\r\nhi\r\n")

    other.expect(b"MSG answers 1 2\r\nhi\r\n")
    client.expect_error('Permissions Violation for Publish to "answers"')


def test_user_without_permissions_does_not_have_those_of_users_in_the_file(site: CalloutSite) -> None:
    client = site.come_in("LIMITED")

    client.send(b"SUB else 1\r\nPUB else 0\r\n\r\n")

    client.expect(b"MSG else 1 0\r\n\r\n")


def test_limits_are_those_of_the_account(site: CalloutSite) -> None:
    client = site.come_in("LIMITED")

    client.send(b"PUB limited.x 4000\r\n" + b"x" * 4000 + b"\r\n")

    client.expect_error_and_closed("Maximum Payload Violation")


def test_limits_of_zero_in_the_claims_do_not_limit(site: CalloutSite) -> None:
    client = site.come_in("APP", unlimited=False, subs=0, payload=0, data=0)

    client.send(b"SUB x 1\r\nPUB x 2\r\nhi\r\n")

    client.expect(b"MSG x 1 2\r\nhi\r\n")


def test_nobody_in_the_account_of_the_service_may_ask_it(site: CalloutSite) -> None:
    client = site.come_in("AUTH")

    for each in (client, site.service.client):
        each.send(b"PUB $SYS.REQ.USER.AUTH x 0\r\n\r\n")
        each.expect_error('Permissions Violation for Publish to "$SYS.REQ.USER.AUTH"')

    assert information(client)["permissions"]["publish"] == {"deny": ["$SYS.REQ.USER.AUTH"]}


def test_clients_are_asked_about_side_by_side(site: CalloutSite) -> None:
    waiting = [site.ask(user=f"user-{number}") for number in range(20)]

    for client, asked in reversed(waiting):
        site.service.admit(asked, "APP", name=asked.connect["user"] + "!")
        client.expect_pong()

    assert information(waiting[7][0])["user"] == "user-7!"


def test_client_that_goes_before_the_answer_leaves_nothing_behind(site: CalloutSite) -> None:
    client, asked = site.ask(user="ada")
    client.close()

    site.service.admit(asked, "APP")

    assert information(site.come_in("APP", name="next"))["user"] == "next"


def test_service_that_does_not_answer_refuses(start_callout: Start) -> None:
    site = start_callout()

    with refused(site):
        pass


def test_missing_service_refuses(start_callout: Start) -> None:
    site = start_callout()
    site.service.client.send(b"UNSUB 1\r\n")
    site.service.client.expect_pong()
    client = site.client()

    client.send_connect(verbose=False, user="ada")

    client.expect_error_and_closed("Authorization Violation")


def test_account_of_the_service_is_told_of_refusals(site: CalloutSite) -> None:
    listener = site.service.client
    listener.send(b"SUB $SYS.ACCOUNT.CLIENT.AUTH.ERR 7\r\n")
    listener.expect_pong()

    with refused(site, user="ada", name="till", lang="test", version="1.2.3") as asked:
        site.service.refuse(asked, "BAD CREDENTIALS")

    frame = listener.read_line()
    assert frame.startswith(b"MSG $SYS.ACCOUNT.CLIENT.AUTH.ERR 7 "), frame
    event = json.loads(frame.partition(b"\r\n")[2])
    assert event["type"] == "io.nats.server.advisory.v1.client_disconnect"
    assert event["reason"] == "Auth callout service returned an error: BAD CREDENTIALS"
    assert event["client"]["user"] == "ada"
    assert event["client"]["acc"] == "AUTH"
    assert (event["client"]["name"], event["client"]["lang"], event["client"]["ver"]) == ("till", "test", "1.2.3")
    assert event["server"]["name"] == "harbour"


def test_system_account_is_told_of_clients_that_come_and_are_refused(site: CalloutSite) -> None:
    admin = site.local("admin")
    admin.send(b"SUB $SYS.ACCOUNT.APP.CONNECT 1\r\nSUB $SYS.SERVER.*.CLIENT.AUTH.ERR 2\r\n")
    admin.expect_pong()

    site.come_in("APP", name="ada lovelace")
    came = json.loads(admin.read_line().partition(b"\r\n")[2])
    with refused(site, user="eve") as asked:
        site.service.answer(asked, b"")
    left = admin.read_line()

    assert (came["client"]["user"], came["client"]["acc"]) == ("ada lovelace", "APP")
    assert b".CLIENT.AUTH.ERR 2 " in left
