"""The overview: live figures of the account or the whole server, charts, and consumers that are behind."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from playwright.sync_api import Page, expect

from jetlake.client.access import Access
from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import (
    WAIT_MS,
    DashboardProcess,
    ask_server,
    check_accessible,
    check_fits_a_phone,
    create_stream,
    publish,
)

SYSTEM_CONFIG = """
accounts {
  $SYS { users: [ {user: admin, password: secret} ] }
  SHOP { jetstream: enabled, users: [ {user: shop, password: secret} ] }
}
jetstream { store_dir: "STORE" }
"""


def test_figures_move_while_messages_are_published(page: Page, dashboard: DashboardProcess, url: str) -> None:
    page.goto(dashboard.url)
    rate = page.locator('.tile [data-live="messages.in"]')
    expect(rate).to_have_text(re.compile(r"^[\d.]+/s$"))

    # What is read must be looked at once: the figure is back at 0 a moment later.
    deadline = time.monotonic() + WAIT_MS / 1_000
    while not re.match(r"^[\d,]{3,}/s$", rate.inner_text()):
        assert time.monotonic() < deadline, "the rate does not move"
        publish(url, *[("somewhere", b"hello")] * 1_000)
        page.wait_for_timeout(1_000)

    expect(page.locator("[data-chart] canvas").first).to_be_visible()


def test_consumer_that_is_behind_is_named_with_its_lag(page: Page, dashboard: DashboardProcess, url: str) -> None:
    create_stream(url, "BEHIND", "behind")
    config = {"durable_name": "slow", "ack_policy": "explicit"}
    ask_server(url, ("CONSUMER.CREATE.BEHIND.slow", {"stream_name": "BEHIND", "config": config}))
    publish(url, *[("behind", b"")] * 7)

    page.goto(dashboard.url)

    behind = page.get_by_role("row").filter(has_text="BEHIND")
    expect(behind).to_contain_text("slow", timeout=WAIT_MS)
    expect(behind.get_by_role("cell", name="7")).to_be_visible()


def test_page_names_the_server_it_is_connected_to(page: Page, dashboard: DashboardProcess, server_kind: str) -> None:
    page.goto(dashboard.url)

    product = "Jetlake" if server_kind == "jetlake" else "nats-server"
    expect(page.locator("[data-connection]")).to_have_text(re.compile(rf"^{product} \d"))


def test_fsync_latency_is_offered_where_the_server_measures_it(
    page: Page, dashboard: DashboardProcess, server_kind: str
) -> None:
    page.goto(dashboard.url)

    expect(page.get_by_text("Fsync latency is on the server's monitoring pages")).to_have_count(
        1 if server_kind == "jetlake" else 0
    )


def test_user_of_the_system_account_sees_the_whole_server(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: object,
) -> None:
    server = start_server(config=SYSTEM_CONFIG.replace("STORE", f"{tmp_path}/store"))
    create_stream(Access(url=server.url, user="shop", password="secret"), "SHOP")
    dashboard = start_dashboard(server.url, "--user", "admin", "--password", "secret")

    page.goto(dashboard.entry_url)

    expect(page.get_by_text("All accounts of the server")).to_be_visible()
    expect(page.locator('.tile [data-live="connections"]')).to_have_text(re.compile(r"^\d+$"))
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Streams")).to_have_count(0)


def test_server_without_jetstream_says_so(
    page: Page, start_server: Callable[..., ServerProcess], start_dashboard: Callable[..., DashboardProcess]
) -> None:
    dashboard = start_dashboard(start_server().url)

    page.goto(dashboard.url)

    expect(page.get_by_role("heading", name="JetStream is off for this account")).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Streams")).to_have_count(0)


def test_lost_server_is_told_and_found_again(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
) -> None:
    server = start_server()
    page.goto(start_dashboard(server.url).url)
    expect(page.locator('.tile [data-live="connections"]')).to_have_text(re.compile(r"^\d+$"))

    server.stop()

    expect(page.get_by_text("is lost. The dashboard is reconnecting.")).to_be_visible()

    start_server(port=server.port)

    expect(page.get_by_text("is lost. The dashboard is reconnecting.")).to_be_hidden()


def test_overview_is_accessible_and_fits_a_phone(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(dashboard.url)
    expect(page.locator("[data-chart] canvas").first).to_be_visible()

    check_accessible(page)
    check_fits_a_phone(page)
