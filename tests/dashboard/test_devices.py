"""The pages of devices: who is online, resources with values, and commands that wait, from the event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import DashboardProcess, check_accessible, check_fits_a_phone, search_for
from tests.dashboard.stream_samples import store

pytest.importorskip("google.protobuf")

from jetlake.client.api import open_api
from jetlake.devices.session import UserSession
from jetlake.devices.settings import Settings
from jetlake.devices.store.in_stream import StreamStore
from jetlake.devices.stream import ensure_streams
from tests.devices import commands as c

ONLINE = "ae424c58-e517-4494-6de7-583536c48213"
HOSTILE_ID = "<img/src=x/onerror=alert(1)>"
HOSTILE = '"><img src=x onerror=alert(1)><script>alert(2)</script>'


def execute(url: str, *commands: tuple[str, Any]) -> None:
    """Send commands to the event store, in a thread of their own."""

    async def work() -> None:
        async with open_api(url) as api:
            stream = await ensure_streams(api)
            session = UserSession(api, StreamStore(api, stream), Settings(jetstream=True), user_id="ada", owner="acme")
            for name, command in commands:
                await session.execute(name, command)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


@pytest.fixture(scope="module")
def filled(url: str) -> str:
    """A server with a device that is online and has a pending command, a hostile one, and thirty others."""
    execute(
        url,
        ("UpdateDeviceMetadata", c.online(device=ONLINE)),
        ("PublishResourceLinks", c.publish_links("/oic/d", "/light/1", device=ONLINE)),
        ("NotifyResourceChanged", c.notify({"n": "Lamp in the hall"}, 1, href="/oic/d", device=ONLINE)),
        ("NotifyResourceChanged", c.notify({"power": 7, "note": HOSTILE}, 2, device=ONLINE)),
        ("UpdateResource", c.command("command-1", {"power": 9}, device=ONLINE)),
        ("PublishResourceLinks", c.publish_links("/big", device="BIG")),
        ("NotifyResourceChanged", c.notify("x" * 500_000, 1, href="/big", device="BIG")),
        *[("PublishResourceLinks", c.publish_links("/light/1", device=f"D{number:02}")) for number in range(30)],
    )
    store(url, (f"events.{HOSTILE_ID}.metadata.devicemetadataupdated", b"\xff\x00 not an event"))
    return url


def test_list_shows_name_connection_and_twin(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices?filter={ONLINE[:8]}")

    shown = page.get_by_role("row").filter(has_text=ONLINE)
    expect(shown).to_contain_text("Lamp in the hall")
    expect(shown).to_contain_text("online")
    expect(shown).to_contain_text("out of sync")


def test_list_is_read_in_pages(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices")
    expect(page.get_by_text("1\N{EN DASH}25 of 33 devices")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="D00")).to_contain_text("unknown")

    page.get_by_role("link", name="Last").click()

    expect(page.get_by_text("26\N{EN DASH}33 of 33 devices")).to_be_visible()
    check_accessible(page)
    check_fits_a_phone(page)


def test_device_shows_values_and_pending_commands(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices?filter={ONLINE}")
    page.get_by_role("link", name=ONLINE).click()

    expect(page.get_by_role("heading", name="Lamp in the hall")).to_be_visible()
    expect(page.get_by_role("region", name="Table of resources")).to_contain_text('"power": 7')
    pending = page.get_by_role("region", name="Pending commands")
    expect(pending).to_contain_text("command-1")
    expect(pending).to_contain_text("ResourceUpdate")
    check_accessible(page)
    check_fits_a_phone(page)


def test_ids_and_values_are_text_and_never_html(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices/{ONLINE}")
    expect(page.get_by_role("region", name="Table of resources")).to_contain_text("<script>alert(2)</script>")
    assert page.locator("main img, main script").count() == 0

    page.goto(f"{dashboard.url}/devices?filter={quote(HOSTILE_ID)}")
    expect(page.get_by_role("link", name=HOSTILE_ID)).to_be_visible()
    assert page.locator("main img").count() == 0

    page.get_by_role("link", name=HOSTILE_ID).click()

    expect(page.get_by_role("alert")).to_contain_text("cannot be part of a subject")


def test_large_value_is_cut(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices/BIG")

    expect(page.get_by_role("region", name="Table of resources")).to_contain_text("xxxx…")
    assert len(page.locator("main").inner_text()) < 5_000


def test_unknown_device_is_a_sentence(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices/nobody")

    expect(page.get_by_text("There is no device nobody.")).to_be_visible()


def test_search_finds_a_device(page: Page, dashboard: DashboardProcess, filled: str) -> None:
    page.goto(f"{dashboard.url}/devices")

    search_for(page, ONLINE[:13])

    expect(page.locator("#search-results").get_by_text(ONLINE)).to_be_visible()


def test_server_without_events_says_what_to_do(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: object,
) -> None:
    server = start_server(["-js", "-sd", f"{tmp_path}/store"])

    page.goto(f"{start_dashboard(server.url).url}/devices")

    expect(page.get_by_role("heading", name="There is no stream of device events")).to_be_visible()
    check_accessible(page)
