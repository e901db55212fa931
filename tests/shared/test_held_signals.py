"""A block that holds signals back: they take effect at its end, once, and the handlers are as before."""

import signal
import threading

import pytest

from jetlake.shared.held_signals import held_signals
from tests.processes import interrupts_raise  # noqa: F401


def test_interrupt_waits_for_the_end_of_the_block():
    done = []

    def work():
        with held_signals():
            signal.raise_signal(signal.SIGINT)
            done.append("the rest of the block")

    with pytest.raises(KeyboardInterrupt):
        work()

    assert done == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_sigterm_reaches_its_own_handler_at_the_end():
    came = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: came.append(number))
    try:
        with held_signals():
            signal.raise_signal(signal.SIGTERM)
            during = list(came)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert (during, came) == ([], [signal.SIGTERM])


def test_handlers_are_back_after_a_block_that_fails():
    with pytest.raises(ValueError, match="of the block"), held_signals():
        raise ValueError("of the block")

    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_signals():
            signal.raise_signal(signal.SIGINT)
            during = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert during is signal.SIG_IGN


def test_block_in_another_thread_leaves_the_handlers_alone():
    found = []

    def work():
        with held_signals():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert found == [signal.default_int_handler]
