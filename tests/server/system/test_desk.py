"""Requests wait in turns and within limits, and a handler that breaks does not end the desk."""

import threading
import time
from dataclasses import dataclass, field

import pytest

from jetlake.server.system import desk as desk_module
from jetlake.server.system.desk import Desk


@dataclass
class Request:
    account: str
    subject: str = "s"
    connection_id: int = 1
    reply: str = "r"
    header: bytes = b""
    payload: bytes = b""


@dataclass
class Event:
    kind: str = "connect"
    connection: bytes = b"{}"


class Engine:
    server_id = "NID"

    def __init__(self):
        self.listened = set()

    def has_interest(self, account, subject):
        return account == "$SYS" and subject in self.listened


@dataclass
class Handler:
    """Remembers what it was given; `gate` holds it up until the test lets it go on."""

    gate: threading.Event = field(default_factory=threading.Event)
    done: list = field(default_factory=list)

    def answer(self, request):
        self.gate.wait(60)
        if request.subject == "broken":
            raise RuntimeError("on purpose")
        self.done.append((request.account, request.subject))

    def tell(self, events):
        self.done.append(("told", len(events)))

    def send_statistics(self):
        self.done.append("statistics")

    def send_counts(self, *, anew):
        self.done.append(f"counts {anew}")


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def handler():
    return Handler()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def warnings():
    return []


@pytest.fixture
def desk(engine, handler, clock, warnings):
    desk = Desk(engine, "$SYS", lambda: ["A"], lambda: handler, warnings.append, clock=clock)
    yield desk
    handler.gate.set()
    desk.close()
    desk.join()
    assert desk._thread is None or not desk._thread.is_alive()


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_nothing_is_made_before_somebody_asks(desk):
    desk.tick()

    assert desk._thread is None


def test_accounts_take_turns(desk, handler):
    for number in range(3):
        desk.receive(Request("A", str(number)))
    desk.receive(Request("B", "b"))

    handler.gate.set()
    wait_until(lambda: len(handler.done) == 4)

    # The first was being answered already.
    assert handler.done.index(("B", "b")) <= 2
    assert [each for each in handler.done if each[0] == "A"] == [("A", "0"), ("A", "1"), ("A", "2")]


def test_an_account_that_floods_loses_only_its_own_requests(desk, handler, clock, warnings):
    for _ in range(desk_module.REQUESTS_OF_ACCOUNT_MAX * 3):
        desk.receive(Request("A"))
    desk.receive(Request("B"))

    handler.gate.set()
    wait_until(lambda: ("B", "s") in handler.done and not desk._requests)
    clock.now += desk_module.REPORT_INTERVAL_S
    desk.tick()

    assert len(handler.done) <= desk_module.REQUESTS_OF_ACCOUNT_MAX + 2
    assert len(warnings) == 1
    assert "were dropped" in warnings[0]


def test_events_beyond_the_limit_are_dropped(desk, handler, monkeypatch):
    monkeypatch.setattr(desk_module, "EVENTS_MAX", 10)
    desk.receive(Request("A"))
    wait_until(lambda: not desk._requests)
    for _ in range(25):
        desk.note(Event())

    handler.gate.set()
    wait_until(lambda: ("A", "s") in handler.done and not desk._events)

    assert sum(each[1] for each in handler.done if each[0] == "told") == 10
    assert desk._dropped == 15


def test_a_handler_that_breaks_is_logged_and_the_next_request_is_answered(desk, handler, warnings):
    handler.gate.set()
    desk.receive(Request("A", "broken"))
    desk.receive(Request("A", "next"))

    wait_until(lambda: ("A", "next") in handler.done)

    assert len(warnings) == 1
    assert "on purpose" in warnings[0]


def test_messages_of_the_server_itself_are_no_requests(desk, handler):
    handler.gate.set()
    desk.receive(Request("$SYS", "$SYS.REQ.SERVER.NID.RELOAD", connection_id=0))
    desk.receive(Request("$SYS", "asked"))

    wait_until(lambda: handler.done)

    assert handler.done == [("$SYS", "asked")]


def test_statistics_come_soon_and_then_ever_more_slowly(desk, engine, handler, clock):
    engine.listened = {"$SYS.SERVER.NID.STATSZ"}
    began, sent = clock.now, []
    while clock.now < began + 40:
        clock.now += desk.tick() / 1000
        count = len(handler.done)
        desk.tick()
        if desk._duties or handler.done[count:]:
            wait_until(lambda before=count: len(handler.done) > before)
            sent.append(clock.now - began)

    assert sent[:4] == pytest.approx([0.25, 1.25, 3.25, 7.25], abs=0.1)
    assert sent[-1] - sent[-2] == pytest.approx(10, abs=0.1)


def test_counts_are_looked_after_while_somebody_listens(desk, engine, handler, clock):
    engine.listened = {"$SYS.ACCOUNT.A.SERVER.CONNS"}
    clock.now += desk_module.LISTENERS_INTERVAL_S
    desk.tick()
    wait_until(lambda: handler.done)

    clock.now += desk_module.HEARTBEAT_S
    desk.tick()
    wait_until(lambda: len(handler.done) >= 2)

    assert handler.done[0] == "counts False"
    assert "counts True" in handler.done
