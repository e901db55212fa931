"""Pages of a server that has nothing to show yet: each says how to make the first thing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import DashboardProcess, check_accessible, press_shortcut


@pytest.mark.parametrize(
    ("key", "heading", "command"),
    [
        ("k", "No buckets yet", "jetlake kv add CONFIG --history 5"),
        ("b", "No object stores yet", "jetlake object add FILES"),
        ("v", "No governors yet", "jetlake governor add DEPLOY 2 20m"),
        ("l", "No stream keeps dead letters", "jetlake stream add DEAD --subjects"),
    ],
)
def test_page_says_how_to_make_the_first(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: Path,
    key: str,
    heading: str,
    command: str,
) -> None:
    server = start_server(["-js", "-sd", f"{tmp_path}/store"])
    page.goto(start_dashboard(server.url).url)

    press_shortcut(page, "g", key)

    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.get_by_text(command)).to_be_visible()
    check_accessible(page)
