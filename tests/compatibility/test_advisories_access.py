"""Classes of NATS security advisories, 2020 to 2026: who comes in, what it may do, who it seems to be.

One test per class; its docstring names the advisories. Those about operator mode are in `test_jwt_advisories.py`, those
about auth callout in `test_auth_callout.py`, those about leaf nodes in `test_leafnode_access.py`. Not here, because
there is nothing of it to attack yet: routes, MQTT, and restoring of streams.
The other classes, about input, memory, files, leaks and cryptography, are in `test_advisories_input.py`.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

VIOLATION = "Authorization Violation"

# Headers that servers of NATS write, and in which clients have lied.
SERVER_OWNED_HEADERS = [
    "Nats-Request-Info",
    "Nats-Trace-Origin-Account",
    "Nats-Trace-Hop",
    "Nats-Server-Xkey",
    "Nats-Subject",
    "Nats-Stream",
    "Nats-Sequence",
    "Nats-Time-Stamp",
    "Nats-Stream-Source",
    "Nats-Mapped-Subject",
]


def refused(server: ServerProcess, **options: object) -> bool:
    """Tell whether a client with these options is refused, in the words for that."""
    with server.client() as client:
        client.send_connect(verbose=False, **options)
        client.send(b"PING\r\n")
        answer = client.read_frame()
        if answer == b"PONG\r\n":
            return False
        assert answer == f"-ERR '{VIOLATION}'\r\n".encode()
        client.expect_closed()
        return True


def connected(server: ServerProcess, user: str, **options: object) -> RawClient:
    """A client of this user, whose password is its name."""
    client = server.client()
    client.connect(**{"user": user, "pass": user, **options})
    return client


def request(client: RawClient, subject: bytes, payload: bytes = b"", header: bytes = b"") -> bytes:
    """Ask, and return the payload of the answer."""
    sizes = b"%d %d" % (len(header), len(header) + len(payload)) if header else b"%d" % len(payload)
    operation = b"HPUB" if header else b"PUB"
    client.send(b"SUB answer 77\r\n%s %s answer %s\r\n%s%s\r\n" % (operation, subject, sizes, header, payload))
    frame = client.read_line()
    assert frame.startswith((b"MSG answer 77 ", b"HMSG answer 77 ")), frame
    client.send(b"UNSUB 77\r\n")
    return frame.split(b"\r\n", 1)[1]


# Who comes in


def test_credentials_that_no_longer_hold_let_nobody_in(start_server, tmp_path: Path) -> None:
    """CVE-2020-26892: expired credentials were still accepted."""
    authority = Authority(tmp_path)
    files = authority.server()
    tls = (
        f'tls {{ cert_file: "{files.certificate_file}", key_file: "{files.key_file}", '
        f'ca_file: "{authority.file}", verify: true }}'
    )
    users = "authorization {{ users: [ {{user: ann, password: ann}}{} ] }}"
    server = start_server(config=tls + "\n" + users.format(", {user: bob, password: bob}"))
    context = authority.context(authority.client("fresh"))

    with server.client() as client:
        expired = authority.context(authority.client("expired", days=-1))
        with pytest.raises(OSError):  # noqa: PT011 - the alert comes with the handshake or with the first read
            client.encrypt(expired).recv(1)
    with server.client() as bob:
        bob.encrypt(context)
        bob.connect(**{"user": "bob", "pass": "bob"})
        (server.folder / "server.conf").write_text(tls + "\n" + users.format(""))
        server.signal(signal.SIGHUP)
        server.wait_for_log("Reloaded")

        assert bob.read_to_end() in {b"", f"-ERR '{VIOLATION}'\r\n".encode()}
    with server.client() as bob:
        bob.encrypt(context)
        bob.send_connect(**{"user": "bob", "pass": "bob"})
        bob.expect_error_and_closed(VIOLATION)


@pytest.mark.parametrize("options", [{"account": "B"}, {"account": "B", "new_account": True}, {"new_account": True}])
def test_client_does_not_choose_its_account(start_server, options: dict[str, object]) -> None:
    """CVE-2022-24450: a client that named an account was put there; CVE-2021-3127: a token of another account."""
    server = start_server(
        config="accounts { A { users: [ {user: a, password: a} ] }, B { users: [ {user: b, password: b} ] } }"
    )

    assert refused(server, **{"user": "a", "pass": "a", **options})


def test_users_of_the_system_account_open_the_server_to_nobody_else(start_server) -> None:
    """CVE-2023-47090: users in the system account made the server let everybody into the others."""
    server = start_server(
        config="""
          authorization { users: [ {user: ann, password: ann} ] }
          accounts { $SYS { users: [ {user: admin, password: admin} ] } }
        """
    )

    assert refused(server)
    assert refused(server, user="ann")
    assert refused(server, **{"user": "admin", "pass": "ann"})
    with connected(server, "ann", protocol=1) as ann, connected(server, "admin", protocol=1) as admin:
        assert ann.connected_info["remote_account"] == "$G"
        assert admin.connected_info["remote_account"] == "$SYS"


def test_one_account_cannot_ask_the_server_about_another(start_server) -> None:
    """CVE-2025-30215: requests to the server's own subjects were obeyed across accounts."""
    server = start_server(
        config="""accounts {
          $SYS { users: [ {user: admin, password: admin} ] }
          A { users: [ {user: a, password: a} ] }, B { users: [ {user: b, password: b} ] }
        }"""
    )
    with connected(server, "admin") as admin:
        server_id = json.loads(request(admin, b"$SYS.REQ.SERVER.PING.IDZ"))["id"].encode()

    with connected(server, "a", headers=True, no_responders=True) as client, connected(server, "b") as other:
        other.send(b"SUB > 1\r\nSUB $SYS.> 2\r\nSUB $JS.> 3\r\n")
        other.expect_pong()
        for subject in (
            b"$SYS.REQ.ACCOUNT.B.CONNZ",
            b"$SYS.REQ.SERVER.PING.VARZ",
            b"$SYS.REQ.SERVER.%s.KICK" % server_id,
            b"$SYS.REQ.SERVER.%s.RELOAD" % server_id,
            b"$SYS.DEBUG.SUBSCRIBERS",
            b"$JS.API.STREAM.PURGE.ORDERS",
        ):
            assert request(client, subject).startswith(b"NATS/1.0 503\r\n")
        other.expect_pong()


