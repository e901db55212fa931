"""Authentication by --user, --pass and --auth."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.server_process import ServerProcess, start_server_process

# A test may be late with its login on a busy machine, later than the two seconds there are by default.
LOGIN = "authorization { timeout: 5 }"


@pytest.fixture(scope="module")
def start_once(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ServerProcess]]:
    """Start one server per set of flags for the whole module."""
    processes: dict[tuple[str, ...], ServerProcess] = {}

    def start(*flags: str) -> ServerProcess:
        if flags not in processes:
            folder = tmp_path_factory.mktemp(server_kind)
            processes[flags] = start_server_process(server_kind, folder, list(flags), LOGIN)
        return processes[flags]

    yield start
    for process in processes.values():
        process.stop()


@pytest.fixture
def password_server(start_once) -> ServerProcess:
    return start_once("--user", "ann", "--pass", "secret")


@pytest.fixture
def token_server(start_once) -> ServerProcess:
    return start_once("--auth", "t0ken")


def test_info_says_that_authentication_is_required(password_server: ServerProcess, token_server: ServerProcess) -> None:
    with password_server.client() as one, token_server.client() as other:
        assert one.info["auth_required"] is True
        assert other.info["auth_required"] is True
        assert "nonce" not in one.info
        assert "nonce" not in other.info


def test_right_password_is_accepted(password_server: ServerProcess) -> None:
    with password_server.client() as client:
        client.connect(**{"user": "ann", "pass": "secret"})

        client.send(b"SUB a 1\r\nPUB a 2\r\nhi\r\n")

        client.expect(b"MSG a 1 2\r\nhi\r\n")


def test_right_token_is_accepted(token_server: ServerProcess) -> None:
    with token_server.client() as client:
        client.connect(auth_token="t0ken")

        client.send(b"SUB a 1\r\nPUB a 2\r\nhi\r\n")

        client.expect(b"MSG a 1 2\r\nhi\r\n")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"user": "ann"},
        {"pass": "secret"},
        {"user": "ann", "pass": "wrong"},
        {"user": "bob", "pass": "secret"},
        {"user": "Ann", "pass": "secret"},
        {"user": "", "pass": ""},
        {"auth_token": "secret"},
    ],
    ids=str,
)
def test_wrong_password_is_a_violation(password_server: ServerProcess, options: dict) -> None:
    with password_server.client() as client:
        client.send_connect(verbose=False, **options)

        client.expect_error_and_closed("Authorization Violation")


@pytest.mark.parametrize(
    "options", [{}, {"auth_token": "wrong"}, {"auth_token": ""}, {"user": "t0ken", "pass": "t0ken"}], ids=str
)
def test_wrong_token_is_a_violation(token_server: ServerProcess, options: dict) -> None:
    with token_server.client() as client:
        client.send_connect(verbose=False, **options)

        client.expect_error_and_closed("Authorization Violation")


@pytest.mark.parametrize(
    "line", [b"PING\r\n", b"SUB a 1\r\n", b"PUB a 0\r\n\r\n", b"\r\n", b"x\r\n", b" CONNECT {}\r\n"]
)
def test_first_byte_other_than_c_is_a_violation(password_server: ServerProcess, line: bytes) -> None:
    with password_server.client() as client:
        client.send(line)

        client.expect_error_and_closed("Authorization Violation")


def test_first_byte_may_be_a_small_c(password_server: ServerProcess) -> None:
    with password_server.client() as client:
        client.send(b'connect {"verbose":false,"user":"ann","pass":"secret"}\r\n')

        client.expect_pong()


def test_verbose_violation_has_no_ok(password_server: ServerProcess) -> None:
    with password_server.client() as client:
        client.send_connect(verbose=True, user="ann")

        client.expect_error_and_closed("Authorization Violation")


def test_second_connect_is_checked_again(password_server: ServerProcess) -> None:
    with password_server.client() as client:
        client.connect(**{"user": "ann", "pass": "secret"})

        client.send_connect(**{"verbose": False, "user": "ann", "pass": "wrong"})

        client.expect_error_and_closed("Authorization Violation")


def test_authentication_timeout_closes_all_but_the_authenticated(password_server: ServerProcess) -> None:
    with (
        password_server.client() as silent,
        password_server.client() as unfinished,
        password_server.client() as authenticated,
    ):
        unfinished.send(b"CONNECT {")
        authenticated.connect(**{"user": "ann", "pass": "secret"})

        silent.expect_error_and_closed("Authentication Timeout")
        unfinished.expect_error_and_closed("Authentication Timeout")
        authenticated.expect_silence()
        authenticated.expect_pong()


def test_malformed_connect_closes_silently(password_server: ServerProcess) -> None:
    with password_server.client() as client:
        client.send(b"CONNECT {nonsense\r\n")

        client.expect_closed()


def test_user_without_password_flag(start_once) -> None:
    server = start_once("--user", "ann")

    with server.client() as client:
        client.connect(user="ann")
    with server.client() as client:
        client.send_connect(verbose=False, user="bob")
        client.expect_error_and_closed("Authorization Violation")


@pytest.mark.parametrize(
    ("options", "who"),
    [
        ({"user": "ann", "pass": "x"}, ' - User "ann"'),
        ({"user": 'a\x01"b'}, ' - User "a\\x01\\"b"'),
        ({"auth_token": "x"}, ' - Token "[REDACTED]"'),
        ({"nkey": "short"}, ' - Nkey "short"'),
        ({"nkey": "short", "user": "ann", "auth_token": "x"}, ' - Nkey "short"'),
        ({"pass": "x"}, ""),
        ({}, ""),
    ],
)
def test_log_says_who_was_refused(start_server, options: dict[str, str], who: str) -> None:
    server = start_server(config="authorization { user: ann, password: ann }")

    with server.client() as client:
        client.send_connect(**options)
        client.expect_error_and_closed("Authorization Violation")

    log = server.wait_for_log("authentication error")
    assert log.rstrip("\n").endswith(f" - authentication error{who}")
