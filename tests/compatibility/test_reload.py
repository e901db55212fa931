"""SIGHUP: the file is read again, clients that are in stay in where they may, and what cannot change is refused."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_leafnode_access import connect_as, leaf_client
from tests.compatibility.wire import TIMEOUT_SECONDS, RawClient

DONE = "Reloaded server configuration (sha256:"
FAILED = "[ERR] Failed to reload server configuration: "


@pytest.fixture
def reload(start_server) -> Callable[[ServerProcess, str], str]:
    """Give the server another file, make it read it, and return the lines of the log that came of it."""

    def reload(server: ServerProcess, config: str) -> str:
        (server.folder / "server.conf").write_text(config)
        before = len(server.log())
        server.signal(signal.SIGHUP)
        while True:
            log = server.wait_for_log('Trapped "hangup" signal')[before:]
            if (DONE in log or FAILED in log) and log.endswith("\n"):
                return log
            time.sleep(0.005)

    return reload


def read_up_to(leaf: RawClient, wanted: bytes) -> None:
    """Read a line, passing over what the server tells a leaf node by itself."""
    while (line := leaf.read_line()) != wanted:
        assert line.startswith((b"INFO ", b"LS+ ", b"LS- ")), line


def users(*entries: str) -> str:
    return f"authorization {{ users: [ {', '.join(f'{{{entry}}}' for entry in entries)} ] }}"


def test_without_a_file_there_is_nothing_to_reload(start_server) -> None:
    server = start_server()

    server.signal(signal.SIGHUP)

    server.wait_for_log(f"{FAILED}can only reload config when a file is provided using -c or --config")


def test_same_file_changes_nothing(start_server, reload) -> None:
    config = users("user: a, password: a")
    server = start_server(config=config)
    with server.client() as client:
        client.connect(**{"user": "a", "pass": "a"})
        client.send(b"SUB foo 1\r\n")
        client.expect_pong()

        assert DONE in reload(server, config)

        client.send(b"PUB foo 0\r\n\r\n")
        client.expect(b"MSG foo 1 0\r\n\r\n")


def test_new_user_may_come_in(start_server, reload) -> None:
    server = start_server(config=users("user: a, password: a"))

    log = reload(server, users("user: a, password: a", "user: b, password: b"))

    assert "[INF] Reloaded: authorization users\n" in log
    with server.client() as client:
        client.connect(**{"user": "b", "pass": "b"})


def test_changed_password_ends_the_connection(start_server, reload) -> None:
    server = start_server(config=users("user: a, password: a", "user: b, password: b"))
    with server.client() as changed, server.client() as same:
        changed.connect(**{"user": "a", "pass": "a"})
        same.connect(**{"user": "b", "pass": "b"})

        reload(server, users("user: a, password: other", "user: b, password: b"))

        changed.expect_error_and_closed("Authorization Violation")
        same.expect_pong()


def test_removed_user_is_closed(start_server, reload) -> None:
    server = start_server(config=users("user: a, password: a", "user: b, password: b"))
    with server.client() as client:
        client.connect(**{"user": "a", "pass": "a"})

        reload(server, users("user: b, password: b"))

        # nats-server says nothing here, Jetlake says why.
        assert client.read_to_end() in (b"", b"-ERR 'Authorization Violation'\r\n")


def test_user_that_moved_to_another_account_is_closed(start_server, reload) -> None:
    server = start_server(config="accounts { A { users: [{user: a, password: a}] }, B { } }")
    with server.client() as client:
        client.connect(**{"user": "a", "pass": "a"})

        reload(server, "accounts { A { }, B { users: [{user: a, password: a}] } }")

        client.expect_closed()


def test_server_that_was_open_is_closed_to_strangers(start_server, reload) -> None:
    server = start_server(config="debug: false")
    with server.client() as inside:
        inside.connect()

        reload(server, users("user: a, password: a"))

        inside.expect_error_and_closed("Authorization Violation")
    with server.client() as client:
        assert client.info["auth_required"] is True
        client.send_connect(verbose=False)
        client.expect_error_and_closed("Authorization Violation")


def test_client_that_showed_the_right_password_stays_when_a_login_is_demanded(start_server, reload) -> None:
    server = start_server(config="debug: false")
    with server.client() as right, server.client() as wrong, server.client() as other:
        for client, password in ((right, "a"), (wrong, "b")):
            client.connect(**{"user": "a", "pass": password})
            client.send(b"SUB foo 1\r\n")
            client.expect_pong()
        other.connect()

        reload(server, users("user: a, password: a"))

        wrong.expect_error_and_closed("Authorization Violation")
        other.expect_error_and_closed("Authorization Violation")
        right.send(b"PUB foo 0\r\n\r\n")
        right.expect(b"MSG foo 1 0\r\n\r\n")

        # From now on it is one of the users.
        reload(server, users("user: b, password: b"))

        assert right.read_to_end() in (b"", b"-ERR 'Authorization Violation'\r\n")


def test_leaf_node_that_showed_the_right_password_stays_when_a_login_is_demanded(start_server, reload) -> None:
    leafnodes = 'leafnodes { listen: "127.0.0.1:-1" }'
    server = start_server(config=leafnodes)
    with leaf_client(server) as right, leaf_client(server) as wrong:
        for leaf, password in ((right, "a"), (wrong, "b")):
            leaf.send(connect_as(**{"user": "a", "pass": password}) + b"PING\r\n")
            read_up_to(leaf, b"PONG\r\n")

        reload(server, f"{leafnodes}\n{users('user: a, password: a')}")

        # nats-server does not ask about leaf nodes again.
        if server.kind == "jetlake":
            assert wrong.read_to_end().endswith(b"-ERR 'Authorization Violation'\r\n")
        with server.client() as client:
            client.connect(**{"user": "a", "pass": "a"})
            right.send(b"LS+ foo\r\nPING\r\n")
            read_up_to(right, b"PONG\r\n")
            client.send(b"PUB foo 2\r\nhi\r\n")
            read_up_to(right, b"LMSG foo 2\r\n")
            right.expect(b"hi\r\n")


def test_changed_token_ends_the_connection(start_server, reload) -> None:
    server = start_server(config="authorization { token: one }")
    with server.client() as client:
        client.connect(auth_token="one")

        log = reload(server, "authorization { token: two }")

        assert "[INF] Reloaded: authorization token\n" in log
        client.expect_error_and_closed("Authorization Violation")
    with server.client() as client:
        client.connect(auth_token="two")


def test_permissions_change_for_clients_that_are_in(start_server, reload) -> None:
    server = start_server(config=users("user: a, password: a"))
    with server.client() as client:
        client.connect(**{"user": "a", "pass": "a"})
        client.send(b"SUB foo 1\r\nSUB bar q 2\r\nSUB ok 3\r\n")
        client.expect_pong()

        reload(server, users("user: a, password: a, permissions: {subscribe: ok, publish: ok}"))

        errors = sorted(client.read_line() for _ in range(2))
        assert errors == [
            b'-ERR \'Permissions Violation for Subscription to "bar" using queue "q" (sid "2")\'\r\n',
            b'-ERR \'Permissions Violation for Subscription to "foo" (sid "1")\'\r\n',
        ]
        client.send(b"PUB foo 0\r\n\r\n")
        client.expect_error('Permissions Violation for Publish to "foo"')
        client.send(b"PUB ok 0\r\n\r\n")
        client.expect(b"MSG ok 3 0\r\n\r\n")

        reload(server, users("user: a, password: a"))
        wait_until_allowed(client, b"foo")
        client.send(b"SUB foo 4\r\nPUB foo 0\r\n\r\n")
        client.expect(b"MSG foo 4 0\r\n\r\n")


def wait_until_allowed(client: RawClient, subject: bytes) -> None:
    """Publish until nobody objects: Jetlake asks about its clients one by one after it has said that it reloaded."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        client.send(b"PUB %b 0\r\n\r\nPING\r\n" % subject)
        if client.read_line() == b"PONG\r\n":
            return
        client.expect(b"PONG\r\n")
        time.sleep(0.02)
    raise AssertionError(f"{subject!r} is still refused")


