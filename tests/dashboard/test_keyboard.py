"""The frame of all pages: keys, search, colours, the menu of small screens."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.dashboard.conftest import DashboardProcess, check_accessible, create_stream, press_shortcut, search_for


def test_keys_lead_to_pages(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(dashboard.url)

    press_shortcut(page, "g", "s")

    expect(page.get_by_role("heading", name="Streams", exact=True)).to_be_visible()
    press_shortcut(page, "g", "o")

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_slash_leads_to_the_search_which_finds_streams(page: Page, dashboard: DashboardProcess, url: str) -> None:
    create_stream(url, "WANTED", "wanted")
    page.goto(dashboard.url)

    search_for(page, "want")

    expect(page.locator("#search-results").get_by_role("link", name="WANTED")).to_be_visible()

    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="WANTED")).to_be_visible()


def test_text_of_the_search_is_never_html(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(dashboard.url)

    search_for(page, "<img src=x onerror=alert(1)>")

    expect(page.get_by_text("Nothing is called “<img src=x onerror=alert(1)>”.")).to_be_visible()


def test_question_mark_lists_the_keys(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(dashboard.url)

    page.keyboard.press("?")

    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_contain_text("Streams")
    check_accessible(page)

    page.keyboard.press("Escape")

    expect(page.get_by_role("dialog")).to_be_hidden()


def test_switch_of_colours_is_kept(page: Page, dashboard: DashboardProcess) -> None:
    page.emulate_media(color_scheme="light")
    page.goto(dashboard.url)
    switch = page.locator("[data-theme-switch]")
    expect(switch).to_have_accessible_name("Colours: follow the system")

    switch.click()
    switch.click()
    page.reload()

    expect(switch).to_have_accessible_name("Colours: dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 20, 27)"


def test_menu_folds_on_a_phone(page: Page, dashboard: DashboardProcess) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(dashboard.url)
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Streams")
    expect(link).to_be_hidden()

    page.get_by_role("button", name="Menu").click()
    link.click()

    expect(page.get_by_role("heading", name="Streams", exact=True)).to_be_visible()
