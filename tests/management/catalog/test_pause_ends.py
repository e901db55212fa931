"""When pauses end: the next first, whatever was put and forgotten."""

import random

from jetlake.management.catalog.pause_ends import OUTDATED_MAX, PauseEnds


def test_ends_come_in_order_and_only_once():
    ends = PauseEnds()
    for number, end_ns in enumerate([30, 10, 20]):
        ends.put(("A", "S", str(number)), end_ns)
    ends.put(("A", "S", "1"), 40)
    ends.forget(("A", "S", "0"))

    assert ends.next_ns() == 20
    assert ends.take_ended(19) == []
    assert ends.take_ended(40) == [("A", "S", "2"), ("A", "S", "1")]
    assert ends.next_ns() is None


def test_any_changes_leave_what_a_plain_dictionary_would():
    generator = random.Random(1)
    ends, plain = PauseEnds(), {}
    for _ in range(5_000):
        consumer = ("A", "S", str(generator.randrange(20)))
        end_ns = generator.randrange(1_000)
        match generator.randrange(4):
            case 0:
                ends.forget(consumer)
                plain.pop(consumer, None)
            case 1:
                now_ns = generator.randrange(100)
                over = {each for each, at in plain.items() if at <= now_ns}
                assert set(ends.take_ended(now_ns)) == over
                plain = {each: at for each, at in plain.items() if each not in over}
            case _:
                ends.put(consumer, end_ns)
                plain[consumer] = end_ns
        assert ends.next_ns() == min(plain.values(), default=None)
    assert len(ends._order) <= 2 * 20 + OUTDATED_MAX + 1
