"""The pages of pipelines: state, progress and tables from the lake, and the report in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import (
    DashboardProcess,
    check_accessible,
    check_fits_a_phone,
    press_shortcut,
)
from tests.dashboard.lake_samples import HOSTILE, write_lake

HELPER_MS = 60_000
"""A helper is a process, which takes its time on a machine that is busy with other tests."""


@pytest.fixture(scope="module")
def dashboard(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """A dashboard with a lake."""
    pytest.importorskip("deltalake")
    folder = tmp_path_factory.mktemp("pipelines")
    started = DashboardProcess(url, folder, "--lake", str(write_lake(folder / "lake")))
    yield started
    started.stop()


def test_list_shows_state_progress_and_freshness(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/pipelines")

    running = page.get_by_role("row").filter(has_text="About fleet")
    expect(running).to_contain_text("running")
    expect(running).to_contain_text("1,234")
    expect(running).to_contain_text("ago")
    expect(page.get_by_role("row").filter(has_text="About orders")).to_contain_text("failed")
    expect(page.get_by_text(f"the table is gone: {HOSTILE}")).to_be_visible()
    assert page.locator("main img").count() == 0
    check_accessible(page)
    check_fits_a_phone(page)


def test_pipeline_shows_rows_per_table_and_batches(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/pipelines/fleet", timeout=HELPER_MS)

    expect(page.get_by_role("row").filter(has_text="fleet_nodes")).to_contain_text("60")
    expect(page.get_by_role("row").filter(has_text="fleet_query")).to_contain_text("78 ms")
    expect(page.locator("[data-answer-chart] canvas")).to_be_visible()
    assert page.locator("main img").count() == 0
    check_accessible(page)
    check_fits_a_phone(page)


def test_report_is_served_without_scripts(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/pipelines")

    answer = page.request.get(f"{dashboard.url}/pipelines/fleet/report", timeout=HELPER_MS)

    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script" not in policy
    assert "<h1>fleet</h1>" in answer.text()
    assert HOSTILE not in answer.text()
    other = page.request.get(f"{dashboard.url}/pipelines")
    assert other.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")


@pytest.mark.parametrize("name", ["nothing", "..", "%2e%2e%2f%2e%2e", "fleet%2f..%2forders"])
def test_name_of_the_address_is_never_a_path(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/pipelines")

    answer = page.request.get(f"{dashboard.url}/pipelines/{name}/report")

    assert answer.status == 404


def test_filter_finds_pipelines_and_keys_lead_here(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/")
    press_shortcut(page, "g", "p")
    page.get_by_placeholder("Filter by name").fill("zzz")

    expect(page.get_by_role("heading", name="No pipeline matches")).to_be_visible()


def test_dashboard_without_a_lake_says_how_to_get_one(
    page: Page, url: str, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    page.goto(f"{start_dashboard(url).url}/pipelines")

    expect(page.get_by_text("jetlake dashboard --lake lake")).to_be_visible()
    check_accessible(page)
