"""Accounts: subjects of one are not those of another, and each has limits of its own."""

from __future__ import annotations

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

CONFIG = """
accounts {
  A { users: [ {user: a, password: a}, {user: a2, password: a2} ] }
  B { users: [ {user: b, password: b} ] }
  $SYS { users: [ {user: s, password: s} ] }
}
authorization { users: [ {user: g, password: g} ] }
"""


def connect(client: RawClient, name: str, **options: object) -> None:
    client.connect(**{"protocol": 1, "user": name, "pass": name, **options})


@pytest.fixture
def server(start_server) -> ServerProcess:
    return start_server(config=CONFIG)


@pytest.mark.parametrize(("user", "account"), [("a", "A"), ("a2", "A"), ("b", "B"), ("g", "$G"), ("s", "$SYS")])
def test_client_is_told_its_account(server: ServerProcess, user: str, account: str) -> None:
    with server.client() as client:
        connect(client, user)

        assert client.connected_info["remote_account"] == account
        assert client.connected_info.get("acc_is_sys", False) is (account == "$SYS")


def test_messages_stay_in_their_account(server: ServerProcess) -> None:
    with server.client() as a, server.client() as a2, server.client() as b, server.client() as g:
        for client, user in ((a, "a"), (a2, "a2"), (b, "b"), (g, "g")):
            connect(client, user)
            client.send(b"SUB > 1\r\n")
            client.expect_pong()

        a.send(b"PUB foo reply 2\r\nhi\r\n")

        a.expect(b"MSG foo 1 reply 2\r\nhi\r\n")
        a2.expect(b"MSG foo 1 reply 2\r\nhi\r\n")
        b.expect_silence()
        g.expect_silence()


def test_queue_groups_of_two_accounts_are_two_groups(server: ServerProcess) -> None:
    with server.client() as a, server.client() as b:
        for client, user in ((a, "a"), (b, "b")):
            connect(client, user)
            client.send(b"SUB foo workers 1\r\n")
            client.expect_pong()

        for _ in range(20):
            a.send(b"PUB foo 0\r\n\r\n")

        a.expect(b"MSG foo 1 0\r\n\r\n" * 20)
        b.expect_silence()


def test_no_responders_are_those_of_the_account(server: ServerProcess) -> None:
    with server.client() as a, server.client() as b:
        connect(b, "b")
        b.send(b"SUB service 1\r\n")
        b.expect_pong()
        connect(a, "a", headers=True, no_responders=True)
        a.send(b"SUB inbox 1\r\nPUB service inbox 0\r\n\r\n")

        assert a.read_line().startswith(b"HMSG inbox 1 ")
        b.expect_silence()


def test_limits_of_an_account(start_server) -> None:
    server = start_server(
        config="""accounts {
          A { users: [ {user: a, password: a} ], limits { max_connections: 2, max_subscriptions: 2, max_payload: 10 } }
          B { users: [ {user: b, password: b} ], limits { max_connections: -1 } }
        }"""
    )

    with server.client() as one, server.client() as two, server.client() as three, server.client() as other:
        connect(one, "a")
        connect(two, "a")
        three.send_connect(**{"verbose": False, "user": "a", "pass": "a"})
        three.expect_error_and_closed("maximum account active connections exceeded")
        connect(other, "b")

        assert one.connected_info["max_payload"] == 10
        one.send(b"SUB x 1\r\nSUB y 2\r\nSUB z 3\r\n")
        one.expect_error("maximum subscriptions exceeded")
        one.send(b"PUB x 10\r\n0123456789\r\n")
        one.expect(b"MSG x 1 10\r\n0123456789\r\n")
        one.send(b"PUB x 11\r\n01234567890\r\n")
        one.expect_error_and_closed("Maximum Payload Violation")
        other.send(b"SUB x 1\r\nPUB x 11\r\n01234567890\r\n")
        other.expect(b"MSG x 1 11\r\n01234567890\r\n")


def test_place_in_an_account_is_free_again_when_a_client_leaves(start_server) -> None:
    server = start_server(config="accounts { A { users: [{user: a, password: a}], limits { max_conn: 1 } } }")

    for _ in range(3):
        with server.client() as client:
            connect(client, "a")
            client.send(b"x\r\n")
            client.expect_error_and_closed("Unknown Protocol Operation")


def test_everybody_comes_in_where_only_the_system_account_has_users(start_server) -> None:
    server = start_server(config="accounts { $SYS { users: [ {user: s, password: s} ] } }")

    with server.client() as anybody, server.client() as system, server.client() as wrong:
        assert anybody.info["auth_required"] is True
        anybody.connect(protocol=1)
        assert anybody.connected_info["remote_account"] == "$G"
        connect(system, "s")
        assert system.connected_info["remote_account"] == "$SYS"
        wrong.send_connect(**{"verbose": False, "user": "s", "pass": "x"})
        wrong.expect_error_and_closed("Authorization Violation")


def test_nobody_comes_in_without_credentials_where_other_accounts_exist(start_server) -> None:
    server = start_server(config="accounts { $SYS { users: [ {user: s, password: s} ] }, A { } }")

    with server.client() as client:
        client.send_connect(verbose=False)
        client.expect_error_and_closed("Authorization Violation")


def test_another_account_may_be_the_system_account(start_server) -> None:
    server = start_server(
        config="accounts { S { users: [{user: s, password: s}] }, A { users: [{user: a, password: a}] } }\n"
        "system_account: S"
    )

    with server.client() as client:
        connect(client, "s")
        assert client.connected_info["acc_is_sys"] is True


@pytest.mark.parametrize(("server_limit", "account_limit"), [(None, -1), (0, None), (-1, None)])
def test_limit_of_subscriptions_below_one_is_none_for_a_server_and_minus_one_for_an_account(
    start_server, server_limit: int | None, account_limit: int | None
) -> None:
    with start_server(config=limited(server_limit, account_limit)).client() as client:
        client.connect(**{"user": "a", "pass": "a"})

        client.send(b"SUB a 1\r\nSUB b 2\r\nSUB c 3\r\n")

        client.expect_pong()


def test_account_without_any_subscription_has_no_clients(start_server) -> None:
    with start_server(config=limited(None, 0)).client() as client:
        client.send_connect(verbose=False, user="a", **{"pass": "a"})

        client.expect_error_and_closed("maximum subscriptions exceeded")


def limited(server_limit: int | None, account_limit: int | None) -> str:
    """Return a configuration with limits of subscriptions, of the server and of an account."""
    of_server = "" if server_limit is None else f"max_subscriptions: {server_limit}"
    of_account = "" if account_limit is None else f"limits {{ max_subscriptions: {account_limit} }}"
    return f"{of_server}\naccounts {{ A {{ users: [{{user: a, password: a}}]\n{of_account} }} }}"
