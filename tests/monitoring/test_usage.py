"""The cost of the process."""

from jetlake.monitoring.usage import ProcessUsage, processor_count, resident_bytes


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_share_is_taken_over_at_least_a_second():
    clock, worked = Clock(), Clock()
    usage = ProcessUsage(clock, worked)

    clock.now, worked.now = 0.5, 0.5
    assert usage.processor_percent() == 0.0

    clock.now, worked.now = 2.0, 1.0
    assert usage.processor_percent() == 50.0

    clock.now, worked.now = 2.5, 1.5
    assert usage.processor_percent() == 50.0

    clock.now, worked.now = 4.0, 5.0
    assert usage.processor_percent() == 200.0
    assert usage.processor_seconds() == 5.0


def test_memory_of_this_process_is_plausible():
    assert 1_000_000 < resident_bytes() < 100_000_000_000
    assert processor_count() >= 1
