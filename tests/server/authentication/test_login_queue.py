"""Clients whose password takes long to compare, in turns by address."""

from jetlake.server.authentication import login_queue
from jetlake.server.authentication.login_queue import FAILURES_MAX, FAILURES_S, LoginQueue


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_addresses_take_turns():
    queue = LoginQueue()
    for number in range(3):
        assert queue.put("many", number)
    assert queue.put("single", "one")

    assert [queue.get() for _ in range(4)] == [0, "one", 1, 2]


def test_one_address_cannot_fill_the_queue(monkeypatch):
    monkeypatch.setattr(login_queue, "WAITING_OF_ADDRESS_MAX", 2)
    queue = LoginQueue()

    assert [queue.put("many", number) for number in range(3)] == [True, True, False]
    assert queue.put("single", 1)
    assert queue.put("many", "in already", is_urgent=True)


def test_all_addresses_together_have_a_limit(monkeypatch):
    monkeypatch.setattr(login_queue, "WAITING_MAX", 2)
    queue = LoginQueue()

    assert [queue.put(f"address {number}", number) for number in range(3)] == [True, True, False]


def test_address_that_failed_too_often_is_refused_until_its_failures_are_old():
    clock = Clock()
    queue = LoginQueue(clock)
    for _ in range(FAILURES_MAX):
        assert queue.put("guesser", 1)
        queue.note_failure("guesser")

    assert not queue.put("guesser", 1)
    assert queue.put("other", 1)
    clock.now += FAILURES_S
    assert queue.put("guesser", 1)


def test_failures_of_old_addresses_are_forgotten(monkeypatch):
    monkeypatch.setattr(login_queue, "ADDRESSES_MAX", 2)
    queue = LoginQueue()
    for address in ("a", "b", "c"):
        for _ in range(FAILURES_MAX):
            queue.note_failure(address)

    assert queue.put("a", 1)
    assert not queue.put("b", 1)


def test_closed_queue_gives_nothing():
    queue = LoginQueue()
    queue.put("a", 1)

    queue.close()

    assert queue.get() is None
