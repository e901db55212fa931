"""Users of a configuration file: passwords, bcrypt, connection types, users without credentials."""

from __future__ import annotations

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

VIOLATION = "Authorization Violation"

# Of the password "secret", with the lowest cost there is.
HASH = "$2a$04$UYADC3yq.GU2EiSh6CsMouxcOy/bcbDJKUfj3JOgJLJFLxIR2Sccq"


def admitted(client: RawClient, **options: object) -> str:
    """Connect and return the account the server says the client is in."""
    client.connect(protocol=1, **options)
    return str(client.connected_info["remote_account"])


def assert_refused(server: ServerProcess, **options: object) -> None:
    with server.client() as client:
        client.send_connect(verbose=False, **options)
        client.expect_error_and_closed(VIOLATION)


def assert_admitted(server: ServerProcess, account: str = "$G", **options: object) -> None:
    with server.client() as client:
        assert admitted(client, **options) == account


@pytest.mark.parametrize(
    "block",
    ["authorization { user: ann, password: secret }", "authorization { users: [ {user: ann, password: secret} ] }"],
)
def test_user_and_password(start_server, block: str) -> None:
    server = start_server(config=block)

    with server.client() as client:
        assert client.info["auth_required"] is True
    assert_admitted(server, user="ann", **{"pass": "secret"})
    assert_refused(server, user="ann", **{"pass": "Secret"})
    assert_refused(server, user="ann")
    assert_refused(server, user="bob", **{"pass": "secret"})
    assert_refused(server, auth_token="secret")
    assert_refused(server)


@pytest.mark.parametrize(
    "block",
    [
        f"authorization {{ user: ann, password: {HASH} }}",
        f"authorization {{ users: [ {{user: ann, password: '{HASH}'}}, {{user: bob, password: plain}} ] }}",
        f'accounts {{ A {{ users: [ {{user: ann, password: "{HASH}"}}, {{user: bob, password: plain}} ] }} }}',
    ],
)
def test_bcrypt_password(start_server, block: str) -> None:
    server = start_server(config=block)
    account = "A" if "accounts" in block else "$G"

    assert_admitted(server, account, user="ann", **{"pass": "secret"})
    assert_admitted(server, account, user="ann", **{"pass": "secret"})
    assert_refused(server, user="ann", **{"pass": HASH})
    assert_refused(server, user="ann", **{"pass": "secret2"})
    assert_refused(server, user="nobody", **{"pass": "secret"})
    if "bob" in block:
        assert_admitted(server, account, user="bob", **{"pass": "plain"})


def test_bcrypt_token(start_server) -> None:
    server = start_server(config=f"authorization {{ token: {HASH} }}")

    assert_admitted(server, auth_token="secret")
    assert_refused(server, auth_token=HASH)


def test_passwords_may_hold_any_character(start_server) -> None:
    server = start_server(config="authorization { users: [ {user: 'ä', password: '#;,[]{}$\"\\x é'} ] }")

    assert_admitted(server, user="ä", **{"pass": '#;,[]{}$"\\x é'})


def test_user_without_a_password_has_an_empty_one(start_server) -> None:
    server = start_server(config="authorization { users: [ {user: ann} ] }")

    assert_admitted(server, user="ann")
    assert_admitted(server, user="ann", **{"pass": ""})
    assert_refused(server, user="ann", **{"pass": "x"})


def test_connection_types(start_server) -> None:
    server = start_server(
        config="""authorization { users: [
            {user: any, password: a}
            {user: standard, password: a, allowed_connection_types: [STANDARD, MQTT]}
            {user: other, password: a, allowed_connection_types: [websocket]}
        ] }"""
    )

    assert_admitted(server, user="any", **{"pass": "a"})
    assert_admitted(server, user="standard", **{"pass": "a"})
    assert_refused(server, user="other", **{"pass": "a"})


def test_client_without_credentials_becomes_the_user_for_that(start_server) -> None:
    server = start_server(
        config="""
            accounts { A { users: [ {user: ann, password: a} ] }, B { users: [ {user: guest, password: g} ] } }
            no_auth_user: guest
        """
    )

    with server.client() as client:
        assert "auth_required" not in client.info
        assert admitted(client) == "B"
    assert_admitted(server, "A", user="ann", **{"pass": "a"})
    assert_refused(server, user="ann", **{"pass": "g"})
    assert_refused(server, user="guest")
    assert_refused(server, auth_token="g")


def test_client_without_credentials_need_not_say_connect(start_server) -> None:
    server = start_server(
        config="""
            authorization { users: [ {user: ann, password: a}
              {user: guest, permissions: {publish: {deny: secret}, subscribe: {deny: secret}}} ] }
            no_auth_user: guest
        """
    )

    with server.client() as client:
        client.send(b"PING\r\n")
        client.expect(b"PONG\r\n")
        client.send(b"SUB secret 1\r\n")
        client.expect_error('Permissions Violation for Subscription to "secret"')
        client.send(b"PUB secret 0\r\n\r\n")
        client.expect_error('Permissions Violation for Publish to "secret"')


def test_user_without_credentials_must_exist(server_kind: str, tmp_path) -> None:
    from tests.compatibility.server_process import run_to_end

    (tmp_path / "server.conf").write_text("authorization { users: [{user: a}] }\nno_auth_user: b")

    completed = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"], tmp_path)

    assert completed.returncode == 1
    assert (
        'no_auth_user: "b" not present as user or nkey in authorization block or account configuration'
        in completed.stderr
    )


def test_authentication_timeout_comes_from_the_file(start_server) -> None:
    server = start_server(config="authorization { user: a, password: b, timeout: 0.2 }")

    with server.client() as client:
        client.expect_error_and_closed("Authentication Timeout")


def test_users_are_warned_about_plain_passwords(start_server) -> None:
    plain = start_server(config="authorization { users: [ {user: a, password: b} ] }")
    hashed = start_server(config=f"authorization {{ users: [ {{user: a, password: '{HASH}'}} ] }}")

    warning = "[WRN] Plaintext passwords detected, use nkeys or bcrypt"
    assert warning in plain.log()
    assert warning not in hashed.log()


def test_no_log_shows_a_password(start_server) -> None:
    server = start_server(
        config="debug: true, trace: true\nauthorization { users: [ {user: ann, password: hidden-1} ] }"
    )
    with server.client() as client:
        client.connect(**{"user": "ann", "pass": "hidden-1"})
    assert_refused(server, user="ann", **{"pass": "hidden-2"})
    server.wait_for_log("authentication error")

    assert "hidden" not in server.log()
