"""The SQL page: answers as tables and charts, mistakes in sentences, and everything that a query may not do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import (
    DashboardProcess,
    check_accessible,
    check_fits_a_phone,
    create_stream,
    press_shortcut,
)
from tests.dashboard.lake_samples import write_lake
from tests.dashboard.stream_samples import store

ANSWER_MS = 60_000
"""A query has a process of its own, which takes its time on a machine that is busy with other tests."""

IMPATIENT = (
    "import sys; from jetlake.dashboard import helpers; helpers.TIME_S_MAX = 1.5;"
    "from jetlake.cli.app import main; sys.argv[0] = 'jetlake'; sys.exit(main())"
)
"""A dashboard that gives a query less time: thirty seconds of two busy cores show nothing more."""

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


@pytest.fixture(scope="module")
def dashboard(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """A read-only dashboard with a lake: queries change nothing."""
    pytest.importorskip("duckdb")
    pytest.importorskip("deltalake")
    folder = tmp_path_factory.mktemp("sql")
    create_stream(url, "ORDERS", "orders.>")
    store(url, *[(f"orders.{'eu' if number % 3 else 'us'}", b'{"n": %d}' % number) for number in range(60)])
    store(
        url,
        ("orders.hostile", HOSTILE.encode()),
        ("orders.binary", b"\xff\xfe\x00\x01"),
        ("orders.big", b"x" * 900_000),
    )
    started = DashboardProcess(url, folder, "--read-only", "--lake", str(write_lake(folder / "lake")))
    yield started
    started.stop()


def run(page: Page, dashboard: DashboardProcess, query: str) -> None:
    page.goto(f"{dashboard.url}/sql")
    page.get_by_label("Query").fill(query)
    page.get_by_role("button", name="Run").click()
    expect(page.locator("#answer > *").first).to_be_visible(timeout=ANSWER_MS)


def test_answer_is_a_table_and_a_chart(page: Page, dashboard: DashboardProcess) -> None:
    query = "SELECT subject, count(*) AS messages FROM streams.orders GROUP BY subject ORDER BY messages DESC"

    run(page, dashboard, query)

    expect(page.get_by_role("row").filter(has_text="orders.eu")).to_contain_text("40")
    expect(page.get_by_role("row").filter(has_text="orders.us")).to_contain_text("20")
    expect(page.locator("[data-answer-chart] canvas")).to_be_visible()
    assert (
        page.get_by_role("button", name="Copy as command").get_attribute("data-copy").startswith("jetlake sql 'SELECT")
    )
    check_accessible(page)
    check_fits_a_phone(page)


def test_columns_of_the_same_name_and_decimals_keep_their_values(page: Page, dashboard: DashboardProcess) -> None:
    run(page, dashboard, "SELECT 1 AS a, 2 AS a, 12345678901234567.89::DECIMAL(20, 2) AS total, 1.50 AS price")

    assert page.get_by_role("columnheader").all_inner_texts() == ["a", "a_1", "total", "price"]
    assert page.get_by_role("cell").all_inner_texts() == ["1", "2", "12345678901234567.89", "1.5"]


def test_long_answer_is_turned_in_pages_and_cut(page: Page, dashboard: DashboardProcess) -> None:
    run(page, dashboard, "SELECT range AS n FROM range(5000)")
    expect(page.get_by_text("1\N{EN DASH}25 of 1,000 rows")).to_be_visible()
    expect(page.get_by_text("There are more rows")).to_be_visible()

    page.get_by_role("link", name="Last").click()

    expect(page.get_by_text("976\N{EN DASH}1,000 of 1,000 rows")).to_be_visible()
    expect(page.get_by_role("cell", name="999", exact=True)).to_be_visible()


def test_lake_table_is_joined_with_a_stream(page: Page, dashboard: DashboardProcess) -> None:
    run(
        page,
        dashboard,
        "SELECT (SELECT count(*) FROM lake.fleet_nodes) AS nodes, count(*) AS orders FROM streams.orders",
    )

    expect(page.get_by_role("cell", name="60", exact=True)).to_be_visible()
    expect(page.get_by_role("cell", name="63", exact=True)).to_be_visible()


def test_payloads_are_text_and_never_html(page: Page, dashboard: DashboardProcess) -> None:
    run(page, dashboard, f"SELECT payload, '{HOSTILE}' AS \"<b>column</b>\", data FROM orders WHERE sequence > 60")

    expect(page.get_by_role("cell", name=HOSTILE).first).to_be_visible()
    expect(page.get_by_role("columnheader", name="<b>column</b>")).to_be_visible()
    assert page.locator("#answer img, #answer script, #answer b").count() == 0
    assert len(page.locator("#answer").inner_text()) < 10_000


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT subjct FROM streams.orders", "did you mean subject?"),
        ("SELECT * FROM streams.ordres", "did you mean streams.orders?"),
        ("SELEC 1", "yntax error at or near"),
        ("", "The query is empty"),
    ],
)
def test_mistake_is_told_with_a_suggestion(page: Page, dashboard: DashboardProcess, query: str, told: str) -> None:
    run(page, dashboard, query)

    expect(page.locator("#answer").get_by_role("alert")).to_contain_text(told)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM glob('/etc/*')",
        "SELECT content FROM lake.fleet_nodes, read_text('LAKE/fleet_nodes/../../../../../../../etc/passwd')",
        "SELECT content FROM read_text('LAKE/fleet_nodes/../_pipelines/fleet/state.json'), lake.fleet_nodes",
        "SELECT content FROM read_text('LAKE/fleet_nodes/_delta_log/00000000000000000000.json')",
        "COPY (SELECT 1) TO '/tmp/jetlake-dashboard-copy.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/jetlake-dashboard-copy.csv'",
        "ATTACH '/tmp/jetlake-dashboard.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT * FROM read_parquet('http://127.0.0.1:1/x.parquet')",
        "PRAGMA database_list",
    ],
)
def test_query_reads_nothing_of_the_machine(dashboard: DashboardProcess, page: Page, query: str) -> None:
    lake = dashboard.process.args[-1]  # type: ignore[index]
    page.goto(f"{dashboard.url}/sql")

    answer = page.request.get(
        f"{dashboard.url}/sql/answer?query={quote(query.replace('LAKE', str(lake)))}",
        headers={"HX-Request": "true"},
        timeout=ANSWER_MS,
    )

    assert 'role="alert"' in answer.text(), answer.text()
    assert "root:" not in answer.text()
    assert not Path("/tmp/jetlake-dashboard-copy.csv").exists()


def test_query_that_takes_too_long_is_ended(
    page: Page, start_dashboard: Callable[..., DashboardProcess], url: str
) -> None:
    impatient = start_dashboard(url, program=("-c", IMPATIENT))

    run(page, impatient, "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range * b.range % 7 = 3")

    expect(page.locator("#answer").get_by_role("alert")).to_contain_text("took longer than 1.5 s")


def test_query_that_needs_too_much_memory_is_refused(page: Page, dashboard: DashboardProcess) -> None:
    run(page, dashboard, "SELECT list(repeat('x', 1000000)) FROM range(100000)")

    expect(page.locator("#answer").get_by_role("alert")).to_contain_text("emory")


def test_link_fills_the_box_and_runs_nothing(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/sql/answer?query={quote('SELECT 41 + 1')}")

    expect(page.get_by_label("Query")).to_have_value("SELECT 41 + 1")
    assert page.get_by_role("cell", name="42").count() == 0


def test_table_is_queried_by_a_click_and_by_keys(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/")
    press_shortcut(page, "g", "q")
    page.get_by_role("link", name="streams.orders").click()
    expect(page.get_by_label("Query")).to_have_value("SELECT * FROM streams.orders LIMIT 100")
    expect(page.get_by_label("Query")).to_be_visible()

    page.get_by_label("Query").press("Control+Enter")

    expect(page.get_by_text("1\N{EN DASH}25 of 63 rows")).to_be_visible(timeout=ANSWER_MS)


def test_chart_data_is_json_in_an_attribute(page: Page, dashboard: DashboardProcess) -> None:
    run(page, dashboard, "SELECT timestamp, sequence FROM streams.orders ORDER BY sequence LIMIT 50")

    chart = json.loads(page.locator("[data-answer-chart]").get_attribute("data-answer-chart") or "")
    assert chart["is_time"]
    assert chart["lines"][0] == {"name": "sequence", "values": list(range(1, 51))}
