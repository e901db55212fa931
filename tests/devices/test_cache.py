"""The aggregates at hand: how many there are, and what makes room."""

import pytest

from jetlake.devices.store import contract
from jetlake.devices.store.contract import AggregateCache
from jetlake.devices.subjects import AggregateKey, Family

LIMIT = 2


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(contract, "AGGREGATES_AT_HAND_MAX", LIMIT)


def key_of(number):
    return AggregateKey(f"device-{number}", Family.METADATA)


def test_the_one_that_was_used_longest_ago_makes_room():
    cache = AggregateCache()
    first, second = cache.hold(key_of(1), ""), cache.hold(key_of(2), "")
    assert cache.hold(key_of(1), "") is first

    cache.hold(key_of(3), "")

    assert cache.hold(key_of(1), "") is first
    assert cache.hold(key_of(2), "") is not second


async def test_those_in_use_stay_though_there_are_too_many():
    cache = AggregateCache()
    in_use = [cache.hold(key_of(number), "") for number in range(LIMIT)]
    for held in in_use:
        await held.lock.acquire()

    another = cache.hold(key_of(LIMIT), "")

    assert cache.hold(key_of(LIMIT), "") is another
    assert [cache.hold(key_of(number), "") for number in range(LIMIT)] == in_use
