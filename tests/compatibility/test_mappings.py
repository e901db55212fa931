"""Subject mappings: what an account makes of the subjects its clients publish to."""

from __future__ import annotations

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_reload import reload  # noqa: F401
from tests.compatibility.wire import RawClient

CONFIG = """
mappings {
  plain: renamed
  "one.*.*": "one.$2.$1"
  "two.*": "two.mapped.{{wildcard(1)}}"
  "rest.>": "elsewhere.>"
  "part.*": "part.{{partition(4,1)}}.{{wildcard(1)}}"
  "cut.*": "cut.{{splitFromLeft(1,2)}}"
  never: [{ destination: other, weight: 0% }]
  nowhere: [{ destination: nowhere, weight: 0% }]
  here: [{ destination: there, weight: 100%, cluster: elsewhere }]
}
accounts {
  A { users: [ {user: a, password: a}, {user: narrow, password: narrow, permissions: {publish: "of.a"}} ]
       mappings: { plain: "of.a", barred: "of.b" } }
  $SYS { users: [ {user: s, password: s} ] }
}
authorization { users: [ {user: g, password: g} ] }
"""


@pytest.fixture(scope="module")
def mapped(start_once) -> ServerProcess:
    return start_once(config=CONFIG)


def connect(client: RawClient, user: str = "g") -> None:
    client.connect(**{"protocol": 1, "user": user, "pass": user, "headers": True, "no_responders": True})


@pytest.mark.parametrize(
    ("published", "delivered"),
    [
        ("plain", "renamed"),
        ("one.1.2", "one.2.1"),
        ("two.x", "two.mapped.x"),
        ("rest.a.b", "elsewhere.a.b"),
        ("part.abc", "part.3.abc"),
        ("cut.abcdef", "cut.ab.cdef"),
        ("never", "never"),
        ("here", "here"),
        ("unmapped", "unmapped"),
    ],
)
def test_message_arrives_under_the_mapped_subject_and_no_other(mapped, published: str, delivered: str) -> None:
    with mapped.client() as receiver, mapped.client() as publisher:
        connect(receiver)
        connect(publisher)
        receiver.send(b"SUB > 1\r\n")
        receiver.expect_pong()

        publisher.send(f"PUB {published} answers 2\r\nhi\r\n".encode())

        receiver.expect(f"MSG {delivered} 1 answers 2\r\nhi\r\n".encode())
        receiver.expect_silence()


def test_message_that_is_mapped_away_reaches_nobody_and_its_requester_hears_so(mapped) -> None:
    with mapped.client() as receiver, mapped.client() as publisher:
        connect(receiver)
        connect(publisher)
        receiver.send(b"SUB nowhere 1\r\n")
        receiver.expect_pong()

        publisher.send(b"SUB inbox 1\r\nPUB nowhere inbox 2\r\nhi\r\n")

        assert publisher.read_line().startswith(b"HMSG inbox 1 ")
        receiver.expect_silence()


def test_mappings_are_those_of_the_account_and_permissions_are_about_what_becomes_of_a_subject(mapped) -> None:
    with mapped.client() as receiver, mapped.client() as narrow:
        connect(receiver, "a")
        connect(narrow, "narrow")
        receiver.send(b"SUB > 1\r\n")
        receiver.expect_pong()

        narrow.send(b"PUB plain 2\r\nhi\r\nPUB barred 2\r\nno\r\n")

        receiver.expect(b"MSG of.a 1 2\r\nhi\r\n")
        receiver.expect_silence()
        assert narrow.read_line().startswith(b"-ERR 'Permissions Violation for Publish to \"of.b\"'")


def test_stream_stores_what_was_mapped_to_it(start_server, tmp_path) -> None:
    server = start_server(config=f'jetstream {{ store_dir: "{tmp_path}" }}, mappings {{ stored: "kept.stored" }}')
    with server.client() as client:
        client.connect(protocol=1)
        client.send(b"SUB inbox 1\r\n")
        body = b'{"name":"KEPT","subjects":["kept.>"]}'
        client.send(b"PUB $JS.API.STREAM.CREATE.KEPT inbox %d\r\n%s\r\n" % (len(body), body))
        assert b'"created"' in client.read_line()

        client.send(b"PUB stored inbox 2\r\nhi\r\n")

        assert b'"seq":1' in client.read_line()


def test_weights_divide_messages(start_server) -> None:
    server = start_server(config="mappings { split: [{destination: a, weight: 50%}, {destination: b, weight: 50}] }")
    with server.client() as receiver, server.client() as publisher:
        receiver.connect(protocol=1)
        publisher.connect(protocol=1)
        receiver.send(b"SUB * 1\r\n")
        receiver.expect_pong()
        publisher.send(b"PUB split 0\r\n\r\n" * 1000)
        publisher.expect_pong()

        frames = [receiver.read_line() for _ in range(1000)]

    counts = {subject: frames.count(b"MSG %s 1 0\r\n\r\n" % subject) for subject in (b"a", b"b")}
    assert sum(counts.values()) == 1000
    assert all(300 < count < 700 for count in counts.values()), counts


@pytest.mark.parametrize(
    "text",
    [
        "mappings { a: [{destination: b, weight: 60%}, {destination: c, weight: 60%}] }",
        "mappings { a: [{destination: b, weight: 101}] }",
        "mappings { a: [{destination: b}] }",
        "mappings { a: [{destination: b, weight: 10}, {destination: b, weight: 10}] }",
        "mappings { 'a.*': 'b.$2' }",
        "mappings { 'a..b': c }",
        "mappings { a: 'b.{{nonsense(1)}}' }",
    ],
)
def test_mapping_that_makes_no_sense_stops_the_start(start_server, text: str) -> None:
    with pytest.raises(RuntimeError):
        start_server(config=text)


def test_reload_changes_mappings(start_server, reload) -> None:  # noqa: F811
    server = start_server(config="mappings { a: b }")
    with server.client() as client:
        client.connect(protocol=1)
        client.send(b"SUB * 1\r\nPUB a 0\r\n\r\n")
        client.expect(b"MSG b 1 0\r\n\r\n")

        reload(server, "mappings { a: c }")
        client.send(b"PUB a 0\r\n\r\n")
        client.expect(b"MSG c 1 0\r\n\r\n")

        reload(server, "mappings { other: c }")
        client.send(b"PUB a 0\r\n\r\n")
        client.expect(b"MSG a 1 0\r\n\r\n")
