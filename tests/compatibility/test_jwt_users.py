"""Operator mode: which claims let a user in, and which do not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable

import nats
import pytest

from tests.compatibility.claims import ANY_USER, EXPIRY_SECONDS, HEADER, Account, Key, Operator, User, make_user
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

HOUR = 3600


@pytest.fixture(scope="module")
def operator() -> Operator:
    return Operator()


@pytest.fixture(scope="module")
def account(operator: Operator) -> Account:
    return operator.add_account(name="shop")


@pytest.fixture(scope="module")
def signing_key() -> Key:
    return Key("account")


@pytest.fixture(scope="module")
def other(operator: Operator, signing_key: Key) -> Account:
    """A second account, which has a signing key."""
    return operator.add_account(name="other", signing_keys=[signing_key.public])


@pytest.fixture(scope="module")
def strict(operator: Operator) -> Account:
    return operator.add_account(name="strict", limits={"disallow_bearer": True})


@pytest.fixture(scope="module")
def server(server_kind, tmp_path_factory, operator, account, other, strict):
    from tests.compatibility.server_process import start_server_process

    process = start_server_process(server_kind, tmp_path_factory.mktemp(server_kind), config=operator.configuration())
    yield process
    process.stop()


def come_in(client: RawClient, user: User, **options: object) -> None:
    client.connect(**{**user.presented(client.info["nonce"]), **options})


def is_refused(server: ServerProcess, **options: object) -> None:
    with server.client() as client:
        client.send_connect(verbose=False, **options)
        client.expect_error_and_closed("Authorization Violation")


def refuse(server: ServerProcess, user: User, **options: object) -> None:
    with server.client() as client:
        client.send_connect(verbose=False, **{**user.presented(client.info["nonce"]), **options})
        client.expect_error_and_closed("Authorization Violation")


def test_info_asks_for_credentials_and_has_a_nonce(server: ServerProcess) -> None:
    with server.client() as client:
        assert client.info["auth_required"] is True
        assert len(client.info["nonce"]) >= 11


def test_user_comes_into_its_account(server: ServerProcess, account: Account) -> None:
    with server.client() as client:
        come_in(client, make_user(account))

        assert client.connected_info["remote_account"] == account.public


def test_accounts_do_not_see_each_other(server: ServerProcess, account: Account, other: Account) -> None:
    with server.client() as one, server.client() as same, server.client() as stranger:
        come_in(one, make_user(account))
        come_in(same, make_user(account))
        come_in(stranger, make_user(other))
        stranger.send(b"SUB > 1\r\n")
        stranger.expect_pong()
        same.send(b"SUB news 1\r\n")
        same.expect_pong()

        one.send(b"PUB news 2\r\nhi\r\n")

        same.expect(b"MSG news 1 2\r\nhi\r\n")
        stranger.expect_pong()


def test_user_of_a_signing_key_comes_in(server: ServerProcess, other: Account, signing_key: Key) -> None:
    with server.client() as client:
        come_in(client, make_user(other, issuer=signing_key))

        assert client.connected_info["remote_account"] == other.public


async def test_nats_py_comes_in_with_a_credentials_file(server: ServerProcess, account: Account, tmp_path) -> None:
    file = make_user(account).write(tmp_path / "user.creds")

    client = await nats.connect(server.url, user_credentials=str(file), allow_reconnect=False)
    subscription = await client.subscribe("greetings")
    await client.publish("greetings", b"hi")

    assert (await subscription.next_msg(timeout=60)).data == b"hi"
    await client.close()


def test_claims_of_version_1_let_a_user_in(server: ServerProcess, account: Account) -> None:
    key = Key("user")
    user = User(key, account.key.claims_of_version_1(key, "user", {"pub": {}, "sub": {}}))

    with server.client() as client:
        come_in(client, user)

        assert client.connected_info["remote_account"] == account.public


def test_signature_in_the_other_alphabet_is_accepted(server: ServerProcess, account: Account) -> None:
    user = make_user(account)
    with server.client() as client:
        presented = user.presented(client.info["nonce"])
        raw = base64.urlsafe_b64decode(presented["sig"] + "==")
        client.connect(**{**presented, "sig": base64.b64encode(raw).decode()})

        assert client.connected_info["remote_account"] == account.public


def test_client_without_claims_is_refused(server: ServerProcess) -> None:
    is_refused(server)
    is_refused(server, user="ada", **{"pass": "secret"})
    is_refused(server, auth_token="secret")
    is_refused(server, nkey=Key("user").public, sig="A" * 86)


@pytest.mark.parametrize("jwt", ["x", "a.b.c", "..", "eyJ.eyJ.eyJ", "é.é.é", "a" * 3000])
def test_text_that_is_no_token_is_refused(server: ServerProcess, jwt: str) -> None:
    is_refused(server, jwt=jwt, sig="A" * 86)


def test_signature_must_be_there_and_fit(server: ServerProcess, account: Account) -> None:
    user = make_user(account)

    is_refused(server, jwt=user.jwt)
    is_refused(server, jwt=user.jwt, sig="")
    is_refused(server, jwt=user.jwt, sig="!")
    is_refused(server, jwt=user.jwt, sig="A" * 86)
    refuse(server, user, sig=make_user(account).key.sign("nonce"))


def test_signature_of_another_connection_is_refused(server: ServerProcess, account: Account) -> None:
    user = make_user(account)
    with server.client() as one, server.client() as other_client:
        other_client.send_connect(verbose=False, **user.presented(one.info["nonce"]))

        other_client.expect_error_and_closed("Authorization Violation")


def test_claims_that_were_changed_are_refused(server: ServerProcess, account: Account, other: Account) -> None:
    user = make_user(account)
    header, body, signature = user.jwt.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    for change in ({"iss": other.public}, {"exp": 0, "name": "root"}, {"nats": {**claims["nats"], "tags": ["x"]}}):
        changed = base64.urlsafe_b64encode(json.dumps({**claims, **change}).encode()).decode().rstrip("=")
        refuse(server, User(user.key, f"{header}.{changed}.{signature}"))


@pytest.mark.parametrize(
    "header",
    [
        {"typ": "JWT", "alg": "none"},
        {"typ": "JWT", "alg": "HS256"},
        {"typ": "JWT", "alg": ""},
        {"typ": "JWS", "alg": HEADER["alg"]},
        {"alg": HEADER["alg"]},
    ],
    ids=str,
)
def test_other_algorithms_are_refused(server: ServerProcess, account: Account, header: dict[str, str]) -> None:
    key = Key("user")
    body = {"iat": int(time.time()), "iss": account.public, "sub": key.public}
    token = account.key.token({**body, "nats": {"type": "user", "version": 2, **ANY_USER}}, header)

    refuse(server, User(key, token))


def test_token_without_a_signature_is_refused(server: ServerProcess, account: Account) -> None:
    user = make_user(account)

    refuse(server, User(user.key, user.jwt.rpartition(".")[0] + "."))


def test_newer_claims_are_refused(server: ServerProcess, account: Account) -> None:
    refuse(server, make_user(account, version=3))


def test_claims_of_another_kind_are_refused(server: ServerProcess, operator: Operator, account: Account) -> None:
    key = Key("user")

    refuse(server, User(key, account.jwt()))
    refuse(server, User(key, operator.jwt()))
    refuse(server, User(key, account.key.claims(key, "activation", {"subject": ">", "kind": "stream"})))


def test_user_that_an_operator_or_a_user_signed_is_refused(
    server: ServerProcess, operator: Operator, account: Account
) -> None:
    for issuer in (operator.key, Key("user")):
        key = Key("user")
        refuse(server, User(key, issuer.claims(key, "user", {**ANY_USER, "issuer_account": account.public})))


def test_user_of_an_account_nobody_knows_is_refused(server: ServerProcess, operator: Operator) -> None:
    """An account that signs for itself is not one the operator has signed."""
    unknown = Account(Key("account"), operator, {})

    refuse(server, make_user(unknown))


def test_user_cannot_choose_another_account(
    server: ServerProcess, account: Account, other: Account, operator: Operator, signing_key: Key
) -> None:
    """CVE-2022-24450 and its kin: no claim and no option moves a user into an account that has not signed it."""
    for target in (other, operator.system):
        key = Key("user")
        refuse(server, User(key, account.key.claims(key, "user", {**ANY_USER, "issuer_account": target.public})))
        refuse(server, make_user(account), account=target.public)
    refuse(server, make_user(account, issuer=signing_key))


def test_expired_user_is_refused(server: ServerProcess, account: Account) -> None:
    """CVE-2020-26892: the time in the claims holds."""
    refuse(server, make_user(account, exp=int(time.time()) - 10))


def test_user_that_is_not_valid_yet_is_refused(server: ServerProcess, account: Account) -> None:
    refuse(server, make_user(account, nbf=int(time.time()) + HOUR))


def test_connection_ends_when_the_claims_expire(server: ServerProcess, account: Account) -> None:
    with server.client() as client:
        come_in(client, make_user(account, exp=int(time.time()) + EXPIRY_SECONDS))

        client.expect_error_and_closed("User Authentication Expired")


@pytest.mark.parametrize("second", [-1, -5, -(2**40)])
def test_claims_that_expired_before_1970_let_a_user_in_and_end_at_once(
    server: ServerProcess, account: Account, second: int
) -> None:
    """Negative times are not looked at when a user comes, and are over as soon as it is in."""
    with server.client() as client:
        client.send_connect(verbose=False, **make_user(account, exp=second).presented(client.info["nonce"]))

        assert b"-ERR 'User Authentication Expired'\r\n" in client.read_to_end()
    with server.client() as client:
        come_in(client, make_user(account))


@pytest.mark.parametrize("second", [-1, -5, -(2**63)])
def test_user_whose_claims_were_issued_before_1970_comes_in(
    server: ServerProcess, account: Account, second: int
) -> None:
    with server.client() as client:
        come_in(client, make_user(account, iat=second))

        assert client.connected_info["remote_account"] == account.public


def test_bearer_token_needs_no_signature(server: ServerProcess, account: Account) -> None:
    with server.client() as client:
        client.connect(jwt=make_user(account, bearer_token=True).jwt, protocol=1)

        assert client.connected_info["remote_account"] == account.public


def test_bearer_token_is_refused_if_the_account_disallows_it(server: ServerProcess, strict: Account) -> None:
    is_refused(server, jwt=make_user(strict, bearer_token=True).jwt)
    with server.client() as client:
        come_in(client, make_user(strict))


@pytest.mark.parametrize("networks", [["127.0.0.0/8"], ["10.0.0.0/8", "127.0.0.1/32"], "192.168.0.0/16,127.0.0.1/32"])
def test_user_from_one_of_its_networks_comes_in(server: ServerProcess, account: Account, networks: object) -> None:
    with server.client() as client:
        come_in(client, make_user(account, src=networks))


@pytest.mark.parametrize("networks", [["10.0.0.0/8"], ["127.0.0.1"], ["nonsense"], "192.168.0.0/16", ["::1/128"]])
def test_user_from_elsewhere_is_refused(server: ServerProcess, account: Account, networks: object) -> None:
    refuse(server, make_user(account, src=networks))


def hours(start_s: int, end_s: int) -> dict[str, str]:
    """Return a range of times of day around now, in UTC."""
    now = time.time()
    start, end = (time.strftime("%H:%M:%S", time.gmtime(now + offset)) for offset in (start_s, end_s))
    return {"start": start, "end": end}


def test_user_comes_in_at_its_hours(server: ServerProcess, account: Account) -> None:
    with server.client() as client:
        come_in(client, make_user(account, times=[hours(-HOUR, HOUR)], times_location="UTC"))
    with server.client() as client:
        come_in(client, make_user(account, times=[hours(HOUR, 2 * HOUR), hours(-HOUR, HOUR)], times_location="UTC"))


def test_user_is_refused_outside_its_hours(server: ServerProcess, account: Account) -> None:
    refuse(server, make_user(account, times=[hours(HOUR, 2 * HOUR)], times_location="UTC"))
    refuse(server, make_user(account, times=[{"start": "25:00:00", "end": "26:00:00"}], times_location="UTC"))
    refuse(server, make_user(account, times=[hours(-HOUR, HOUR)], times_location="Nowhere/At_All"))


def test_connection_ends_with_the_hours_of_its_user(server: ServerProcess, account: Account) -> None:
    with server.client() as client:
        come_in(client, make_user(account, times=[hours(-HOUR, EXPIRY_SECONDS)], times_location="UTC"))

        client.expect_error_and_closed("User Authentication Expired")


@pytest.mark.parametrize("types", [["STANDARD"], ["WEBSOCKET", "standard"], ["STANDARD", "CARRIER_PIGEON"]], ids=str)
def test_connection_type_that_is_allowed_comes_in(server: ServerProcess, account: Account, types: list[str]) -> None:
    with server.client() as client:
        come_in(client, make_user(account, allowed_connection_types=types))


@pytest.mark.parametrize("types", [["WEBSOCKET"], ["MQTT", "LEAFNODE"], ["CARRIER_PIGEON"]], ids=str)
def test_other_connection_types_are_refused(server: ServerProcess, account: Account, types: list[str]) -> None:
    refuse(server, make_user(account, allowed_connection_types=types))


def test_user_that_must_come_through_a_proxy_is_refused(server: ServerProcess, account: Account) -> None:
    with server.client() as client:
        user = make_user(account, proxy_required=True)
        client.send_connect(verbose=False, **user.presented(client.info["nonce"]))

        # nats-server says why; that there is a rule is nothing a client needs to know.
        assert client.read_line().startswith(b"-ERR '")


def test_default_sentinel_is_for_clients_without_claims(
    start_server: Callable[..., ServerProcess], operator: Operator, account: Account
) -> None:
    sentinel = make_user(account, bearer_token=True).jwt
    server = start_server(config=operator.configuration(further=f"default_sentinel: {sentinel}"))

    with server.client() as client:
        client.connect(protocol=1)
        assert client.connected_info["remote_account"] == account.public
    with server.client() as client:
        come_in(client, make_user(operator.system))
        assert client.connected_info["remote_account"] == operator.system.public


def test_only_pinned_accounts_come_in(
    start_server: Callable[..., ServerProcess], operator: Operator, account: Account, other: Account
) -> None:
    server = start_server(config=operator.configuration(further=f"resolver_pinned_accounts: [{account.public}]"))

    for let_in in (account, operator.system):
        with server.client() as client:
            come_in(client, make_user(let_in))
    refuse(server, make_user(other))


def test_reason_of_a_refusal_is_in_the_debug_log(
    start_server: Callable[..., ServerProcess], operator: Operator, account: Account
) -> None:
    server = start_server(["-D"], config=operator.configuration())

    refuse(server, make_user(account, exp=int(time.time()) - 10))

    server.wait_for_log("claim is expired")
