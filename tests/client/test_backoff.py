"""How long to wait before the next try."""

import pytest

from jetlake.client.backoff import FIVE_SECONDS_MS, TWENTY_SECONDS_MS, steady, table


@pytest.mark.parametrize(
    ("tries", "middle_s"), [(1, 0.5), (2, 0.75), (3, 1.0), (11, 5.0), (12, 5.0), (10_000, 5.0), (0, 0.5)]
)
def test_a_delay_is_that_of_choria_within_fifty_percent(tries, middle_s):
    delays = [table()(tries) for _ in range(200)]

    assert middle_s * 0.5 <= min(delays) < middle_s < max(delays) <= middle_s * 1.5


def test_the_tables_end_at_five_and_twenty_seconds():
    assert FIVE_SECONDS_MS[-1] == 5_000
    assert TWENTY_SECONDS_MS[-1] == 20_000
    assert list(TWENTY_SECONDS_MS) == sorted(TWENTY_SECONDS_MS)


def test_a_steady_one_does_not_grow():
    delays = [steady(2.0)(tries) for tries in range(1, 300)]

    assert 1.0 <= min(delays) <= max(delays) <= 3.0