def test_nkeys_appear_with_their_nonce(start_server, reload) -> None:
    server = start_server(config=users("user: a, password: a"))
    with server.client() as client:
        assert "nonce" not in client.info

    log = reload(
        server, users("user: a, password: a", "nkey: UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4")
    )

    assert "[INF] Reloaded: authorization nkey users\n" in log
    with server.client() as client:
        assert len(client.info["nonce"]) == 15


def test_max_payload_holds_at_once(start_server, reload) -> None:
    server = start_server(config="max_payload: 100")
    with server.client() as client:
        client.connect()

        log = reload(server, "max_payload: 10")

        assert "[INF] Reloaded: max_payload = 10\n" in log
        client.send(b"PUB foo 11\r\n01234567890\r\n")
        client.expect_error_and_closed("Maximum Payload Violation")


@pytest.mark.parametrize("says_connect", [True, False])
def test_higher_max_payload_holds_for_clients_that_are_there(start_server, reload, says_connect: bool) -> None:
    server = start_server(config="max_payload: 100")
    with server.client() as client:
        if says_connect:
            client.connect()

        reload(server, "max_payload: 4096")

        client.send(b"SUB foo 1\r\nPUB foo 1000\r\n%b\r\n" % (b"x" * 1_000))
        for _ in range(0 if says_connect else 2):
            client.expect(b"+OK\r\n")
        client.expect(b"MSG foo 1 1000\r\n%b\r\n" % (b"x" * 1_000))


