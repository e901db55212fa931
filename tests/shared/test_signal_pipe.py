"""Signals as numbers in a pipe."""

import os
import signal
import threading

from jetlake.shared.signal_pipe import WAKE, SignalPipe

NUMBERS = (signal.SIGUSR1, signal.SIGTERM)


def test_pipe_delivers_signals_and_wakes_in_order():
    with SignalPipe(NUMBERS) as signals:
        os.kill(os.getpid(), signal.SIGUSR1)
        first = signals.next()
        threading.Thread(target=signals.wake).start()
        second = signals.next()
        os.kill(os.getpid(), signal.SIGTERM)
        third = signals.next()

    assert (first, second, third) == (signal.SIGUSR1, WAKE, signal.SIGTERM)


def test_pipe_passes_over_signals_of_others():
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    try:
        with SignalPipe(NUMBERS) as signals:
            signal.raise_signal(signal.SIGUSR2)
            signal.raise_signal(signal.SIGUSR1)
            assert signals.next() == signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR2, before)


def test_pipe_puts_everything_back():
    before = [signal.getsignal(number) for number in NUMBERS]
    files_before = set(os.listdir("/dev/fd"))

    with SignalPipe(NUMBERS):
        pass

    assert [signal.getsignal(number) for number in NUMBERS] == before
    assert signal.set_wakeup_fd(-1) == -1
    # Files of earlier tests may be closed meanwhile.
    assert set(os.listdir("/dev/fd")) <= files_before
