"""The page about a pipeline, and its plots."""

import datetime
import re
import subprocess
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from jetlake.spark.pipelines import charts, report
from jetlake.spark.pipelines.state import QueryState, RunState
from jetlake.spark.pipelines.summary import TableSummary, bucket_width, shown, size
from tests.conftest import NO_CHROMIUM, find_chromium

CHROMIUM = find_chromium()


class Outside(HTMLParser):
    """Collects everything a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [f"{tag} {key}={value}" for key, value in attrs if key in ("src", "href", "srcset", "data")]
        if tag in ("script", "link", "iframe"):
            self.found.append(tag)


@pytest.fixture
def page():
    table = TableSummary(
        name="log_lines",
        version=3,
        rows=1234,
        files=2,
        size_bytes=5000,
        columns=[("timestamp", "timestamp"), ("message", "string"), ("lines", "long")],
        newest=[{"timestamp": datetime.datetime(2026, 1, 31), "message": "<script>alert(1)</script>", "lines": 5}],  # noqa: DTZ001
        partitions=[("2026-01-30", 1000), ("2026-01-31", 234)],
        partition_name="day",
        series={"error": [(0.0, 1.0), (60.0, 5.0)], "info": [(0.0, 3.0), (60.0, 2.0)]},
        series_name="level",
    )
    state = RunState("logs", "running", 1, "here", 0, 0, [QueryState("logs", rows=10, lag=2)], ["log_lines"])
    progress = [{"query": "logs", "rows_per_second": 10.0 * n, "batch_ms": 100, "at_ms": n * 1000} for n in range(5)]
    return report.page("logs", "What is logged", state, progress, [table])


def test_a_page_asks_nobody_for_anything_and_escapes_what_rows_say(page):
    outside = Outside()
    outside.feed(page)

    assert outside.found == []
    assert "url(" not in page
    assert "@import" not in page
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "1,234 rows in 2 files" in page


def test_plots_are_well_formed_and_inside_their_frame(page):
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)

    assert len(plots) == 4
    for plot in plots:
        ElementTree.fromstring(plot)
        for points in re.findall(r'points="([^"]+)"', plot):
            for pair in points.split():
                x, y = (float(part) for part in pair.split(","))
                assert 0 <= x <= charts.WIDTH
                assert 0 <= y <= charts.HEIGHT


@pytest.mark.parametrize(
    "series", [{"a": [(5.0, 0.0)]}, {"a": [(5.0, 3.0), (5.0, 3.0)]}, {"a": [(0.0, 1e12), (9e9, 0.001)]}]
)
def test_unusual_values_make_a_plot_too(series):
    plot = charts.lines(series, "label")

    ElementTree.fromstring(plot)
    assert "nan" not in plot


def test_nothing_to_plot_gives_no_plot():
    assert charts.lines({}, "x") == ""
    assert charts.bars([], "x") == ""


def test_name_without_values_leaves_the_parts_beside_it_as_they_are():
    full = {"error": [(0.0, 1.0), (60.0, 2.0)]}

    for empty in ({"info": [], **full}, {**full, "info": []}):
        plot = charts.areas(empty, "label")
        assert plot == charts.areas(full, "label")
        assert plot.count("<polygon") == 1
    assert charts.areas({"info": []}, "label") == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (999, "999"),
        (999.99, "1k"),
        (1234, "1.23k"),
        (999_999, "1M"),
        (-999_999, "-1M"),
        (999_999_999, "1G"),
        (2.5e12, "2.5T"),
        (1e16, "10,000T"),
    ],
)
def test_number_is_rounded_before_its_unit_is_chosen(value, text):
    assert charts.number(value) == text


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.3, 0.4), (1, 1), (7, 10), (101, 200), (999, 1000), (45, 50)])
def test_the_top_of_a_plot_is_a_round_number(value, top):
    assert charts.nice(value) == pytest.approx(top)


def test_values_are_shown_for_people():
    assert shown(None) == ""
    assert shown(b"a\x00b") == "a·b"
    assert shown([("k", ["v"])]) == "k: ['v']"
    assert shown("x" * 100, 10) == "x" * 9 + "…"
    assert (size(12), size(5 * 1024 * 1024), size(1024 * 1024 - 1)) == ("12 B", "5.0 MiB", "1.0 MiB")
    assert bucket_width(3_600_000_000) == 60_000_000


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
def test_a_browser_shows_the_page(page, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page)
    picture = tmp_path / "page.png"

    subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=1000,2400", f"--screenshot={picture}", path.as_uri()],
        check=True,
        capture_output=True,
        timeout=60,
    )  # fmt: skip

    assert picture.stat().st_size > 10_000
