"""Back-off: how long to wait before the next try.

The tables are those of Choria, so that its campaigners and senders and ours put the same load on a server. Each value
is jittered to 50 to 150 %, and the last one of a table is used for every further try.

Invariant: a delay is never 0 and never more than one and a half times the last value of its table.
"""

import random
from collections.abc import Callable

FIVE_SECONDS_MS = (500, 750, 1_000, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000, 4_500, 5_000)
"""From half a second to five seconds."""

TWENTY_SECONDS_MS = (*FIVE_SECONDS_MS, *range(5_500, 20_001, 500))
"""From half a second to twenty seconds, for connections."""

JITTER_MIN, JITTER_MAX = 0.5, 1.5
"""A fleet that starts at the same moment must not try at the same moment."""

BackOff = Callable[[int], float]
"""From the number of tries so far, 1 for the first, to seconds."""


def table(values_ms: tuple[int, ...] = FIVE_SECONDS_MS) -> BackOff:
    """Return the back-off of a table."""
    assert values_ms, "a table needs a value"

    def delay_s(tries: int) -> float:
        return jittered(values_ms[min(max(tries, 1), len(values_ms)) - 1] / 1_000)

    return delay_s


def steady(interval_s: float) -> BackOff:
    """Return a back-off that stays the same."""
    assert interval_s > 0, "an interval of nothing is a busy loop"
    return lambda _tries: jittered(interval_s)


def jittered(delay_s: float) -> float:
    """Return a delay moved to 50 to 150 % of itself."""
    return delay_s * random.uniform(JITTER_MIN, JITTER_MAX)
