"""What is printed and written of a run."""

import io
import json
import xml.etree.ElementTree as ElementTree

import pytest
from rich.console import Console

from benchmarks import plot, report
from benchmarks.figures import Result
from benchmarks.servers import JETLAKE, REFERENCE
from benchmarks.workloads import CPU, RATE, Goal, Workload

SETTING = report.Setting(
    taken_at="2026-01-01 00:00 UTC",
    machine="a processor",
    cores=2,
    memory_gib=23,
    load_average="0.00 0.00 0.00",
    build_profile="release",
    commit="abc1234",
    jetlake="0.1.0",
    reference="nats-server: v2.15.1",
    python="3.11.7",
    repeats=2,
    seconds=1.0,
)


@pytest.fixture
def result() -> Result:
    goals = (Goal(RATE, "at least", 3.0), Goal(CPU, "at most", 0.35))
    result = Result(Workload("one-to-one", "1 → 1 <128 B>", "load", (RATE, CPU), goals))
    for _ in range(2):
        result.add(JETLAKE, {RATE: 4_000_000.0, CPU: 0.5})
        result.add(REFERENCE, {RATE: 1_000_000.0, CPU: 1.0})
    return result


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.2314, "0.231"), (1.2345, "1.23"), (12.345, "12.3"), (3_456_789.0, "3,460,000"), (999.6, "1,000")],
)
def test_numbers_show_the_digits_that_matter(value, text):
    assert report.number(value) == text


def test_piped_report_is_plain_and_says_where_it_was_taken(result):
    output = io.StringIO()

    report.show(SETTING, [result], Console(file=output))

    text = output.getvalue()
    assert "\x1b" not in text
    assert "commit abc1234, release build" in text
    assert "2 cores, 23 GiB" in text
    assert "4.00 (4.00 to 4.00)" in text
    assert "not reached: ratio at most 0.35" in text
    assert "1 of 2 goals reached" in text


def test_json_holds_every_repeat(result):
    document = json.loads(report.to_json(SETTING, [result]))

    (workload,) = document["workloads"]
    assert workload["repeats"][JETLAKE] == [{RATE: 4_000_000.0, CPU: 0.5}] * 2
    assert workload["ratios"][RATE]["median"] == 4.0
    assert [goal["reached"] for goal in workload["goals"]] == [True, False]
    assert document["setting"]["commit"] == "abc1234"


def test_page_is_self_contained_and_draws_both_servers(result):
    text = plot.page(SETTING, [result])

    assert "http" not in text
    assert "1 → 1 &lt;128 B&gt;" in text
    picture = ElementTree.fromstring(plot.bars(result, RATE))
    assert [float(bar.get("width", "0")) for bar in picture.iter("rect")] == [320.0, 80.0]


def test_setting_of_this_machine_is_complete():
    setting = report.Setting.now(build_profile="release", jetlake="1", reference="2", repeats=5, seconds=1.0)

    assert setting.cores >= 1
    assert setting.memory_gib >= 1
    assert all(setting.lines())
