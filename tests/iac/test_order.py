"""Who needs whom."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.order import arrange, hand_overs, needs_of


def stream(name):
    return ("stream", "", name)


def test_a_stream_needs_its_origins_and_its_dead_letters():
    config = {
        "mirror": {"name": "A", "consumer": {"name": "c"}},
        "sources": [{"name": "B"}, {"name": "C", "external": {"api": "x"}}],
        "metadata": {"jetlake.dead_letters": "DEAD"},
    }

    assert needs_of(stream("S"), config) == {stream("A"), ("consumer", "A", "c"), stream("B"), stream("DEAD")}


def test_everything_stands_behind_what_it_needs():
    needs = {
        ("consumer", "A", "c"): {stream("A")},
        stream("A"): {stream("B"), stream("elsewhere")},
        stream("C"): set(),
        stream("B"): {stream("C")},
    }

    assert arrange(needs) == [stream("C"), stream("B"), stream("A"), ("consumer", "A", "c")]


def test_what_needs_nothing_stays_in_its_order():
    assert arrange({stream(name): set() for name in "ZAM"}) == [stream(name) for name in "ZAM"]


def test_a_long_chain_is_no_trouble():
    count = 5_000
    needs = {stream(str(number)): {stream(str(number + 1))} for number in range(count)}

    assert arrange(needs)[0] == stream(str(count - 1))


@pytest.mark.parametrize("names", ["A", "AB", "ABC"])
def test_a_circle_is_refused_by_name(names):
    needs = {stream(name): {stream(names[(number + 1) % len(names)])} for number, name in enumerate(names)}

    with pytest.raises(ConfigurationError, match="in a circle: stream A needs stream"):
        arrange(needs)


def test_who_takes_subjects_waits_for_who_has_them():
    wanted = {"A": ["orders.eu"], "B": ["orders.us.>"], "C": ["c"]}
    actual = {"A": ["orders.>"], "C": ["c"], "OLD": ["c.old"]}

    assert hand_overs(wanted, actual) == {("B", "A")}