def test_certificate_is_the_user_it_names_and_no_other(start_server, tmp_path: Path) -> None:
    """CVE-2026-33248: some patterns of distinguished names matched certificates with others."""
    authority = Authority(tmp_path)
    files = authority.server()
    server = start_server(
        config=f"""
          tls {{ cert_file: "{files.certificate_file}", key_file: "{files.key_file}"
                 ca_file: "{authority.file}", verify_and_map: true }}
          authorization {{ users: [ {{user: "CN=alice,OU=sea,O=Lake"}}, {{user: "CN=root"}} ] }}
        """
    )
    subjects: list[tuple[dict[str, str], bool]] = [
        ({"O": "Lake", "OU": "sea", "CN": "alice"}, True),
        ({"O": "Lake", "CN": "alice"}, False),
        ({"OU": "sea", "CN": "alice"}, False),
        ({"O": "Lake", "OU": "Sea", "CN": "alice"}, False),
        ({"O": "Lakes", "OU": "sea", "CN": "alice"}, False),
        ({"CN": "alice,OU=sea,O=Lake"}, False),
        ({"O": "Lake", "CN": "alice,OU=sea"}, False),
        ({"O": "Lake", "OU": "sea+O=Lake", "CN": "alice"}, False),
        ({"O": "Lake", "OU": "sea", "CN": "root"}, False),
        ({"O": "Lake", "CN": "root"}, False),
    ]

    for number, (subject, expected) in enumerate(subjects):
        with server.client() as client:
            client.encrypt(authority.context(authority.client(f"client{number}", subject=subject)))
            client.send_connect(verbose=False)
            client.send(b"PING\r\n")
            assert (client.read_line() == b"PONG\r\n") == expected, subject


