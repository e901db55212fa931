"""Many compete for few slots, over several processes, and somebody else counts; see `benchmarks/governor.py`."""

import os

import pytest

from benchmarks.governor import compete


async def test_never_more_than_the_capacity_is_inside_and_killed_holders_are_replaced(url):
    # A lease must outlast a worker that stands still, and some must still wait when those of the dead end.
    result = await compete(url, competitors=96, slots=6, workers=3, hold_s=0.8, expires_s=6.0)

    assert result.failures == [], str(result)
    assert result.most_inside == 6
    assert result.killed_inside > 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="takes a minute: make test-long")
async def test_a_thousand_compete_for_fifty_slots(url):
    result = await compete(url)

    assert result.failures == [], str(result)
    assert result.most_inside == 50
