"""Message tracing across accounts: what a trace tells of the accounts that a message is shared with."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_imports import clients, subscribe
from tests.compatibility.wire import RawClient

CONFIG = """
accounts {
  A {
    users: [ {user: a, password: a} ]
    exports: [
      { service: told, allow_trace: true }
      { service: untold }
      { service: "renamed.*", allow_trace: true }
      { service: chained, allow_trace: true }
      { stream: "heard.>" }
    ]
    mappings: { "renamed.*": "mapped.$1" }
  }
  B {
    users: [ {user: b, password: b} ]
    imports: [
      { service: {account: A, subject: told} }
      { service: {account: A, subject: untold} }
      { service: {account: A, subject: "renamed.*"}, to: "b.$1.renamed" }
      { service: {account: A, subject: chained} }
      { stream: {account: A, subject: "heard.>"}, prefix: b, allow_trace: true }
    ]
    exports: [ { service: chained, allow_trace: true } ]
  }
  C {
    users: [ {user: c, password: c} ]
    imports: [
      { stream: {account: A, subject: "heard.>"}, prefix: c }
      { service: {account: B, subject: chained}, to: far }
    ]
  }
}
"""

KEPT = {"type", "acc", "subj", "from", "to", "sub", "queue", "error", "name"}


@pytest.fixture(scope="module")
def server(start_once) -> ServerProcess:
    return start_once(config=CONFIG)


def publish(client: RawClient, subject: str, *, only: bool = False, reply: str = "") -> None:
    block = "NATS/1.0\r\nNats-Trace-Dest: traces.here\r\n" + ("Nats-Trace-Only: true\r\n" if only else "") + "\r\n"
    client.send(f"HPUB {subject} {reply} {len(block)} {len(block) + 2}\r\n{block}hi\r\n".encode())


def read_steps(client: RawClient) -> list[dict[str, Any]]:
    """Return the steps of the next trace, as far as they do not depend on time, in an order of their own."""
    line, _, payload = client.read_line().partition(b"\r\n")
    assert line.startswith(b"MSG traces.here "), line
    steps = [{key: step[key] for key in KEPT & set(step)} for step in json.loads(payload)["events"]]
    return sorted(steps, key=lambda step: ("in", "sm", "si", "se", "eg").index(step["type"]))


def arrival(account: str, subject: str) -> dict[str, Any]:
    return {"type": "in", "acc": account, "subj": subject}


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize(
    ("published", "there", "is_told"),
    [("told", "told", True), ("untold", "untold", False), ("b.x.renamed", "mapped.x", True)],
)
def test_request_is_followed_into_an_account_that_allows_it(
    server: ServerProcess, published: str, there: str, is_told: bool, only: bool
) -> None:
    with clients(server, "a", "b", "b") as (a, b, events):
        subscribe(a, f"{there} 1")
        subscribe(events, "traces.> 2")

        publish(b, published, only=only)

        expected = [arrival("B", published), {"type": "si", "acc": "A", "from": published, "to": there}]
        if is_told:
            expected.append({"type": "eg", "acc": "A", "sub": there})
        assert read_steps(events) == expected
        if only:
            a.expect_silence()
        else:
            assert a.read_line().startswith(f"HMSG {there} 1 ".encode())


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("queue", ["", "workers"])
@pytest.mark.parametrize(("user", "is_told"), [("b", True), ("c", False)])
def test_message_is_followed_into_an_account_that_allows_it(
    server: ServerProcess, user: str, queue: str, is_told: bool, only: bool
) -> None:
    with clients(server, "a", "a", user) as (a, events, listener):
        subscribe(listener, f"{user}.heard.* {queue} 1")
        subscribe(events, "traces.> 2")

        publish(a, "heard.x", only=only)

        expected = [arrival("A", "heard.x"), {"type": "se", "acc": user.upper(), "to": f"{user}.heard.x"}]
        steps = read_steps(events)
        assert steps[:2] == expected
        assert [(step["type"], step["acc"], step.get("queue", "")) for step in steps[2:]] == (
            [("eg", "B", queue)] if is_told else []
        )
        if only:
            listener.expect_silence()
        else:
            assert listener.read_line().startswith(f"HMSG {user}.heard.x 1 ".encode())


def test_request_is_followed_through_a_chain(server: ServerProcess) -> None:
    with clients(server, "a", "c", "c") as (a, c, events):
        subscribe(a, "chained 1")
        subscribe(events, "traces.> 2")

        publish(c, "far")

        assert read_steps(events) == [
            arrival("C", "far"),
            {"type": "si", "acc": "B", "from": "far", "to": "chained"},
            {"type": "si", "acc": "A", "from": "chained", "to": "chained"},
            {"type": "eg", "acc": "A", "sub": "chained"},
        ]
        assert a.read_line().startswith(b"HMSG chained 1 ")


@pytest.mark.parametrize("only", [False, True])
def test_answer_is_followed_to_the_account_that_asked_and_no_further(server: ServerProcess, only: bool) -> None:
    with clients(server, "a", "a", "b") as (a, events, b):
        subscribe(a, "told 1")
        subscribe(events, "traces.> 2")
        subscribe(b, "_INBOX.1 9")
        b.send(b"PUB told _INBOX.1 2\r\nhi\r\n")
        reply = a.read_line().split()[3].decode()

        publish(a, reply, only=only)

        assert read_steps(events) == [
            arrival("A", reply),
            {"type": "si", "acc": "B", "from": reply, "to": "_INBOX.1"},
        ]
        if only:
            b.expect_silence()
        else:
            assert b.read_line().startswith(b"HMSG _INBOX.1 9 ")


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("service", ["told", "untold"])
def test_traced_request_that_nobody_takes_is_answered_so(server: ServerProcess, service: str, only: bool) -> None:
    with clients(server, "b", "b") as (b, events):
        subscribe(events, "traces.> 2")
        subscribe(b, "_INBOX.2 9")

        publish(b, service, only=only, reply="_INBOX.2")

        assert read_steps(events) == [
            arrival("B", service),
            {"type": "si", "acc": "A", "from": service, "to": service},
        ]
        assert b.read_line().startswith(b"HMSG _INBOX.2 9 ")


def test_message_that_was_traced_is_not_traced_by_the_service(server: ServerProcess) -> None:
    with clients(server, "a", "a", "b") as (a, own_events, b):
        subscribe(a, "told 1")
        subscribe(own_events, "traces.> 2")

        publish(b, "told")

        message = a.read_line()
        assert b"Nats-Trace-Dest: " in message
        assert b"Nats-Trace-Dest: traces.here" not in message
        own_events.expect_silence()


def test_import_of_a_service_does_not_allow_traces(start_server) -> None:
    config = """
    accounts {
      A { users: [{user: a, password: a}], exports: [{service: q}] }
      B { users: [{user: b, password: b}], imports: [{service: {account: A, subject: q}, allow_trace: true}] }
    }
    """
    with pytest.raises(RuntimeError):
        start_server(config=config)
