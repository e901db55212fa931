"""The list of streams: paging, filter, order, live rates, purge and delete behind a word to type."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import (
    DashboardProcess,
    ask_server,
    check_accessible,
    check_fits_a_phone,
    create_stream,
)
from tests.dashboard.stream_samples import store

_numbers = itertools.count(1)


@pytest.fixture
def name(url: str) -> str:
    """A stream that no other test uses, with three messages."""
    made = f"ORDERS_{next(_numbers)}"
    create_stream(url, made, f"{made}.>")
    store(url, *[(f"{made}.new", b"hello") for _ in range(3)])
    return made


def test_list_shows_name_subjects_and_messages(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")

    shown = page.get_by_role("row").filter(has_text=f"{name}.>")
    expect(shown).to_contain_text(name)
    expect(shown.locator(f'[data-live="stream:{name}:messages"]')).to_have_text("3")


def test_rate_of_a_stream_is_live(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")
    expect(page.locator(f'[data-live="stream:{name}:rate"]')).to_have_text("0/s")

    store(url, *[(f"{name}.new", b"hello") for _ in range(100)])

    expect(page.locator(f'[data-live="stream:{name}:messages"]')).to_have_text("103")
    expect(page.locator(f'[data-spark="stream:{name}:rate"] polyline')).to_be_attached()


def test_filter_finds_streams_while_typing(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams")

    page.get_by_placeholder("Filter by name").fill("nothing is called so")

    expect(page.get_by_role("heading", name="No stream matches")).to_be_visible()

    page.get_by_placeholder("Filter by name").fill(name.lower())

    expect(page.get_by_text(f"{name}.>")).to_be_visible()


def test_long_list_is_read_in_pages(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: object,
) -> None:
    server = start_server(["-js", "-sd", f"{tmp_path}/store"])
    configs = [{"name": f"S{number:03}", "subjects": [f"s.{number}"], "num_replicas": 1} for number in range(60)]
    ask_server(server.url, *[(f"STREAM.CREATE.{config['name']}", config) for config in configs])
    page.goto(f"{start_dashboard(server.url).url}/streams")
    expect(page.get_by_text("1\N{EN DASH}25 of 60 streams")).to_be_visible()

    page.get_by_role("link", name="Last").click()

    expect(page.get_by_text("51\N{EN DASH}60 of 60 streams")).to_be_visible()
    expect(page.get_by_role("rowheader")).to_have_count(10)
    assert page.url.endswith("?sort=name&page=3")


def test_list_is_sorted_by_messages_largest_first(page: Page, dashboard: DashboardProcess, url: str) -> None:
    create_stream(url, "SORT_FEW", "sort.few")
    create_stream(url, "SORT_MANY", "sort.many")
    store(url, ("sort.few", b""), *[("sort.many", b"")] * 5)
    page.goto(f"{dashboard.url}/streams?filter=SORT_")
    expect(page.get_by_role("rowheader").first).to_have_text("SORT_FEW")

    page.get_by_role("link", name="Messages").click()

    expect(page.get_by_role("rowheader").first).to_have_text("SORT_MANY")


def test_delete_asks_for_the_name_first(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")
    page.get_by_role("button", name=f"Delete {name}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("cannot be undone")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()

    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name="Delete").click()

    expect(page.get_by_text(f"Deleted stream {name}.")).to_be_visible()
    assert name not in ask_server(url, ("STREAM.NAMES", None))[0].get("streams", [])


def test_purge_keeps_the_stream(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")
    page.get_by_role("button", name=f"Purge {name}").click()
    dialog = page.get_by_role("dialog")

    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("button", name="Purge").click()

    expect(page.get_by_text(f"Purged 3 messages of stream {name}.")).to_be_visible()
    assert ask_server(url, (f"STREAM.INFO.{name}", None))[0]["state"]["messages"] == 0


def test_wrong_word_changes_nothing_even_if_the_browser_sends_it(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")
    page.get_by_role("button", name=f"Delete {name}").click()
    dialog = page.get_by_role("dialog")

    dialog.get_by_role("textbox").fill("yes")
    page.evaluate("document.querySelector('dialog [type=submit]').disabled = false")
    dialog.get_by_role("button", name="Delete").click()

    expect(page.get_by_text(f"Nothing was changed: type {name} to confirm.")).to_be_visible()
    assert ask_server(url, (f"STREAM.INFO.{name}", None))[0]["state"]["messages"] == 3


def test_dialog_offers_the_same_as_a_command(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")

    page.get_by_role("button", name=f"Delete {name}").click()

    button = page.get_by_role("dialog").get_by_role("button", name="Copy as command")
    expect(button).to_have_attribute("data-copy", f"jetlake stream rm {name} --server {url}")


def test_subject_that_looks_like_html_is_shown_as_text(page: Page, dashboard: DashboardProcess, url: str) -> None:
    hostile = "x.<img/src=x/onerror=alert(1)>.'\"><script>alert(2)</script>"
    create_stream(url, "HOSTILE", hostile)

    page.goto(f"{dashboard.url}/streams?filter=HOSTILE")

    expect(page.get_by_text(hostile)).to_be_visible()
    assert page.locator("td img, td script").count() == 0


def test_filter_that_looks_like_html_is_shown_as_text(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter=%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")

    expect(page.get_by_text('No name contains “"><img src=x onerror=alert(1)>”')).to_be_visible()


def test_empty_server_says_how_to_create_a_stream(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: object,
) -> None:
    server = start_server(["-js", "-sd", f"{tmp_path}/store"])

    page.goto(f"{start_dashboard(server.url).url}/streams")

    expect(page.get_by_role("heading", name="No streams yet")).to_be_visible()
    expect(page.get_by_text("jetlake stream add ORDERS --subjects")).to_be_visible()
    check_accessible(page)


def test_list_and_dialog_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")
    expect(page.get_by_text(f"{name}.>")).to_be_visible()
    check_accessible(page)
    check_fits_a_phone(page)

    page.get_by_role("button", name=f"Delete {name}").click()

    expect(page.get_by_role("dialog")).to_be_visible()
    check_accessible(page)
