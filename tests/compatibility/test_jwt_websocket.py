"""Operator mode over WebSocket: connection types, and claims in a cookie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compatibility.claims import Account, Operator, User, make_user
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient


@pytest.fixture(scope="module")
def operator() -> Operator:
    return Operator()


@pytest.fixture(scope="module")
def account(operator: Operator) -> Account:
    return operator.add_account(name="shop")


@pytest.fixture(scope="module")
def server(server_kind: str, tmp_path_factory, operator: Operator, account: Account) -> Iterator[ServerProcess]:
    config = websocket_config('jwt_cookie: "claims"', operator.configuration())
    process = start_server_process(server_kind, tmp_path_factory.mktemp(server_kind), config=config)
    yield process
    process.stop()


def come_in(client, user: User) -> None:
    client.connect(**user.presented(client.info["nonce"]))


def test_user_comes_in_over_websocket(server: ServerProcess, account: Account) -> None:
    with WebSocketClient(server) as client:
        come_in(client, make_user(account))

        assert client.connected_info["remote_account"] == account.public


def test_connection_types_of_a_user_hold(server: ServerProcess, account: Account) -> None:
    web, plain = (make_user(account, allowed_connection_types=[kind]) for kind in ("WEBSOCKET", "STANDARD"))

    with WebSocketClient(server) as client:
        come_in(client, web)
    with server.client() as client:
        come_in(client, plain)
    with server.client() as client:
        client.send_connect(verbose=False, **web.presented(client.info["nonce"]))
        client.expect_error_and_closed("Authorization Violation")
    with WebSocketClient(server) as client:
        client.send_connect(verbose=False, **plain.presented(client.info["nonce"]))
        client.expect_error("Authorization Violation")


def test_bearer_token_in_a_cookie_is_enough(server: ServerProcess, account: Account) -> None:
    bearer = make_user(account, bearer_token=True).jwt

    with WebSocketClient(server, headers={"Cookie": f"other=1; claims={bearer}"}) as client:
        client.connect(protocol=1)

        assert client.connected_info["remote_account"] == account.public


def test_claims_in_a_cookie_need_the_signature(server: ServerProcess, account: Account) -> None:
    user = make_user(account)

    with WebSocketClient(server, headers={"Cookie": f"claims={user.jwt}"}) as client:
        client.send_connect(verbose=False)
        client.expect_error("Authorization Violation")
    with WebSocketClient(server, headers={"Cookie": f"claims={user.jwt}"}) as client:
        client.connect(sig=user.key.sign(client.info["nonce"]), protocol=1)
        assert client.connected_info["remote_account"] == account.public


def test_claims_of_connect_count_before_those_of_the_cookie(
    server: ServerProcess, account: Account, operator: Operator
) -> None:
    """A cookie never replaces what a client says itself."""
    bearer = make_user(operator.system, bearer_token=True).jwt

    with WebSocketClient(server, headers={"Cookie": f"claims={bearer}"}) as client:
        come_in(client, make_user(account))

        assert client.connected_info["remote_account"] == account.public