def test_wrong_credentials_do_not_become_the_user_without_credentials(start_server) -> None:
    """NATS-2026-16: on another listener, who failed to log in became `no_auth_user`."""
    server = start_server(
        config="""
          authorization { users: [ {user: ann, password: ann}, {user: guest, permissions: {publish: lobby}} ] }
          no_auth_user: guest
        """
    )

    for options in ({"user": "ann", "pass": "x"}, {"user": "nobody"}, {"auth_token": "x"}, {"pass": "ann"}):
        assert refused(server, **options), options
    with server.client() as stranger:
        stranger.connect()
        stranger.send(b"PUB elsewhere 0\r\n\r\n")
        stranger.expect_error('Permissions Violation for Publish to "elsewhere"')


@pytest.mark.parametrize(
    "first", [b"PING\r\n", b"PUB spied 2\r\nhi\r\n", b"SUB spied 1\r\n", b"pub spied 2\r\nhi\r\n", b"+OK\r\n", b"\r\n"]
)
def test_nothing_passes_before_connect(start_server, first: bytes) -> None:
    """NATS-2026-24: a first operation other than CONNECT took a path without the check."""
    server = start_server(config="authorization { user: ann, password: ann }")
    login = b'CONNECT {"verbose":false,"user":"ann","pass":"%s"}\r\n'
    with connected(server, "ann") as spy:
        spy.send(b"SUB spied 1\r\n")
        spy.expect_pong()

        for data in (first, first + login % b"ann", login % b"wrong" + first, b"CONNECT {}\r\n" + first):
            with server.client() as stranger:
                stranger.send(data)
                assert stranger.read_to_end().startswith(b"-ERR '")
        spy.expect_pong()


# What it may do


Start = Callable[[str], tuple[RawClient, RawClient]]


@pytest.fixture
def start(start_server, request: pytest.FixtureRequest) -> Start:
    """Start a server and return a client with these permissions, and one that may do everything."""

    def start(permissions: str) -> tuple[RawClient, RawClient]:
        server = start_server(
            config=f"""authorization {{ users: [
              {{user: all, password: all}}, {{user: limited, password: limited, permissions: {permissions}}}
            ] }}"""
        )
        clients = [connected(server, user, headers=True) for user in ("limited", "all")]
        for client in clients:
            request.addfinalizer(client.close)
        return clients[0], clients[1]

    return start


@pytest.mark.parametrize("queue", [b"", b"workers "])
@pytest.mark.parametrize(
    ("denied", "wide", "secret", "harmless"),
    [
        ("foo.*.secret", b"foo.>", b"foo.a.secret", b"foo.a.b"),
        ("foo.*.secret", b"foo.a.*", b"foo.a.secret", b"foo.a.b"),
        ("foo.*.secret", b"*.*.*", b"foo.a.secret", b"foo.secret.a"),
        ("foo.>", b"*.a", b"foo.a", b"bar.a"),
        ("*.a", b"foo.>", b"foo.a", b"foo.b"),
        ("foo.bar", b">", b"foo.bar", b"foo.bar.a"),
    ],
)
def test_wider_subscription_is_no_way_around_a_denial(
    start: Start, denied: str, wide: bytes, secret: bytes, harmless: bytes, queue: bytes
) -> None:
    """CVE-2022-29946 and NATS-2026-17: a subscription that overlaps what is denied got it; as a queue, NATS-2026-18."""
    client, other = start(f'{{ subscribe: {{ allow: ">", deny: "{denied}" }} }}')
    client.send(b"SUB %s %s1\r\n" % (wide, queue))
    client.expect_pong()

    other.send(b"PUB %s 0\r\n\r\nPUB %s 0\r\n\r\n" % (secret, harmless))
    other.expect_pong()

    client.expect(b"MSG %s 1 0\r\n\r\n" % harmless)
    client.expect_pong()