def test_max_control_line_holds_for_clients_that_are_there(start_server, reload) -> None:
    server = start_server(config="max_control_line: 512")
    line = b"SUB %b 1\r\n" % (b"a" * 1_000)
    with server.client() as client:
        client.connect()

        reload(server, "max_control_line: 4096")

        client.send(line)
        client.expect_pong()

        reload(server, "max_control_line: 512")

        client.send(line)
        client.expect_error_and_closed("maximum control line exceeded")


def test_max_control_line_holds_for_leaf_nodes_that_are_there(server_kind: str, start_server, reload) -> None:
    if server_kind == "nats-server":
        pytest.skip("a leaf node of nats-server keeps the limit that it came in with")
    leafnodes = 'leafnodes { listen: "127.0.0.1:-1" }'
    server = start_server(config=f"max_control_line: 512\n{leafnodes}")
    subject = b"a" * 20_000
    with leaf_client(server) as leaf, server.client() as client:
        leaf.send(connect_as())

        reload(server, f"max_control_line: 32768\n{leafnodes}")

        leaf.send(b"LS+ %b\r\nPING\r\n" % subject)
        read_up_to(leaf, b"PONG\r\n")
        client.connect()
        client.send(b"PUB %b 2\r\nhi\r\n" % subject)
        read_up_to(leaf, b"LMSG %b 2\r\n" % subject)
        leaf.expect(b"hi\r\n")


def test_connections_above_a_lower_limit_are_closed(start_server, reload) -> None:
    server = start_server(config="max_connections: 10")
    clients = [server.client() for _ in range(4)]
    try:
        for client in clients:
            client.connect()

        assert "[INF] Reloaded: max_connections = 1\n" in reload(server, "max_connections: 1")

        ends = sorted(client.read_frame(1) if not is_alive(client) else b"" for client in clients)
        assert ends[1:] == [b"-ERR 'maximum connections exceeded'\r\n"] * 3
        assert ends[0] == b""
    finally:
        for client in clients:
            client.close()


def is_alive(client) -> bool:
    client.send(b"PING\r\n")
    frame = client.read_frame()
    if frame == b"PONG\r\n":
        return True
    client._buffer = frame + client._buffer
    return False


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("debug: true", "debug = true"),
        ("trace: true", "trace = true"),
        ("ping_interval: '1m'", "ping_interval = 1m0s"),
        ("ping_max: 5", "ping_max = 5"),
        ("write_deadline: '3s'", "write_deadline = 3s"),
        ("max_control_line: 2048", "max_control_line = 2048"),
        ("logtime_utc: true", "logtime_utc = true"),
        ("no_fast_producer_stall: true", "fast producers will not be stalled"),
        ("server_tags: [a]", "tags"),
    ],
)
def test_change_has_a_line_in_the_log(start_server, reload, config: str, line: str) -> None:
    server = start_server(config="server_metadata { a: b }")

    log = reload(server, f"server_metadata {{ a: b }}\n{config}")

    assert f"[INF] Reloaded: {line}\n" in log
    assert DONE in log


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("max_pending: 10MB", "config reload not supported for MaxPending: old=67108864, new=10485760"),
        ("max_subs: 5", "config reload not supported for MaxSubs: old=0, new=5"),
        ("max_sub_tokens: 5", "config reload not supported for MaxSubTokens: old=0, new=5"),
        ("server_name: x", "config reload not supported for ServerName: old=, new=x"),
        ("lame_duck_duration: '30s'", "config reload not supported for LameDuckDuration: old=2m0s, new=30s"),
        ("lame_duck_grace_period: '1s'", "config reload not supported for LameDuckGracePeriod: old=10s, new=1s"),
        (
            "no_auth_user: a\nauthorization { users: [{user: a}] }",
            "config reload not supported for NoAuthUser: old=, new=a",
        ),
        ("http: 8333", "config reload not supported for HTTPPort: old=0, new=8333"),
        ("no_header_support: true", "config reload not supported for NoHeaderSupport: old=false, new=true"),
    ],
)
def test_what_cannot_change_refuses_the_whole_reload(start_server, reload, config: str, reason: str) -> None:
    server = start_server(config="max_payload: 100")

    log = reload(server, f"max_payload: 200\n{config}")

    assert f"{FAILED}{reason}" in log
    assert DONE not in log
    with server.client() as client:
        assert client.info["max_payload"] == 100


