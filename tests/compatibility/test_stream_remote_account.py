"""Mirrors and sources from another account of the same server, where the configuration allows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.compatibility.jetstream import JetStream, Json, start_jetstream_server
from tests.compatibility.origins import payloads, publish_numbers, wait_for_messages
from tests.compatibility.remotes import delete_streams, error_text, state_of, wait_for_origin
from tests.compatibility.server_process import ServerProcess

ACCOUNTS = """
accounts {
  A { jetstream: enabled, users: [{user: a, password: x}] }
  B { jetstream: enabled, users: [{user: b, password: x}] }
  C { jetstream: enabled, users: [{user: c, password: x}] }
}
"""
REMOTES = "remotes { other { account: B, allowed_accounts: [A] } }"

OTHER: Json = {"name": "O", "external": {"api": "$JS.other.API"}}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = start_jetstream_server("jetlake", tmp_path_factory.mktemp("accounts"), config=ACCOUNTS, jetstream=REMOTES)
    yield process
    process.stop()


@pytest.fixture
def a(accounts: ServerProcess) -> Iterator[JetStream]:
    with JetStream(accounts, user="a", **{"pass": "x"}) as js:
        yield js
        delete_streams(js)


@pytest.fixture
def b(accounts: ServerProcess) -> Iterator[JetStream]:
    with JetStream(accounts, user="b", **{"pass": "x"}) as js:
        yield js
        delete_streams(js)


@pytest.mark.jetlake
def test_a_stream_has_the_messages_of_another_account(a: JetStream, b: JetStream) -> None:
    b.create("O")
    publish_numbers(b, "O.a", 2)
    a.create("M", mirror=OTHER)
    a.create("S", subjects=[], sources=[OTHER])
    wait_for_messages(a, "M", 2)

    publish_numbers(b, "O.a", 1, first=3)

    wait_for_messages(a, "M", 3)
    wait_for_messages(a, "S", 3)
    assert a.get("M", seq=3) == b.get("O", seq=3)
    assert payloads(a, "S") == ["1", "2", "3"]
    assert "error" not in state_of(a, "S")


@pytest.mark.jetlake
def test_the_stream_of_another_account_is_followed_from_its_making_on(a: JetStream, b: JetStream) -> None:
    a.create("O", subjects=["own"])
    publish_numbers(a, "own", 1)
    a.create("M", mirror=OTHER)
    assert error_text(a, "M") == "stream not found"

    b.create("O")
    publish_numbers(b, "O.a", 1, first=7)

    wait_for_messages(a, "M", 1)
    assert payloads(a, "M") == ["7"]


@pytest.mark.jetlake
def test_a_queue_of_another_account_is_emptied(a: JetStream, b: JetStream) -> None:
    b.create("O", retention="workqueue")
    publish_numbers(b, "O.a", 3)

    a.create("S", subjects=[], sources=[OTHER])

    wait_for_messages(a, "S", 3)
    wait_for_messages(b, "O", 0)
    assert payloads(a, "S") == ["1", "2", "3"]


@pytest.mark.jetlake
def test_an_account_that_is_not_allowed_gets_nothing(accounts: ServerProcess, b: JetStream) -> None:
    b.create("O")
    publish_numbers(b, "O.a", 1)
    with JetStream(accounts, user="c", **{"pass": "x"}) as c:
        c.create("M", mirror=OTHER)

        state = wait_for_origin(c, "M", lambda state: "error" in state)

        assert state["error"]["description"].startswith("no remote answers to $JS.other.API: ")
        assert c.state("M")["messages"] == 0
