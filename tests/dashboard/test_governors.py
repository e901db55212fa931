"""Governors in the browser: slots, holders, and the eviction of one."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from jetlake.client.api import Api
from jetlake.governor import catalog
from jetlake.governor.layout import GovernorSettings, subject_of
from tests.dashboard.conftest import DashboardProcess, check_accessible, check_fits_a_phone
from tests.dashboard.features import HOSTILE, confirm, do, post

_numbers = itertools.count(1)


def hold(url: str, governor: str, *holders: str) -> None:
    async def work(api: Api) -> None:
        for holder in holders:
            await api.connection.request(subject_of(governor), holder.encode())

    do(url, work)


def holders_of(url: str, governor: str) -> list[str]:
    async def work(api: Api) -> list[str]:
        return [lease.holder for lease in await catalog.leases(api, governor)]

    return do(url, work)


@pytest.fixture
def governor(url: str) -> str:
    """A governor that no other test uses, with three slots, two of them held."""
    name = f"DEPLOY_{next(_numbers)}"

    async def work(api: Api) -> None:
        await catalog.add(api, GovernorSettings(name=name, capacity=3, expires_ns=20 * 60 * 10**9))

    do(url, work)
    hold(url, name, "web1.example.net", "web2.example.net")
    return name


def test_list_shows_slots_and_leads_to_the_holders(page: Page, dashboard: DashboardProcess, governor: str) -> None:
    page.goto(f"{dashboard.url}/governors?filter={governor}")
    expect(page.get_by_role("meter", name=f"2 of 3 slots of {governor} are held")).to_be_visible()

    page.get_by_role("link", name=governor, exact=True).click()

    expect(page.get_by_role("rowheader")).to_have_text(["web1.example.net", "web2.example.net"])
    expect(page.get_by_text("20m", exact=True)).to_be_visible()


def test_open_page_shows_holders_that_come_later(
    page: Page, dashboard: DashboardProcess, url: str, governor: str
) -> None:
    page.goto(f"{dashboard.url}/governors/{governor}")
    expect(page.get_by_role("rowheader")).to_have_count(2)

    hold(url, governor, "web3.example.net")

    expect(page.get_by_role("rowheader", name="web3.example.net")).to_be_visible()


def test_evict_asks_for_the_name_and_frees_the_slot(
    page: Page, dashboard: DashboardProcess, url: str, governor: str
) -> None:
    page.goto(f"{dashboard.url}/governors/{governor}")
    page.get_by_role("button", name="Evict web1.example.net").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The holder is not told")
    copy = dialog.get_by_role("button", name="Copy as command")
    expect(copy).to_have_attribute("data-copy", f"jetlake governor evict {governor} 1 --server {url}")
    check_accessible(page)

    confirm(page, governor, "Evict")

    expect(page.get_by_text(f"Evicted web1.example.net from governor {governor}.")).to_be_visible()
    assert holders_of(url, governor) == ["web2.example.net"]


def test_lease_that_is_gone_is_not_evicted(page: Page, dashboard: DashboardProcess, governor: str) -> None:
    page.goto(f"{dashboard.url}/governors/{governor}")

    status, text = post(page, f"/governors/{governor}/evict/99", confirmation=governor)

    assert status == 502
    assert "has no lease 99" in text


def test_hostile_holder_is_only_a_name(page: Page, dashboard: DashboardProcess, url: str, governor: str) -> None:
    hold(url, governor, HOSTILE)

    page.goto(f"{dashboard.url}/governors/{governor}")

    expect(page.get_by_role("rowheader", name=HOSTILE)).to_be_visible()
    page.get_by_role("button", name=f"Evict {HOSTILE}").click()
    expect(page.get_by_role("dialog")).to_contain_text(HOSTILE)
    assert page.locator("main img, main script, dialog img").count() == 0


def test_governor_that_is_not_there_is_named(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/governors/NOWHERE")

    expect(page.get_by_text("Unknown governor 'NOWHERE'")).to_be_visible()


def test_read_only_dashboard_refuses_to_evict(
    page: Page, start_dashboard: Callable[..., DashboardProcess], url: str, governor: str
) -> None:
    page.goto(f"{start_dashboard(url, '--read-only').url}/governors/{governor}")
    expect(page.get_by_role("rowheader")).to_have_count(2)
    expect(page.get_by_role("button", name="Evict")).to_have_count(0)

    assert post(page, f"/governors/{governor}/evict/1", confirmation=governor)[0] == 403
    assert len(holders_of(url, governor)) == 2


def test_pages_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, url: str, governor: str) -> None:
    hold(url, governor, "h" * 200)
    for path in (f"/governors?filter={governor}", f"/governors/{governor}"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(dashboard.url + path)
        check_accessible(page)
        check_fits_a_phone(page)
