"""Exports and imports: what one account sees of another, and nothing more than that."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest

from tests.compatibility.jetstream import POLL_SECONDS
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_reload import reload  # noqa: F401
from tests.compatibility.wire import TIMEOUT_SECONDS, RawClient

CONFIG = """
jetstream {{ store_dir: "{store}" }}
accounts {{
  A {{
    jetstream: enabled
    users: [ {{user: a, password: a}} ]
    exports: [
      {{ stream: "orders.>" }}
      {{ stream: "private.*", accounts: [B] }}
      {{ service: "quote.*" }}
      {{ service: many, response_type: stream }}
      {{ service: chunks, response_type: chunked }}
      {{ service: "own.*", account_token_position: 2 }}
      {{ service: slow, threshold: "100ms" }}
      {{ service: "$JS.API.>", response_type: stream }}
      {{ service: "$JS.ACK.>" }}
      {{ stream: "delivered.>" }}
    ]
  }}
  B {{
    jetstream: enabled
    users: [
      {{user: b, password: b}}
      {{user: narrow, password: narrow,
        permissions: {{publish: "a.quote.x", subscribe: ["_INBOX.>", "shop.orders.eu"]}} }}
    ]
    imports: [
      {{ stream: {{account: A, subject: "orders.>"}}, prefix: shop }}
      {{ stream: {{account: A, subject: "private.*"}}, to: "secret.$1.here" }}
      {{ service: {{account: A, subject: "quote.*"}}, to: "a.quote.*" }}
      {{ service: {{account: A, subject: many}} }}
      {{ service: {{account: A, subject: chunks}} }}
      {{ service: {{account: A, subject: own.B}}, share: true }}
      {{ service: {{account: A, subject: slow}} }}
      {{ service: {{account: A, subject: "$JS.API.>"}}, to: "JS.A.API.>" }}
      {{ service: {{account: A, subject: "$JS.ACK.>"}} }}
      {{ stream: {{account: A, subject: "delivered.>"}} }}
    ]
  }}
  C {{ users: [ {{user: c, password: c}} ]
       imports: [
         {{ stream: {{account: A, subject: "orders.>"}} }}
         {{ service: {{account: A, subject: "quote.*"}} }}
       ] }}
  D {{ users: [ {{user: d, password: d}} ] }}
}}
"""


@pytest.fixture(scope="module")
def server(start_once, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    return start_once(config=CONFIG.format(store=tmp_path_factory.mktemp("store")))


@contextmanager
def clients(server: ServerProcess, *users: str) -> Iterator[list[RawClient]]:
    with ExitStack() as stack:
        connected = []
        for user in users:
            client = stack.enter_context(server.client())
            client.connect(**{"protocol": 1, "user": user, "pass": user, "headers": True, "no_responders": True})
            connected.append(client)
        yield connected


def subscribe(client: RawClient, *lines: str) -> None:
    for line in lines:
        client.send(f"SUB {line}\r\n".encode())
    client.expect_pong()


class Received(NamedTuple):
    """A message with headers."""

    subject: bytes
    sid: bytes
    reply: bytes
    headers: dict[str, str]
    payload: bytes

    @property
    def requester(self) -> dict[str, Any]:
        information: dict[str, Any] = json.loads(self.headers["Nats-Request-Info"])
        return information


def receive(client: RawClient) -> Received:
    """Read a message with headers."""
    line, _, rest = client.read_line().partition(b"\r\n")
    kind, subject, sid, *reply, header_bytes, _ = line.split()
    assert kind == b"HMSG", line
    block, payload = rest[: int(header_bytes)], rest[int(header_bytes) : -2]
    lines = block.decode().split("\r\n")[1:-2]
    headers = dict(header.split(": ", 1) for header in lines)
    return Received(subject, sid, reply[0] if reply else b"", headers, payload)


# Streams


@pytest.mark.parametrize(
    ("subscribed", "published", "delivered"),
    [
        ("shop.orders.eu", "orders.eu", "shop.orders.eu"),
        ("shop.orders.*", "orders.eu", "shop.orders.eu"),
        ("shop.>", "orders.eu.1", "shop.orders.eu.1"),
        (">", "orders.eu", "shop.orders.eu"),
        ("*.orders.eu", "orders.eu", "shop.orders.eu"),
        ("secret.x.here", "private.x", "secret.x.here"),
        ("secret.*.*", "private.y", "secret.y.here"),
    ],
)
def test_stream_of_another_account_arrives_under_its_subject_here(server, subscribed, published, delivered) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(b, f"{subscribed} 7")

        a.send(f"PUB {published} reply 2\r\nhi\r\nPUB unexported 2\r\nno\r\n".encode())

        b.expect(f"MSG {delivered} 7 reply 2\r\nhi\r\n".encode())
        b.expect_silence()


def test_stream_goes_one_way_and_only_to_those_who_import_it(server) -> None:
    with clients(server, "a", "b", "c", "d") as (a, b, c, d):
        for client in (a, c, d):
            subscribe(client, "> 1")

        b.send(b"PUB shop.orders.eu 2\r\nno\r\nPUB orders.eu 2\r\nno\r\n")
        b.expect_pong()
        a.send(b"PUB orders.eu 2\r\nhi\r\nPUB private.x 2\r\nhi\r\n")

        a.expect(b"MSG orders.eu 1 2\r\nhi\r\nMSG private.x 1 2\r\nhi\r\n")
        c.expect(b"MSG orders.eu 1 2\r\nhi\r\n")
        for client in (a, c, d):
            client.expect_silence()


def test_permissions_of_a_subscriber_are_about_the_subjects_here(server) -> None:
    with clients(server, "a", "narrow") as (a, narrow):
        narrow.send(b"SUB shop.orders.* 1\r\n")
        assert narrow.read_line().startswith(b"-ERR 'Permissions Violation for Subscription")
        subscribe(narrow, "shop.orders.eu 2")

        a.send(b"PUB orders.us 2\r\nno\r\nPUB orders.eu 2\r\nhi\r\n")

        narrow.expect(b"MSG shop.orders.eu 2 2\r\nhi\r\n")
        narrow.expect_silence()


def test_subscription_that_ended_gets_nothing_from_the_other_account(server) -> None:
    with clients(server, "a", "b") as (a, b):
        b.send(b"SUB shop.orders.eu 1\r\nSUB shop.orders.us 2\r\nUNSUB 2\r\n")
        b.expect_pong()

        a.send(b"PUB orders.us 0\r\n\r\nPUB orders.eu 0\r\n\r\n")

        b.expect(b"MSG shop.orders.eu 1 0\r\n\r\n")
        b.expect_silence()


def test_limit_of_a_subscription_holds_for_another_account(server, server_kind: str) -> None:
    if server_kind != "jetlake":
        pytest.skip("nats-server delivers more than the limit: see differences.md")
    with clients(server, "a", "b") as (a, b):
        b.send(b"SUB shop.orders.eu 1\r\nUNSUB 1 2\r\n")
        b.expect_pong()

        a.send(b"PUB orders.eu 0\r\n\r\n" * 4)

        b.expect(b"MSG shop.orders.eu 1 0\r\n\r\n" * 2)
        b.expect_silence()


def test_queue_group_gets_each_message_once(server) -> None:
    with clients(server, "a", "b", "b") as (a, b, other):
        subscribe(b, "shop.orders.eu workers 1")
        subscribe(other, "shop.orders.eu workers 1")

        a.send(b"PUB orders.eu 0\r\n\r\n" * 40)
        a.expect_pong()
        received = 0
        for client in (b, other):
            client.send(b"PING\r\n")
            while (line := client.read_line()) != b"PONG\r\n":
                received += line.startswith(b"MSG")

        assert received == 40


# Services


def test_request_reaches_the_service_and_the_answer_comes_back(server) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "quote.* 1")
        subscribe(b, "_INBOX.1 9")

        b.send(b"PUB a.quote.x _INBOX.1 2\r\nhi\r\n")
        asked = receive(a)
        assert (asked.subject, asked.sid, asked.payload) == (b"quote.x", b"1", b"hi")
        assert asked.reply.startswith(b"_R_.")
        assert asked.requester["acc"] == "B"
        a.send(b"PUB %s 3\r\nyes\r\nPUB %s 4\r\nmore\r\n" % (asked.reply, asked.reply))

        b.expect(b"MSG _INBOX.1 9 3\r\nyes\r\n")
        # One answer is all that is expected.
        b.expect_silence()


def test_request_without_a_service_is_told_so(server) -> None:
    with clients(server, "b") as (b,):
        subscribe(b, "_INBOX.2 9")

        b.send(b"PUB a.quote.x _INBOX.2 2\r\nhi\r\n")

        assert b.read_line().startswith(b"HMSG _INBOX.2 9 ")


def test_client_cannot_say_who_it_is(server) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "quote.* 1")
        forged = b'NATS/1.0\r\nNats-Request-Info: {"acc":"ROOT"}\r\nMine: 1\r\n\r\n'

        b.send(b"HPUB a.quote.x %d %d\r\n%s\r\n" % (len(forged), len(forged), forged))

        asked = receive(a)
        assert asked.requester["acc"] == "B"
        assert asked.headers["Mine"] == "1"


def test_service_hears_who_asks_only_where_that_is_shared(server) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "own.* 1", "quote.* 2")

        b.send(b"PUB own.B 0\r\n\r\nPUB a.quote.x 0\r\n\r\n")

        assert receive(a).requester["user"] == "b"
        assert "user" not in receive(a).requester


def test_stream_of_answers_comes_back(server) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "many 1")
        subscribe(b, "_INBOX.3 9")
        b.send(b"PUB many _INBOX.3 0\r\n\r\n")
        reply = receive(a).reply

        a.send(b"".join(b"PUB %s 1\r\n%d\r\n" % (reply, number) for number in range(5)))

        b.expect(b"".join(b"MSG _INBOX.3 9 1\r\n%d\r\n" % number for number in range(5)))


def test_chunks_end_with_an_empty_one(server) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "chunks 1")
        subscribe(b, "_INBOX.4 9")
        b.send(b"PUB chunks _INBOX.4 0\r\n\r\n")
        reply = receive(a).reply

        a.send(b"PUB %s 1\r\n1\r\nPUB %s 1\r\n2\r\nPUB %s 0\r\n\r\nPUB %s 4\r\nlate\r\n" % (reply, reply, reply, reply))

        b.expect(b"MSG _INBOX.4 9 1\r\n1\r\nMSG _INBOX.4 9 1\r\n2\r\nMSG _INBOX.4 9 0\r\n\r\n")
        b.expect_silence()


@pytest.mark.parametrize("service", ["a.quote.x", "many"])
def test_answer_may_be_answered(server, service: str) -> None:
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "quote.* 1", "many 3", "back 2")
        subscribe(b, "_INBOX.6 9")
        b.send(f"PUB {service} _INBOX.6 2\r\nhi\r\n".encode())

        a.send(b"PUB %s back 3\r\nyes\r\n" % receive(a).reply)
        _, subject, sid, reply, _, payload = b.read_line().split()
        assert (subject, sid, payload) == (b"_INBOX.6", b"9", b"yes")
        assert reply.startswith(b"_R_.")
        b.send(b"PUB %s 4\r\nmore\r\n" % reply)

        a.expect(b"MSG back 2 4\r\nmore\r\n")


def test_permissions_of_a_requester_are_about_the_subjects_here(server) -> None:
    with clients(server, "a", "narrow") as (a, narrow):
        subscribe(a, "quote.* 1")

        narrow.send(b"PUB a.quote.y 2\r\nno\r\n")
        assert narrow.read_line().startswith(b"-ERR 'Permissions Violation for Publish to \"a.quote.y\"'")
        narrow.send(b"PUB a.quote.x 2\r\nhi\r\n")

        assert receive(a).subject == b"quote.x"


def test_large_requests_and_answers_arrive_whole(server) -> None:
    body = bytes(range(256)) * 400
    with clients(server, "a", "b") as (a, b):
        subscribe(a, "quote.* 1")
        subscribe(b, "_INBOX.5 9")

        b.send(b"PUB a.quote.x _INBOX.5 %d\r\n%s\r\n" % (len(body), body))
        asked = receive(a)
        assert asked.payload == body
        a.send(b"PUB %s %d\r\n%s\r\n" % (asked.reply, len(body), body))

        b.expect(b"MSG _INBOX.5 9 %d\r\n%s\r\n" % (len(body), body))


# JetStream


def request(client: RawClient, subject: str, body: bytes = b"", inbox: str = "_INBOX.api") -> dict[str, Any]:
    client.send(f"SUB {inbox} 99\r\nPUB {subject} {inbox} {len(body)}\r\n".encode() + body + b"\r\n")
    line, _, payload = client.read_line().partition(b"\r\n")
    assert line.startswith(b"MSG "), line
    client.send(b"UNSUB 99\r\n")
    answer: dict[str, Any] = json.loads(payload)
    return answer


def test_streams_of_another_account_are_managed_and_read_through_imports(server) -> None:
    with clients(server, "a", "b") as (a, b):
        config = {"name": "S", "subjects": ["kept"]}
        created = request(b, "JS.A.API.STREAM.CREATE.S", json.dumps(config).encode())
        assert created["config"]["name"] == "S"
        assert request(a, "$JS.API.STREAM.NAMES")["streams"] == ["S"]
        assert request(a, "kept", b"hi")["seq"] == 1
        consumer = {"stream_name": "S", "config": {"durable_name": "C", "ack_policy": "explicit"}}
        request(b, "JS.A.API.CONSUMER.CREATE.S.C", json.dumps(consumer).encode())

        subscribe(b, "_INBOX.next 5")
        b.send(b"PUB JS.A.API.CONSUMER.MSG.NEXT.S.C _INBOX.next 1\r\n1\r\n")
        _, subject, sid, reply, size, payload = b.read_line().split()
        assert (subject, sid, size, payload) == (b"kept", b"5", b"2", b"hi")
        b.send(b"PUB %s 4\r\n+ACK\r\n" % reply)
        b.expect_pong()

        deadline = time.monotonic() + TIMEOUT_SECONDS
        while request(a, "$JS.API.CONSUMER.INFO.S.C")["num_ack_pending"]:
            assert time.monotonic() < deadline, "the acknowledgement did not arrive"
            time.sleep(POLL_SECONDS)


def test_push_consumer_delivers_into_another_account(server) -> None:
    with clients(server, "a", "b") as (a, b):
        request(a, "$JS.API.STREAM.CREATE.P", b'{"name":"P","subjects":["pushed"]}')
        request(a, "pushed", b"hi")
        subscribe(b, "delivered.p 5")
        consumer = {"stream_name": "P", "config": {"deliver_subject": "delivered.p", "ack_policy": "none"}}
        request(a, "$JS.API.CONSUMER.CREATE.P", json.dumps(consumer).encode())

        frame = b.read_line().split()

        assert (frame[0], frame[2], frame[-1]) == (b"MSG", b"5", b"hi")


def test_stream_stores_what_another_account_publishes(server) -> None:
    with clients(server, "a", "b") as (a, b):
        request(b, "$JS.API.STREAM.CREATE.KEPT", b'{"name":"KEPT","subjects":["shop.orders.kept.>"]}')

        a.send(b"PUB orders.kept.1 2\r\nhi\r\n")
        a.expect_pong()

        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not (state := request(b, "$JS.API.STREAM.INFO.KEPT")["state"])["messages"]:
            assert time.monotonic() < deadline, "nothing was stored"
            time.sleep(POLL_SECONDS)
        assert state["messages"] == 1
        stored = request(b, "$JS.API.STREAM.MSG.GET.KEPT", b'{"seq":1}')["message"]
        assert stored["subject"] == "shop.orders.kept.1"


def test_reload_adds_imports(start_server, reload) -> None:  # noqa: F811
    exports = "A { users: [{user: a, password: a}], exports: [{stream: 'x.>'}, {service: ask}] }"
    user = "users: [{user: b, password: b}]"
    without = f"accounts {{ {exports}, B {{ {user} }} }}"
    imports = "imports: [{stream: {account: A, subject: 'x.>'}}, {service: {account: A, subject: ask}}]"
    server = start_server(config=without)
    with clients(server, "a", "b") as (a, b):
        subscribe(b, "x.1 1")
        subscribe(a, "ask 2")
        a.send(b"PUB x.1 2\r\nno\r\n")
        b.expect_silence()

        reload(server, f"accounts {{ {exports}, B {{ {user}, {imports} }} }}")
        a.send(b"PUB x.1 2\r\nhi\r\n")
        b.expect(b"MSG x.1 1 2\r\nhi\r\n")
        b.send(b"PUB ask 2\r\nhi\r\n")
        assert receive(a).subject == b"ask"


# What is refused


@pytest.mark.parametrize(
    "imports",
    [
        "imports: [{stream: {account: A, subject: unexported}}]",
        "imports: [{service: {account: A, subject: 'orders.x'}}]",
        "imports: [{stream: {account: A, subject: 'private.x'}}]",
        "imports: [{stream: {account: A, subject: '>'}}]",
        "imports: [{stream: {account: NOBODY, subject: x}}]",
        "imports: [{service: {account: A, subject: own.A}}]",
        "imports: [{service: {account: A, subject: q}}, {service: {account: A, subject: q}}]",
        "imports: [{stream: {account: A, subject: orders.x}}, {stream: {account: A, subject: orders.x}, prefix: p}]",
    ],
)
def test_import_that_was_not_exported_to_this_account_stops_the_start(start_server, imports: str) -> None:
    exports = (
        "exports: [{stream: 'orders.>'}, {stream: 'private.*', accounts: [B]}, {service: q}, "
        "{service: 'own.*', account_token_position: 2}]"
    )
    config = f"accounts {{ A {{ {exports} }}, B {{ }}, C {{ users: [{{user: c, password: c}}], {imports} }} }}"

    with pytest.raises(RuntimeError):
        start_server(config=config)


@pytest.mark.parametrize("kind", ["service", "stream"])
@pytest.mark.parametrize(
    "exports", ["{{{kind}: q}}, {{{kind}: q, accounts: [B]}}", "{{{kind}: q, accounts: [B]}}, {{{kind}: q}}"]
)
def test_export_that_is_restricted_once_is_restricted(start_server, exports: str, kind: str) -> None:
    exported = f"A {{ exports: [{exports.format(kind=kind)}] }}"

    def importing(name: str) -> str:
        wanted = f"imports: [{{{kind}: {{account: A, subject: q}}}}]"
        return f"accounts {{ {exported}, B {{ }}, {name} {{ users: [{{user: u, password: u}}], {wanted} }} }}"

    with pytest.raises(RuntimeError):
        start_server(config=importing("C"))
    start_server(config=importing("B").replace(", B { }", ""))


def test_accounts_of_repeated_exports_are_all_allowed(start_server) -> None:
    exports = "exports: [{service: q, accounts: [B]}, {service: q, accounts: [C]}]"
    imports = "imports: [{service: {account: A, subject: q}}]"

    start_server(config=f"accounts {{ A {{ {exports} }}, B {{ {imports} }}, C {{ {imports} }} }}")


def test_imports_in_a_circle_stop_the_start(start_server) -> None:
    config = """
    accounts {
      A { exports: [{service: q}], imports: [{service: {account: B, subject: q}}], users: [{user: a, password: a}] }
      B { exports: [{service: q}], imports: [{service: {account: A, subject: q}}] }
    }
    """
    with pytest.raises(RuntimeError):
        start_server(config=config)


# Monitoring


def test_page_of_an_account_tells_what_it_shares(start_monitored, tmp_path) -> None:
    mapped = 'mappings { x: y, "p.*": [{destination: "q.$1", weight: 20%}, {destination: r, weight: 30%, cluster: c}] }'
    config = CONFIG.format(store=tmp_path) + "authorization { users: [{user: g, password: g}] }\n" + mapped
    monitored = start_monitored(config=config)

    def detail(account: str, key: str) -> Any:
        return monitored.get_json(f"/accountz?acc={account}")["account_detail"].get(key)

    def by_subject(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # nats-server also shows how accounts reach the system account, and itself.
        shown = [
            entry for entry in entries if not entry["subject"].startswith("$SYS") and entry.get("account") != "$SYS"
        ]
        return sorted(shown, key=lambda entry: entry["subject"])

    exports = by_subject(detail("A", "exports"))
    assert {"subject": "orders.>", "type": "stream"} in exports
    assert {"subject": "private.*", "type": "stream", "approved_accounts": ["B"]} in exports
    assert {"subject": "many", "type": "service", "response_type": "Streamed"} in exports
    flags = {"invalid": False, "share": False, "tracking": False}
    imports = by_subject(detail("B", "imports"))
    assert {
        "subject": "private.*",
        "account": "A",
        "local_subject": "secret.*.here",
        "type": "stream",
        **flags,
    } in imports
    assert {
        "subject": "quote.*",
        "account": "A",
        "to": "a.quote.*",
        "local_subject": "a.quote.*",
        "type": "service",
        **flags,
    } in imports
    assert len(imports) == 10
    assert detail("%24G", "mappings") == {
        "x": [{"subject": "y", "weight": 100}],
        "p.*": [
            {"subject": "q.$1", "weight": 20},
            {"subject": "p.$1", "weight": 100},
            {"subject": "r", "weight": 30, "cluster": "c"},
            {"subject": "p.$1", "weight": 100, "cluster": "c"},
        ],
    }