def test_queue_is_no_way_around_a_denial(start: Start) -> None:
    """CVE-2022-29946 and NATS-2026-18: what was denied was allowed with a queue, or with another one."""
    client, other = start('{ subscribe: { allow: ["foo", "bar open", "wide.>"], deny: ["foo shut", "wide.x *"] } }')

    for line, error in (
        (b"SUB foo shut 1", 'Subscription to "foo" using queue "shut"'),
        (b"SUB bar 2", 'Subscription to "bar"'),
        (b"SUB bar shut 3", 'Subscription to "bar" using queue "shut"'),
        (b"SUB wide.x any 4", 'Subscription to "wide.x" using queue "any"'),
        (b"SUB b*r open 5", 'Subscription to "b*r" using queue "open"'),
    ):
        client.send(line + b"\r\n")
        client.expect_error(f"Permissions Violation for {error}")
    other.send(b"PUB foo 0\r\n\r\nPUB bar 0\r\n\r\nPUB wide.x 0\r\n\r\n")
    other.expect_pong()
    client.expect_pong()


def test_header_does_not_publish_where_its_sender_may_not(start: Start) -> None:
    """CVE-2026-33249 and NATS-2026-20: the trace of a message went to a subject that its sender could not use."""
    client, other = start('{ publish: "open" }')
    other.send(b"SUB secret 1\r\n")
    other.expect_pong()

    for value in (b"secret", b"secret\r\nNats-Trace-Only: true"):
        header = b"NATS/1.0\r\nNats-Trace-Dest: %s\r\nAccept-Encoding: identity\r\n\r\n" % value
        client.send(b"HPUB open %d %d\r\n%s\r\nPING\r\n" % (len(header), len(header), header))
        while client.read_line() != b"PONG\r\n":
            pass

    other.expect_silence()


# Who it seems to be


@pytest.mark.parametrize("name", SERVER_OWNED_HEADERS)
def test_header_of_a_client_does_not_say_who_it_is(start_server, name: str) -> None:
    """CVE-2026-33223 and CVE-2026-33246: the server believed `Nats-Request-Info` from a client; CVE-2026-33215."""
    server = start_server(
        config="accounts { A { users: [ {user: a, password: a} ] }, B { users: [ {user: b, password: b} ] } }"
    )
    lie = json.dumps({"acc": "B", "user": "b", "account": "B"})
    with connected(server, "a", headers=True) as client, connected(server, "b"):
        for lines in (
            f"{name}: {lie}\r\n",
            f"{name}: {lie}\r\n{name}: {lie}\r\n",
            f"{name.lower()}:{lie}\r\n",
            f"{name} : {lie}\r\n",
            f"Other: x\n{name}: {lie}\r\n",
        ):
            header = f"NATS/1.0\r\n{lines}\r\n".encode()
            who = json.loads(request(client, b"$SYS.REQ.USER.INFO", header=header))
            seen = json.loads(request(client, b"$SYS.REQ.ACCOUNT.PING.CONNZ", b'{"acc":"B","auth":true}', header))

            assert (who["data"]["user"], who["data"]["account"]) == ("a", "A")
            assert [each["account"] for each in seen["data"]["connections"]] == ["A"]
            client.send(b"SUB x 5\r\nHPUB x %d %d\r\n%s\r\n" % (len(header), len(header), header))
            # Between clients they are data like any other.
            client.expect(b"HMSG x 5 %d %d\r\n%s\r\n" % (len(header), len(header), header))
            client.send(b"UNSUB 5\r\n")
