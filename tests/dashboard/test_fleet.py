"""The pages of the fleet: from lake tables, and without them from the events that streams keep."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from jetlake.choria.events import encode, lifecycle_body, subject_of, transition_body
from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import (
    DashboardProcess,
    check_accessible,
    check_fits_a_phone,
    create_stream,
)
from tests.dashboard.lake_samples import HOSTILE, write_lake
from tests.dashboard.stream_samples import store

HELPER_MS = 60_000
"""A helper is a process, which takes its time on a machine that is busy with other tests."""


@pytest.fixture(scope="module")
def dashboard(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """A dashboard with a lake."""
    pytest.importorskip("deltalake")
    pytest.importorskip("duckdb")
    folder = tmp_path_factory.mktemp("fleet")
    started = DashboardProcess(url, folder, "--lake", str(write_lake(folder / "lake")))
    yield started
    started.stop()


def test_nodes_show_state_and_availability_worst_first(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/fleet", timeout=HELPER_MS)

    expect(page.get_by_role("rowheader").first).to_have_text("quiet")
    expect(page.get_by_role("row").filter(has_text="quiet")).to_contain_text("silent")
    expect(page.get_by_role("row").filter(has_text="gone")).to_contain_text("50.0 %")
    expect(page.get_by_text("1\N{EN DASH}25 of 60 nodes")).to_be_visible()
    assert page.locator("main img").count() == 0
    check_accessible(page)
    check_fits_a_phone(page)


def test_filter_is_text_in_a_query(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/fleet?filter=x%27%20OR%20%271%27=%271", timeout=HELPER_MS)

    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()


def test_checks_and_machines_have_tabs(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/fleet/checks", timeout=HELPER_MS)
    expect(page.get_by_role("row").nth(1)).to_contain_text("CRITICAL")
    expect(page.get_by_role("cell", name=HOSTILE)).to_be_visible()

    page.get_by_role("link", name="Machines").click(timeout=HELPER_MS)

    expect(page.get_by_role("row").filter(has_text="backup")).to_contain_text("running", timeout=HELPER_MS)


def test_without_a_lake_those_are_listed_who_were_heard_from(
    page: Page, url: str, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    create_stream(url, "FLEET_EVENTS", "choria.lifecycle.event.>", "choria.machine.>")
    now_s = int(time.time())
    bodies = [
        lifecycle_body("startup", identity="web1", component="server", version="0.28.0", timestamp_s=now_s - 60),
        lifecycle_body("alive", identity=HOSTILE, component="server", version="0.1", timestamp_s=now_s - 50),
        transition_body(
            identity="web1",
            machine="backup",
            version="1",
            machine_id="x",
            transition="START",
            from_state="idle",
            to_state="busy",
            timestamp_s=now_s - 10,
        ),
    ]
    store(url, *[(subject_of(body), encode(body)) for body in bodies], ("choria.machine.transition", b"\xff{"))

    page.goto(f"{start_dashboard(url).url}/fleet")

    shown = page.get_by_role("row").filter(has_text="web1")
    expect(shown).to_contain_text("idle => busy")
    expect(shown).to_contain_text("0.28.0")
    expect(page.get_by_role("rowheader", name=HOSTILE)).to_be_visible()
    assert page.locator("main img").count() == 0
    check_accessible(page)
    check_fits_a_phone(page)


def test_server_without_events_says_how_to_keep_them(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: object,
) -> None:
    server = start_server(["-js", "-sd", f"{tmp_path}/store"])

    page.goto(f"{start_dashboard(server.url).url}/fleet")

    expect(page.get_by_role("heading", name="No stream keeps the events of nodes")).to_be_visible()
    expect(page.get_by_text("jetlake apply @choria_streams")).to_be_visible()
