"""Permissions: what a user may publish and subscribe to, checked when it asks and when messages are delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient


@pytest.fixture
def start(start_server) -> Iterator[Callable[..., RawClient]]:
    """Start a server whose user `limited` has these permissions, and return its client; `all` may do everything."""
    clients: list[RawClient] = []
    servers: list[ServerProcess] = []

    def start(permissions: str, **options: object) -> RawClient:
        servers.append(
            start_server(
                config=f"authorization {{ users: [ {{user: all}}, {{user: limited, permissions: {permissions}}} ] }}"
            )
        )
        return connect("limited", **options)

    def connect(user: str, **options: object) -> RawClient:
        clients.append(servers[-1].client())
        clients[-1].connect(user=user, **options)
        return clients[-1]

    start.connect = connect  # type: ignore[attr-defined]
    yield start
    for client in clients:
        client.close()


def publish_error(subject: str) -> str:
    return f'Permissions Violation for Publish to "{subject}"'


def subscribe_error(subject: str, queue: str = "") -> str:
    return f'Permissions Violation for Subscription to "{subject}"' + (f' using queue "{queue}"' if queue else "")


def may_publish(client: RawClient, subject: str) -> bool:
    client.send(f"PUB {subject} 0\r\n\r\nPING\r\n".encode())
    line = client.read_line()
    if line == b"PONG\r\n":
        return True
    assert line == f"-ERR '{publish_error(subject)}'\r\n".encode()
    client.expect(b"PONG\r\n")
    return False


def may_subscribe(client: RawClient, subject: str, queue: str = "") -> bool:
    client.send(f"SUB {subject} {queue} 77\r\nPING\r\n".encode())
    line = client.read_line()
    if line == b"PONG\r\n":
        client.send(b"UNSUB 77\r\n")
        return True
    assert line == f"-ERR '{subscribe_error(subject, queue)}'\r\n".encode()
    client.expect(b"PONG\r\n")
    return False


@pytest.mark.parametrize(
    ("permissions", "allowed", "denied"),
    [
        ("{ publish: foo }", ["foo"], ["bar", "foo.bar", "Foo"]),
        ("{ publish: [foo, 'bar.*'] }", ["foo", "bar.a"], ["bar", "bar.a.b"]),
        ("{ publish: 'foo.>' }", ["foo.a", "foo.a.b"], ["foo", "bar"]),
        ("{ publish: '>' }", ["foo", "$SYS.x"], []),
        ("{ publish: { allow: 'foo.>', deny: 'foo.secret' } }", ["foo.a"], ["foo.secret", "bar"]),
        ("{ publish: { deny: 'foo.>' } }", ["bar", "foo"], ["foo.a"]),
        ("{ publish: { deny: '>' } }", [], ["a", "a.b"]),
        ("{ publish: { allow: foo, deny: foo } }", [], ["foo"]),
        ("{ pub: foo }", ["foo"], ["bar"]),
        ("{ import: foo }", ["foo"], ["bar"]),
        ("{ subscribe: foo }", ["anything"], []),
        ("{}", ["anything"], []),
    ],
)
def test_publish(start, permissions: str, allowed: list[str], denied: list[str]) -> None:
    client = start(permissions)

    for subject in allowed:
        assert may_publish(client, subject), subject
    for subject in denied:
        assert not may_publish(client, subject), subject


@pytest.mark.parametrize(
    ("permissions", "allowed", "denied"),
    [
        ("{ subscribe: foo }", ["foo"], ["bar", "foo.bar", ">"]),
        ("{ subscribe: ['foo.*', bar] }", ["foo.a", "foo.*", "bar"], ["foo", "foo.a.b", ">"]),
        ("{ subscribe: 'foo.>' }", ["foo.a", "foo.a.b", "foo.*", "foo.>"], ["foo", ">", "*.a"]),
        ("{ subscribe: { deny: foo } }", ["bar", ">", "*"], ["foo"]),
        ("{ subscribe: { deny: 'foo.>' } }", ["foo", ">"], ["foo.a", "foo.*", "foo.>"]),
        ("{ subscribe: { deny: '>' } }", [], ["foo", ">", "*"]),
        ("{ subscribe: { allow: 'foo.>', deny: 'foo.bar' } }", ["foo.baz", "foo.>"], ["foo.bar", "bar"]),
        ("{ export: foo }", ["foo"], ["bar"]),
        ("{ publish: foo }", ["anything"], []),
    ],
)
def test_subscribe(start, permissions: str, allowed: list[str], denied: list[str]) -> None:
    client = start(permissions)

    for subject in allowed:
        assert may_subscribe(client, subject), subject
    for subject in denied:
        assert not may_subscribe(client, subject), subject


@pytest.mark.parametrize(
    ("permissions", "allowed", "denied"),
    [
        ("{ subscribe: foo }", [("foo", ""), ("foo", "any")], [("bar", "any")]),
        ("{ subscribe: 'foo q' }", [("foo", "q")], [("foo", ""), ("foo", "r"), ("bar", "q")]),
        ("{ subscribe: 'foo q.*' }", [("foo", "q.a")], [("foo", "q"), ("foo", "q.a.b"), ("foo", "")]),
        ("{ subscribe: 'foo *' }", [("foo", "q"), ("foo", "r")], [("foo", ""), ("foo", "q.r")]),
        ("{ subscribe: ['foo', 'foo q'] }", [("foo", ""), ("foo", "q")], [("foo", "r")]),
        ("{ subscribe: { deny: 'foo q' } }", [("foo", ""), ("foo", "r"), ("bar", "q")], [("foo", "q")]),
        ("{ subscribe: { allow: 'foo.>', deny: 'foo.> dev' } }", [("foo.a", "prod")], [("foo.a", "dev")]),
        ("{ subscribe: { deny: foo } }", [("bar", "q")], [("foo", ""), ("foo", "q")]),
    ],
)
def test_subscribe_with_a_queue(
    start, permissions: str, allowed: list[tuple[str, str]], denied: list[tuple[str, str]]
) -> None:
    client = start(permissions)

    for subject, queue in allowed:
        assert may_subscribe(client, subject, queue), (subject, queue)
    for subject, queue in denied:
        assert not may_subscribe(client, subject, queue), (subject, queue)


def test_denied_subjects_are_kept_back_from_wider_subscriptions(start) -> None:
    client = start("{ subscribe: { deny: ['secret', 'a.secret.>'] } }")
    publisher = start.connect("all")
    client.send(b"SUB > 1\r\nSUB a.> q 2\r\nSUB * 3\r\n")
    client.expect_pong()

    publisher.send(b"PUB secret 0\r\n\r\nPUB a.secret.x 0\r\n\r\nPUB a.open 0\r\n\r\n")
    publisher.expect_pong()

    frames = sorted(client.read_line() for _ in range(2))
    assert frames == [b"MSG a.open 1 0\r\n\r\n", b"MSG a.open 2 0\r\n\r\n"]
    client.expect_silence()


def test_violation_closes_nothing_and_drops_the_message(start) -> None:
    client = start("{ publish: foo }")
    other = start.connect("all")
    other.send(b"SUB > 1\r\n")
    other.expect_pong()

    client.send(b"PUB bar 2\r\nno\r\nPUB foo 3\r\nyes\r\n")

    client.expect_error(publish_error("bar"))
    other.expect(b"MSG foo 1 3\r\nyes\r\n")
    other.expect_silence()
    client.expect_pong()


def test_own_permissions_take_none_of_the_defaults(start_server) -> None:
    server = start_server(
        config="""authorization {
          default_permissions { publish: foo, subscribe: bar }
          users: [ {user: plain}, {user: own, permissions: {publish: own}} ]
        }"""
    )

    with server.client() as plain, server.client() as own:
        plain.connect(user="plain")
        own.connect(user="own")

        assert (may_publish(plain, "foo"), may_publish(plain, "own")) == (True, False)
        assert (may_subscribe(plain, "bar"), may_subscribe(plain, "foo")) == (True, False)
        assert (may_publish(own, "own"), may_publish(own, "foo")) == (True, False)
        assert may_subscribe(own, "anything")


def test_default_permissions_of_an_account(start_server) -> None:
    server = start_server(
        config="""accounts {
          A { default_permissions { publish: foo }, users: [ {user: a} ] }
          B { users: [ {user: b} ] }
        }"""
    )

    with server.client() as a, server.client() as b:
        a.connect(user="a")
        b.connect(user="b")

        assert (may_publish(a, "foo"), may_publish(a, "bar")) == (True, False)
        assert may_publish(b, "bar")


def test_answer_is_allowed_once(start) -> None:
    client = start("{ subscribe: requests, allow_responses: true }")
    requester = start.connect("all")
    client.send(b"SUB requests 1\r\n")
    client.expect_pong()
    requester.send(b"SUB inbox.> 1\r\nPUB requests inbox.one 0\r\n\r\n")
    client.expect(b"MSG requests 1 inbox.one 0\r\n\r\n")

    assert not may_publish(client, "inbox.two")
    assert may_publish(client, "inbox.one")
    assert not may_publish(client, "inbox.one")

    requester.expect(b"MSG inbox.one 1 0\r\n\r\n")
    requester.expect_silence()


def test_answers_have_a_number(start) -> None:
    client = start("{ subscribe: requests, publish: log, allow_responses: { max: 3 } }")
    requester = start.connect("all")
    client.send(b"SUB requests 1\r\n")
    client.expect_pong()
    requester.send(b"PUB requests inbox 0\r\n\r\n")
    client.expect(b"MSG requests 1 inbox 0\r\n\r\n")

    assert [may_publish(client, "inbox") for _ in range(4)] == [True, True, True, False]
    assert may_publish(client, "log")


def test_answers_have_a_time(start) -> None:
    import time

    # Long enough for the first answer to come in time on a machine that is busy.
    client = start("{ subscribe: requests, allow_responses: { max: 10, expires: '4s' } }")
    requester = start.connect("all")
    client.send(b"SUB requests 1\r\n")
    client.expect_pong()
    requester.send(b"PUB requests inbox 0\r\n\r\n")
    client.expect(b"MSG requests 1 inbox 0\r\n\r\n")

    assert may_publish(client, "inbox")
    time.sleep(4.2)
    assert not may_publish(client, "inbox")


def test_user_that_may_publish_nothing_may_still_answer(start) -> None:
    client = start("{ subscribe: requests, publish: { deny: '>' }, allow_responses: true }")
    requester = start.connect("all")
    client.send(b"SUB requests 1\r\n")
    client.expect_pong()
    requester.send(b"PUB requests inbox 0\r\n\r\n")
    client.expect(b"MSG requests 1 inbox 0\r\n\r\n")

    assert [may_publish(client, "inbox") for _ in range(2)] == [True, False]


def test_headers_are_checked_like_everything_else(start) -> None:
    client = start("{ publish: foo }", headers=True)

    client.send(b"HPUB bar 12 12\r\nNATS/1.0\r\n\r\n\r\n")

    client.expect_error(publish_error("bar"))


def test_connection_that_asks_again_gets_the_rights_of_the_new_user(start) -> None:
    client = start("{ publish: foo, subscribe: foo }")

    client.connect(user="all")
    assert may_publish(client, "bar")
    client.connect(user="limited")
    assert not may_publish(client, "bar")
