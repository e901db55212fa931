"""Consumers of a stream: the list, one consumer with its lag, pause, reset, create and delete."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import (
    DashboardProcess,
    ask_server,
    check_accessible,
    check_fits_a_phone,
    create_stream,
)
from tests.dashboard.stream_samples import create_consumer, store, take

_numbers = itertools.count(1)


@pytest.fixture
def name(url: str) -> str:
    """A stream that no other test uses, with ten messages and a consumer that has four of them unacknowledged."""
    made = f"K{next(_numbers)}"
    create_stream(url, made, f"{made}.>")
    store(url, *[(f"{made}.{'ab'[number % 2]}", b"%d" % number) for number in range(10)])
    create_consumer(url, made, "worker")
    take(url, made, "worker", 4)
    return made


def consumer_info(url: str, stream: str, consumer: str = "worker") -> dict[str, Any]:
    return ask_server(url, (f"CONSUMER.INFO.{stream}.{consumer}", None))[0]


def tile(page: Page, title: str) -> Any:
    return page.locator(".tile").filter(has=page.get_by_role("heading", name=title, exact=True))


def test_list_shows_lag_and_unacknowledged_messages(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    create_consumer(url, name, "audit", filter_subject=f"{name}.a")

    page.goto(f"{dashboard.url}/streams/{name}/consumers")

    expect(page.get_by_role("row", name="audit")).to_contain_text(f"{name}.a")
    worker = page.get_by_role("row", name="worker")
    expect(worker.locator('[data-label="Lag"]')).to_have_text("6")
    expect(worker.locator('[data-label="Unacknowledged"]')).to_have_text("4")


def test_long_list_of_consumers_is_read_in_pages(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    for number in range(30):
        create_consumer(url, name, f"c{number:02}")
    page.goto(f"{dashboard.url}/streams/{name}/consumers")

    page.get_by_role("link", name="Last").click()

    expect(page.get_by_text("26\N{EN DASH}31 of 31 consumers")).to_be_visible()


def test_consumer_shows_its_figures_and_its_oldest_message(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/consumers")
    page.get_by_role("link", name="worker").click()

    expect(tile(page, "Lag")).to_contain_text("6")
    expect(tile(page, "Unacknowledged")).to_contain_text("4")
    expect(tile(page, "Oldest unacknowledged").get_by_role("link")).to_have_attribute(
        "href", f"/streams/{name}/messages/1"
    )
    store(url, (f"{name}.a", b""))
    expect(tile(page, "Lag")).to_contain_text("7")


def test_consumer_says_why_it_does_not_deliver(
    page: Page, dashboard: DashboardProcess, server_kind: str, name: str
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/consumers/worker")
    expect(tile(page, "Lag")).to_be_visible()

    why = page.get_by_role("region", name="Why")
    if server_kind == "jetlake":
        expect(why).to_contain_text("No client is pulling")
        expect(why).to_contain_text(f"jetlake consumer next {name} worker")
    else:
        expect(why).to_have_count(0)


def test_pause_and_resume(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/consumers/worker")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("How long").fill("1h")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()

    expect(page.get_by_text("Paused consumer worker until")).to_be_visible()
    assert consumer_info(url, name)["paused"] is True
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("Resumed consumer worker.")).to_be_visible()
    assert not consumer_info(url, name).get("paused")


def test_pause_that_cannot_work_is_told_of(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    for until, told in (("later", "'later' is not a time"), ("2001-01-01 00:00:00", "is in the past")):
        page.goto(f"{dashboard.url}/streams/{name}/consumers/worker")
        page.get_by_role("button", name="Pause").click()
        page.get_by_label("How long").fill(until)
        page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()
    assert not consumer_info(url, name).get("paused")


@pytest.mark.parametrize(("sequence", "again", "begin"), [("", 4, 1), ("3", 2, 3)])
def test_reset_says_what_is_delivered_again(
    page: Page, dashboard: DashboardProcess, url: str, name: str, sequence: str, again: int, begin: int
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/consumers/worker")
    page.get_by_role("button", name="Reset").click()
    page.get_by_label("Begin at sequence").fill(sequence)
    page.get_by_role("button", name="Preview").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"{again} messages")
    expect(dialog).to_contain_text(f"{11 - begin} messages")
    assert consumer_info(url, name)["num_pending"] == 6

    dialog.get_by_role("textbox").fill("worker")
    dialog.get_by_role("button", name="Reset").click()

    expect(page.get_by_text(f"Consumer worker begins again at sequence {begin}.")).to_be_visible()
    assert consumer_info(url, name)["num_pending"] == 11 - begin


def test_create_from_the_form(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/consumers")
    page.get_by_role("link", name="Create a consumer").click()
    page.get_by_role("textbox", name="Name").fill("audit")
    page.get_by_role("textbox", name="Subjects").fill(f"{name}.a\n{name}.b")
    page.get_by_label("Begins with").select_option("a sequence")
    page.get_by_label("Sequence or time").fill("5")
    page.get_by_label("Acknowledgement wait").fill("1m")
    page.get_by_role("button", name="Create", exact=True).click()

    expect(page.get_by_text(f"Created consumer audit of stream {name}.")).to_be_visible()
    config = consumer_info(url, name, "audit")["config"]
    assert config["filter_subjects"] == [f"{name}.a", f"{name}.b"]
    assert (config["opt_start_seq"], config["ack_wait"]) == (5, 60 * 10**9)


def test_create_from_json(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/create-consumer")
    page.get_by_text("All settings as JSON").click()

    page.get_by_label("Configuration").fill('{"durable_name": "push", "deliver_subject": "out", "ack_policy": "none"}')
    page.get_by_role("button", name="Create from the JSON").click()

    expect(page.get_by_text(f"Created consumer push of stream {name}.")).to_be_visible()
    expect(tile(page, "Subscriber")).to_contain_text("none")


def test_create_that_the_server_refuses_keeps_the_form(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/create-consumer")

    page.get_by_role("textbox", name="Name").fill("worker")
    page.get_by_label("Deliveries at most").fill("7")
    page.get_by_role("button", name="Create", exact=True).click()

    expect(page.get_by_role("alert").filter(has_text="already exists")).to_be_visible()
    expect(page.get_by_label("Deliveries at most")).to_have_value("7")


def test_delete_asks_for_the_name_first(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/consumers/worker")
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("6 messages")

    dialog.get_by_role("textbox").fill("worker")
    dialog.get_by_role("button", name="Delete").click()

    expect(page.get_by_text(f"Deleted consumer worker of stream {name}.")).to_be_visible()
    expect(page.get_by_role("heading", name="No consumers yet")).to_be_visible()
    assert not ask_server(url, (f"CONSUMER.NAMES.{name}", None))[0]["consumers"]


def test_hostile_names_are_text(page: Page, dashboard: DashboardProcess, url: str) -> None:
    stream, consumer = "'\"<img_onerror=alert(1)", "<b%41&?#'\""
    create_stream(url, stream, "hostile.stream")
    create_consumer(url, stream, consumer)
    page.goto(f"{dashboard.url}/streams?filter=onerror")
    page.get_by_role("link", name=stream).click()
    expect(page.get_by_role("heading", name=stream)).to_be_visible()

    page.get_by_role("link", name="Consumers").click()
    page.get_by_role("link", name=consumer).click()

    expect(page.get_by_role("heading", name=consumer)).to_be_visible()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("textbox").fill(consumer)
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text(f"Deleted consumer {consumer} of stream {stream}.")).to_be_visible()
    assert page.locator("main img, main b").count() == 0


def test_pages_and_dialogs_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, name: str) -> None:
    for path in ("create-consumer", "consumers", "consumers/worker"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{dashboard.url}/streams/{name}/{path}")
        check_accessible(page)
        check_fits_a_phone(page)
    for button in ("Pause", "Reset"):
        page.goto(f"{dashboard.url}/streams/{name}/consumers/worker")
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        check_accessible(page)
