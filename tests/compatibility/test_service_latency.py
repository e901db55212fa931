"""Latency events: how long requests to a service of another account take, told to the account that exports it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_imports import clients, receive, subscribe
from tests.compatibility.test_reload import reload  # noqa: F401
from tests.compatibility.wire import RawClient

CONFIG = """
server_name: measured
accounts {
  A {
    users: [ {user: a, password: a} ]
    exports: [
      { service: ask, latency: "latency.ask" }
      { service: "open.*", latency: { sampling: 100%, subject: latency.open } }
      { service: by.header, latency: { sampling: headers, subject: latency.header } }
      { service: slow, threshold: "200ms", latency: { sampling: 100, subject: latency.slow } }
      { service: unmeasured }
      { service: chained, latency: latency.chained }
    ]
  }
  B {
    users: [ {user: b, password: b} ]
    imports: [
      { service: {account: A, subject: ask}, to: "a.ask" }
      { service: {account: A, subject: "open.*"}, share: true }
      { service: {account: A, subject: by.header} }
      { service: {account: A, subject: slow} }
      { service: {account: A, subject: unmeasured} }
      { service: {account: A, subject: chained} }
    ]
    exports: [ { service: chained, latency: latency.first } ]
  }
  C {
    users: [ {user: c, password: c} ]
    imports: [ { service: {account: B, subject: chained}, to: far, share: true } ]
  }
}
"""

EVENT_TYPE = "io.nats.server.metric.v1.service_latency"

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")

DETAILS = {"start", "host", "id", "user", "ver", "lang", "name", "server", "kind", "client_type"}


@pytest.fixture(scope="module")
def server(start_once) -> ServerProcess:
    return start_once(config=CONFIG)


def read_event(client: RawClient, subject: str) -> dict[str, Any]:
    line, _, payload = client.read_line().partition(b"\r\n")
    kind, published, *_ = line.split()
    assert (kind, published) == (b"MSG", subject.encode())
    event: dict[str, Any] = json.loads(payload)
    assert event["type"] == EVENT_TYPE
    assert re.fullmatch(r"[0-9A-Za-z]{22}", event["id"])
    assert TIME.fullmatch(event["timestamp"])
    assert TIME.fullmatch(event["start"])
    return event


def ask(b: RawClient, subject: str, inbox: str, headers: str = "") -> None:
    block = f"NATS/1.0\r\n{headers}\r\n\r\n" if headers else "NATS/1.0\r\n\r\n"
    b.send(f"HPUB {subject} {inbox} {len(block)} {len(block) + 2}\r\n{block}hi\r\n".encode())


def answer(a: RawClient, body: bytes = b"yes") -> None:
    a.send(b"PUB %s %d\r\n%s\r\n" % (receive(a).reply, len(body), body))


def test_answered_request_is_measured_and_requester_keeps_its_secrets(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "ask 1")
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.1 9")

        ask(b, "a.ask", "_INBOX.1")
        answer(a)
        b.expect(b"MSG _INBOX.1 9 3\r\nyes\r\n")

        event = read_event(events, "latency.ask")
        assert event["status"] == 200
        assert "description" not in event
        assert "header" not in event
        assert set(event["requestor"]) == {"acc", "rtt"}
        assert event["requestor"]["acc"] == "B"
        responder = event["responder"]
        assert (responder["acc"], responder["user"], responder["server"]) == ("A", "a", "measured")
        assert (responder["kind"], responder["client_type"]) == ("Client", "nats")
        assert set(responder) <= {*DETAILS, "acc", "rtt"}
        assert event["total"] >= event["service"] >= 0
        assert event["system"] >= 0
        events.expect_silence()


def test_requester_that_shares_is_named(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "open.* 1")
        subscribe(events, "latency.open 2")
        subscribe(b, "_INBOX.> 9")

        ask(b, "open.door", "_INBOX.2")
        answer(a)

        requester = read_event(events, "latency.open")["requestor"]
        assert (requester["acc"], requester["user"], requester["host"]) == ("B", "b", "127.0.0.1")
        assert requester["server"] == "measured"


def test_request_that_nobody_takes_is_unavailable(server: ServerProcess) -> None:
    with clients(server, "a", "b") as (events, b):
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.3 9")

        ask(b, "a.ask", "_INBOX.3")

        event = read_event(events, "latency.ask")
        assert (event["status"], event["description"]) == (503, "Service Unavailable")
        assert event["requestor"]["acc"] == "B"
        assert "responder" not in event
        assert (event["service"], event["system"], event["total"]) == (0, 0, 0)
        assert b.read_line().startswith(b"HMSG _INBOX.3 9 ")


def test_request_without_a_reply_is_a_bad_request(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "ask 1")
        subscribe(events, "latency.> 2")

        b.send(b"PUB a.ask 2\r\nhi\r\n")

        event = read_event(events, "latency.ask")
        assert (event["status"], event["description"]) == (400, "Bad Request")
        assert receive(a).reply == b""


@pytest.mark.parametrize("leaves", ["unsubscribes", "disconnects"])
def test_requester_that_no_longer_listens_is_told_as_a_timeout(server: ServerProcess, leaves: str) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "ask 1")
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.gone.* 9")
        ask(b, "a.ask", "_INBOX.gone.1")
        reply = receive(a).reply

        if leaves == "unsubscribes":
            b.send(b"UNSUB 9\r\n")
        else:
            b.close()

        event = read_event(events, "latency.ask")
        assert (event["status"], event["description"]) == (408, "Request Timeout")
        assert event["requestor"]["acc"] == "B"
        # The answer comes too late and is not measured again.
        a.send(b"PUB %s 2\r\nno\r\n" % reply)
        a.expect_pong()
        events.expect_silence()


def test_requester_that_still_listens_elsewhere_is_not_gone(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b", "b") as (a, events, b, other):
        subscribe(a, "ask 1")
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.two 9")
        subscribe(other, "_INBOX.* 8")
        ask(b, "a.ask", "_INBOX.two")
        reply = receive(a).reply

        b.send(b"UNSUB 9\r\n")
        b.expect_pong()
        events.expect_silence()
        a.send(b"PUB %s 2\r\nhi\r\n" % reply)

        other.expect(b"MSG _INBOX.two 8 2\r\nhi\r\n")
        assert read_event(events, "latency.ask")["status"] == 200


def test_service_that_does_not_answer_in_time_is_told(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "slow 1")
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.5 9")

        ask(b, "slow", "_INBOX.5")
        reply = receive(a).reply

        event = read_event(events, "latency.slow")
        assert (event["status"], event["description"]) == (504, "Service Timeout")
        a.send(b"PUB %s 2\r\nno\r\n" % reply)
        b.expect_silence()
        events.expect_silence()


@pytest.mark.parametrize(
    ("headers", "measured"),
    [
        ("Other: 1", None),
        ("uber-trace-id: 479fefe9525eddb:5adb976bfc1f95c1:479fefe9525eddb:1", {"Uber-Trace-Id"}),
        ("Uber-Trace-Id: 479fefe9525eddb:5adb976bfc1f95c1:479fefe9525eddb:0", None),
        (
            "Uber-Trace-Id: 479fefe9525eddb:5adb976bfc1f95c1:479fefe9525eddb:01\r\nuberctx-X: foo\r\nOther: 1",
            {"Uber-Trace-Id", "Uberctx-X"},
        ),
        ("X-B3-Sampled: 1", {"X-B3-Sampled"}),
        ("X-B3-Sampled: 0\r\nX-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7", None),
        (
            "X-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7\r\nX-B3-ParentSpanId: 05e3ac9a4f6e3b90\r\nX-B3-SpanId: e4",
            {"X-B3-Traceid", "X-B3-Parentspanid", "X-B3-Spanid"},
        ),
        ("B3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1-05e3ac9a4f6e3b90", {"B3"}),
        ("B3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-0-05e3ac9a4f6e3b90", None),
        ("B3: 80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1", {"B3"}),
        ("B3: 0", None),
        (
            "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\ntracestate: rojo=00",
            {"Traceparent", "Tracestate"},
        ),
        ("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", None),
        ("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7", None),
    ],
)
def test_tracing_headers_choose_what_is_measured_and_are_told(
    server: ServerProcess, headers: str, measured: set[str] | None
) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "by.header 1")
        subscribe(events, "latency.header 2")
        subscribe(b, "_INBOX.6 9")

        ask(b, "by.header", "_INBOX.6", headers)
        answer(a)
        b.expect(b"MSG _INBOX.6 9 3\r\nyes\r\n")

        if measured is None:
            events.expect_silence()
        else:
            event = read_event(events, "latency.header")
            assert event["status"] == 200
            assert set(event["header"]) == measured
            sent = {line.split(": ")[0].lower(): [line.split(": ")[1]] for line in headers.split("\r\n")}
            assert event["header"] == {name: sent[name.lower()] for name in measured}


def test_each_service_of_a_chain_is_measured(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b", "c") as (a, events, middle, c):
        subscribe(a, "chained 1")
        subscribe(events, "latency.> 2")
        subscribe(middle, "latency.> 3")
        subscribe(c, "_INBOX.7 9")

        ask(c, "far", "_INBOX.7")
        asked = receive(a)
        assert (asked.requester["acc"], asked.requester["svc"]) == ("C", "B")
        assert asked.requester["user"] == "c"
        a.send(b"PUB %s 3\r\nyes\r\n" % asked.reply)
        c.expect(b"MSG _INBOX.7 9 3\r\nyes\r\n")

        last, first = read_event(events, "latency.chained"), read_event(middle, "latency.first")
        assert (last["status"], first["status"]) == (200, 200)
        assert set(last["requestor"]) == {"acc", "rtt"}
        assert first["requestor"]["user"] == "c"
        assert (last["requestor"]["acc"], first["requestor"]["acc"]) == ("C", "C")
        assert (last["responder"]["acc"], first["responder"]["acc"]) == ("A", "A")


def test_unmeasured_service_tells_nothing(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "unmeasured 1")
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.8 9")

        ask(b, "unmeasured", "_INBOX.8", "X-B3-Sampled: 1")
        answer(a)

        b.expect(b"MSG _INBOX.8 9 3\r\nyes\r\n")
        events.expect_silence()


def test_share_of_the_requests_is_measured(start_server) -> None:
    config = CONFIG.replace("sampling: 100%", "sampling: 50%")
    with clients(start_server(config=config), "a", "b") as (events, b):
        subscribe(events, "latency.> 2")
        subscribe(b, "_INBOX.9 9")

        b.send(b"PUB open.x _INBOX.9 0\r\n\r\n" * 1000)
        for _ in range(1000):
            assert b.read_line().startswith(b"HMSG _INBOX.9 9 ")
        # The last event comes after all others.
        ask(b, "a.ask", "_INBOX.9")
        measured = 0
        while events.read_line().startswith(b"MSG latency.open"):
            measured += 1

        assert 350 < measured < 650


def test_reload_begins_and_ends_to_measure(start_server, reload) -> None:  # noqa: F811
    exports = "A {{ users: [{{user: a, password: a}}], exports: [{{service: ask {latency}}}] }}"
    imports = "B { users: [{user: b, password: b}], imports: [{service: {account: A, subject: ask}}] }"
    without = f"accounts {{ {exports.format(latency='')}, {imports} }}"
    measured = f"accounts {{ {exports.format(latency=', latency: l.ask')}, {imports} }}"
    server = start_server(config=without)
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "ask 1")
        subscribe(events, "l.> 2")
        subscribe(b, "_INBOX.10 9")

        for config, is_measured in ((without, False), (measured, True), (without, False)):
            reload(server, config)
            ask(b, "ask", "_INBOX.10")
            answer(a)
            b.expect(b"MSG _INBOX.10 9 3\r\nyes\r\n")
            if is_measured:
                assert read_event(events, "l.ask")["status"] == 200
            else:
                events.expect_silence()


def test_page_of_an_account_tells_what_is_measured(start_monitored) -> None:
    monitored = start_monitored(config=CONFIG)

    def found(account: str, key: str, subject: str) -> dict[str, Any]:
        entries = monitored.get_json(f"/accountz?acc={account}")["account_detail"][key]
        entry: dict[str, Any] = next(entry for entry in entries if entry["subject"] == subject)
        return entry

    assert found("A", "exports", "ask")["service_latency"] == {"sampling": 100, "results": "latency.ask"}
    assert found("A", "exports", "by.header")["service_latency"] == {"sampling": "headers", "results": "latency.header"}
    assert "service_latency" not in found("A", "exports", "unmeasured")
    assert found("B", "imports", "slow")["latency"] == {"sampling": 100, "results": "latency.slow"}
    assert "latency" not in found("B", "imports", "unmeasured")


@pytest.mark.parametrize(
    "export",
    [
        "service: ask, latency: { sampling: 50% }",
        "service: ask, latency: { sampling: 0, subject: l }",
        "service: ask, latency: { sampling: 101, subject: l }",
        "service: ask, latency: { sampling: some, subject: l }",
        "service: ask, latency: [1]",
        "service: ask, latency: 'l.*'",
        "service: ask, latency: ask",
        "service: ask, response_type: stream, latency: l",
        "service: ask, response_type: chunked, latency: l",
        "stream: heard, latency: l",
        "stream: heard, allow_trace: true",
    ],
)
def test_latency_that_cannot_be_measured_stops_the_start(start_server, export: str) -> None:
    config = f"accounts {{ A {{ users: [{{user: a, password: a}}], exports: [{{ {export} }}] }} }}"

    with pytest.raises(RuntimeError):
        start_server(config=config)
