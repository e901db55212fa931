"""Operator mode over WebSocket: signed claims in CONNECT or in a cookie, and the ways to connect that they allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compatibility.claims import Account, Operator, make_user
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient


@pytest.fixture(scope="module")
def operator() -> Operator:
    return Operator()


@pytest.fixture(scope="module")
def account(operator: Operator) -> Account:
    return operator.add_account(name="pages")


@pytest.fixture(scope="module")
def server(
    server_kind: str, operator: Operator, account: Account, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    config = operator.configuration("MEMORY", websocket_config('jwt_cookie: "nats_jwt"'))
    process = start_server_process(server_kind, tmp_path_factory.mktemp(server_kind), config=config)
    yield process
    process.stop()


def with_cookie(server: ServerProcess, jwt: str) -> WebSocketClient:
    return WebSocketClient(server, headers={"Cookie": f"nats_jwt={jwt}"})


def test_user_signs_the_nonce_as_over_tcp(server: ServerProcess, account: Account) -> None:
    user = make_user(account)
    with WebSocketClient(server) as client:
        assert client.info["auth_required"] is True
        client.connect(**user.presented(client.info["nonce"]))


def test_bearer_token_comes_as_a_cookie(server: ServerProcess, account: Account) -> None:
    with with_cookie(server, make_user(account, bearer_token=True).jwt) as client:
        client.connect()
        client.send(b"SUB echo 1\r\nPUB echo 2\r\nhi\r\n")

        client.expect(b"MSG echo 1 2\r\nhi\r\n")


def test_cookie_needs_the_signature_that_its_claims_want(server: ServerProcess, account: Account) -> None:
    user = make_user(account)
    with with_cookie(server, user.jwt) as client:
        client.connect(sig=user.key.sign(client.info["nonce"]))
    with with_cookie(server, user.jwt) as client:
        client.send_connect()
        client.expect_error("Authorization Violation")


def test_connect_counts_more_than_the_cookie(server: ServerProcess, account: Account) -> None:
    good, bad = make_user(account, bearer_token=True).jwt, make_user(Operator().add_account(), bearer_token=True).jwt
    with with_cookie(server, bad) as client:
        client.connect(jwt=good)
    with with_cookie(server, good) as client:
        client.send_connect(jwt=bad)
        client.expect_error("Authorization Violation")


@pytest.mark.parametrize("jwt", ["", "nonsense", "a.b.c"])
def test_cookie_that_holds_no_claims_is_refused(server: ServerProcess, jwt: str) -> None:
    with with_cookie(server, jwt) as client:
        client.send_connect()

        client.expect_error("Authorization Violation")


@pytest.mark.parametrize(
    ("types", "over_websocket", "over_tcp"),
    [
        (["WEBSOCKET"], True, False),
        (["STANDARD"], False, True),
        (["WEBSOCKET", "STANDARD"], True, True),
        ([], True, True),
    ],
    ids=str,
)
def test_claims_say_how_a_user_may_connect(
    server: ServerProcess, account: Account, types: list[str], over_websocket: bool, over_tcp: bool
) -> None:
    user = make_user(account, allowed_connection_types=types)
    for client, is_allowed in ((WebSocketClient(server), over_websocket), (server.client(), over_tcp)):
        with client:
            presented = user.presented(client.info["nonce"])
            if is_allowed:
                client.connect(**presented)
            else:
                client.send_connect(**presented)
                client.expect_error("Authorization Violation")


def test_cookie_needs_operators_that_are_trusted(server_kind: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="trusted operators or trusted keys configuration is required"):
        start_server_process(server_kind, tmp_path, config=websocket_config('jwt_cookie: "nats_jwt"'))
