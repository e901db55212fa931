"""Lanes: accounts take turns, and what takes long is overtaken."""

import threading
from collections.abc import Callable, Iterator

import pytest

from jetlake.management.engine.protocols import Request
from jetlake.management.lanes import THREADS_MAX, Event, Lane, Lanes
from tests.management.engine_twin import TwinConsumerEvent, TwinRequest

WAIT_SECONDS = 60.0


class Worker:
    """Notes what it was given to do, in order; some of it takes until it is let go."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.changed = threading.Condition()
        self.slow: dict[str, threading.Event] = {}
        self.begun = threading.Event()
        self.warnings: list[str] = []
        self.has_broken_chores = False
        self.lanes = Lanes(
            self.work,
            self.do_chores,
            lambda: 0.0 if self.has_broken_chores else None,
            self.warnings.append,
            lambda request: request.subject.startswith("read"),
            lambda request: self._note(f"{request.subject} beside"),
        )

    def work(self, _lane: Lane, event: Event | None, request: Request | None) -> None:
        if event is not None:
            self._note(f"event {event.name}")
        if request is None:
            return
        if request.subject in self.slow:
            self.begun.set()
            assert self.slow[request.subject].wait(WAIT_SECONDS)
        if request.subject == "broken":
            raise ValueError("broken")
        self._note(request.subject)

    def do_chores(self) -> None:
        self.has_broken_chores = False
        raise ValueError("broken chores")

    def _note(self, what: str) -> None:
        with self.changed:
            self.done.append(what)
            self.changed.notify_all()

    def send(self, account: str, subject: str, payload: bytes = b"", connection_id: int = 7) -> None:
        request = TwinRequest(account=account, subject=subject, payload=payload, connection_id=connection_id)
        self.lanes.add_request(request)

    def wait(self, condition: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, WAIT_SECONDS), self.done


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    for slow in worker.slow.values():
        slow.set()
    worker.lanes.close()
    worker.lanes.join()
    assert not [thread for thread in threading.enumerate() if thread.name == "jetlake-management"]


def test_a_request_that_takes_long_keeps_only_its_own_account_waiting(worker):
    worker.slow["a0"] = threading.Event()
    worker.send("A", "a0")
    worker.send("A", "a1")

    for number in range(20):
        worker.send("B", f"b{number}")
    worker.wait(lambda: "b19" in worker.done)

    assert worker.done == [f"b{number}" for number in range(20)]
    worker.slow["a0"].set()
    worker.wait(lambda: "a1" in worker.done)
    assert worker.done[-2:] == ["a0", "a1"]


def test_several_requests_that_take_long_keep_nobody_else_waiting(worker):
    for number in range(THREADS_MAX - 1):
        worker.slow[f"slow{number}"] = threading.Event()
        worker.send(f"ACCOUNT{number}", f"slow{number}")

    worker.send("B", "b")
    worker.wait(lambda: worker.done == ["b"])


def test_a_flood_of_one_account_lets_others_through_after_each_request(worker):
    worker.slow["a0"] = threading.Event()
    worker.send("A", "a0")
    assert worker.begun.wait(WAIT_SECONDS)
    for number in range(1, 1_000):
        worker.send("A", f"a{number}")
    worker.send("B", "b0")
    worker.slow["a0"].set()
    worker.wait(lambda: "b0" in worker.done and "a999" in worker.done)

    assert worker.done.index("b0") <= 1
    assert [done for done in worker.done if done.startswith("a")] == [f"a{number}" for number in range(1_000)]


def test_events_of_an_account_come_in_between_its_requests(worker):
    worker.slow["a0"] = threading.Event()
    worker.send("A", "a0")
    assert worker.begun.wait(WAIT_SECONDS)
    worker.send("A", "a1")
    worker.lanes.add_event("A", TwinConsumerEvent(account="A", stream="S", name="C"))

    worker.slow["a0"].set()
    worker.wait(lambda: len(worker.done) == 3)

    assert worker.done == ["a0", "event C", "a1"]


def test_work_in_steps_lets_requests_of_its_own_account_through(worker):
    def steps() -> Iterator[None]:
        for number in range(3):
            worker._note(f"step {number}")
            yield

    with worker.lanes.held("A") as lane:
        lane.tasks.append(steps())
        for number in range(3):
            worker.send("A", f"a{number}")
    worker.wait(lambda: len(worker.done) == 6)

    assert worker.done == ["a0", "step 0", "a1", "step 1", "a2", "step 2"]


def test_requests_that_only_read_overtake_one_of_their_account_that_takes_long(worker):
    worker.slow["a0"] = threading.Event()
    worker.send("A", "a0", connection_id=1)
    worker.send("A", "a1", connection_id=2)
    worker.send("A", "read0", connection_id=3)
    worker.send("A", "read1", connection_id=3)

    worker.wait(lambda: "read1 beside" in worker.done)
    assert worker.done == ["read0 beside", "read1 beside"]
    worker.send("A", "read2", connection_id=4)
    worker.wait(lambda: "read2 beside" in worker.done)

    worker.slow["a0"].set()
    worker.wait(lambda: "a1" in worker.done)
    assert worker.done[3:] == ["a0", "a1"]


def test_a_request_does_not_overtake_another_one_of_its_connection(worker):
    worker.slow["a0"] = threading.Event()
    worker.send("A", "a0", connection_id=1)
    assert worker.begun.wait(WAIT_SECONDS)
    worker.send("A", "read behind a0", connection_id=1)
    worker.send("A", "a1", connection_id=2)
    worker.send("A", "read behind a1", connection_id=2)
    worker.send("A", "read", connection_id=3)

    worker.wait(lambda: "read beside" in worker.done)
    worker.send("A", "read again", connection_id=3)
    worker.wait(lambda: "read again beside" in worker.done)
    worker.slow["a0"].set()
    worker.wait(lambda: "read behind a1" in worker.done)

    assert worker.done == ["read beside", "read again beside", "a0", "read behind a0", "a1", "read behind a1"]


def test_work_in_steps_that_is_not_finished_is_closed(worker):
    closed = threading.Event()

    def steps() -> Iterator[None]:
        try:
            while True:
                worker._note("step")
                yield
        finally:
            closed.set()

    with worker.lanes.held("A") as lane:
        lane.tasks.append(steps())
    worker.send("A", "a0")
    worker.wait(lambda: worker.done.count("step") > 2)
    worker.lanes.close()
    worker.lanes.join()

    assert closed.is_set()


def test_a_failure_is_told_and_the_next_request_is_answered(worker):
    worker.send("A", "broken")
    worker.send("A", "next")
    worker.wait(lambda: worker.done == ["next"])

    assert "ValueError: broken" in worker.warnings[0]


def test_chores_that_fail_take_nothing_with_them_that_waits(worker):
    worker.has_broken_chores = True
    with worker.lanes._changed:
        worker.lanes.add_event("A", TwinConsumerEvent(account="A", stream="S", name="C"))
        worker.send("A", "a0")
    worker.wait(lambda: "a0" in worker.done)

    assert worker.done == ["event C", "a0"]
    assert "ValueError: broken chores" in worker.warnings[0]


def test_what_overflows_is_dropped_for_its_account_alone(worker):
    worker.slow["a0"] = threading.Event()
    worker.send("A", "a0")
    worker.slow["b0"] = threading.Event()
    worker.send("B", "b0")
    worker.send("B", "b1")
    for number in range(10_002):
        worker.send("A", f"a{number + 1}")

    worker.slow["a0"].set()
    worker.slow["b0"].set()
    worker.wait(lambda: "b1" in worker.done and "a10002" in worker.done)

    assert worker.lanes.take_dropped() >= 10_000
    assert len(worker.done) <= 5


def test_whoever_has_an_answer_overtakes_what_goes_on_behind_it(worker):
    worker.slow["step"] = threading.Event()

    def go_on() -> Iterator[None]:
        worker.begun.set()
        assert worker.slow["step"].wait(WAIT_SECONDS)
        worker._note("step")
        yield

    worker.lanes.lane_of("A").tasks.append(go_on())
    worker.send("A", "change", connection_id=1)
    assert worker.begun.wait(WAIT_SECONDS)

    worker.send("A", "read", connection_id=1)
    worker.wait(lambda: "read beside" in worker.done)

    assert worker.done == ["change", "read beside"]
    worker.slow["step"].set()
    worker.wait(lambda: "step" in worker.done)