@pytest.mark.parametrize("broken", ["foo: 1", "max_payload: ", "authorization {", "max_payload: 'x'", "include none"])
def test_broken_file_leaves_everything_as_it_was(start_server, reload, broken: str) -> None:
    server = start_server(config=users("user: a, password: a"))
    with server.client() as client:
        client.connect(**{"user": "a", "pass": "a"})

        log = reload(server, broken)

        assert FAILED in log
        client.expect_pong()
    with server.client() as client:
        client.connect(**{"user": "a", "pass": "a"})


def test_log_goes_to_another_file(start_server, reload, tmp_path: Path) -> None:
    server = start_server(config="debug: false")
    path = tmp_path / "other.log"

    (server.folder / "server.conf").write_text(f"log_file: '{path}'")
    server.signal(signal.SIGHUP)

    server.wait_for_log(DONE, log_path=path)


def test_pid_file_appears(start_server, reload, tmp_path: Path) -> None:
    server = start_server(config="debug: false")
    path = tmp_path / "server.pid"

    reload(server, f"pid_file: '{path}'")

    assert path.read_text() == str(server.pid)


def test_ports_file_moves(start_server, reload, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    server = start_server(config=f"ports_file_dir: '{one}'")
    wait_for_file(one)

    reload(server, f"ports_file_dir: '{other}'")

    assert wait_for_file(other).name.endswith(f"_{server.pid}.ports")
    assert list(one.iterdir()) == []


def wait_for_file(folder: Path) -> Path:
    """Return the only file of a folder: nats-server writes its ports in the background."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not (files := list(folder.iterdir())):
        assert time.monotonic() < deadline, f"nothing appears in {folder}"
        time.sleep(0.01)
    (file,) = files
    return file


def test_flags_still_go_over_the_file(start_server, reload) -> None:
    server = start_server(config="max_payload: 100", flags=["--user", "a", "--pass", "a"])

    reload(server, "max_payload: 200\nport: 1")

    with server.client() as client:
        assert client.info["max_payload"] == 200
        client.send_connect(verbose=False)
        client.expect_error_and_closed("Authorization Violation")


def test_clients_beyond_a_lower_limit_of_their_account_are_closed(start_server, reload) -> None:
    def config(connections_max: int) -> str:
        limits = f"limits {{ max_conn: {connections_max} }}"
        return f"accounts {{ A {{ users: [{{user: a, password: a}}], {limits} }}, B {{ users: [{{user: b}}] }} }}"

    server = start_server(config=config(-1))
    clients = [server.client() for _ in range(5)]
    with server.client() as other:
        other.connect(user="b")
        for client in clients:
            client.connect(**{"user": "a", "pass": "a"})

        reload(server, config(2))

        closed = wait_for_closed(clients, 3)
        for client in clients:
            if client in closed:
                client.expect_closed()
            else:
                client.expect_pong()
        other.expect_pong()
        with server.client() as late:
            late.send_connect(**{"user": "a", "pass": "a"})
            late.expect_error_and_closed("maximum account active connections exceeded")
    for client in clients:
        client.close()


def wait_for_closed(clients: list[RawClient], count: int) -> list[RawClient]:
    """Return the clients that hear that they are too many, whichever they are; wait until they are so many."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    closed: list[RawClient] = []
    while len(closed) < count:
        assert time.monotonic() < deadline, f"{len(closed)} of {count} were closed"
        for client in clients:
            with contextlib.suppress(TimeoutError):
                if client not in closed and (frame := client.read_frame(timeout_seconds=0.05)):
                    assert frame == b"-ERR 'maximum account active connections exceeded'\r\n"
                    closed.append(client)
    return closed
