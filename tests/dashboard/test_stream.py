"""The pages of one stream that show something: overview, subjects, messages, one message, live tail."""

from __future__ import annotations

import itertools

import pytest
from playwright.sync_api import Page, expect

from jetlake.dashboard.subject_tree import sample_level
from jetlake.devices.codec import EventCodec
from jetlake.devices.protos import events_2025_pb2 as events
from tests.dashboard.conftest import (
    DashboardProcess,
    ask_server,
    check_accessible,
    check_fits_a_phone,
    create_stream,
    press_shortcut,
    publish,
)
from tests.dashboard.features import do
from tests.dashboard.stream_samples import store, stream_info

HOSTILE = "<img/src=x/onerror=alert(1)>'\"><script>alert(2)</script>"

_numbers = itertools.count(1)


@pytest.fixture
def name(url: str) -> str:
    """A stream that no other test uses, empty."""
    made = f"S{next(_numbers)}"
    create_stream(url, made, f"{made}.>")
    return made


def test_overview_shows_figures_and_configuration(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, (f"{name}.a", b"1"), (f"{name}.b", b"2"))

    page.goto(f"{dashboard.url}/streams/{name}")

    expect(page.locator(f'[data-live="stream:{name}:messages"]')).to_have_text("2")
    expect(page.get_by_role("region", name="Limits")).to_contain_text("max age")
    expect(page.get_by_role("button", name="Copy as command").first).to_have_attribute(
        "data-copy", f"jetlake stream info {name} --server {url}"
    )


def test_overview_says_why_messages_move(page: Page, dashboard: DashboardProcess, name: str, server_kind: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}")

    why = page.get_by_role("region", name="Why")
    if server_kind == "jetlake":
        expect(why).to_contain_text("The stream takes messages")
    else:
        expect(why).to_have_count(0)


def test_list_search_and_digits_lead_to_the_pages(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams?filter={name}")
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()

    press_shortcut(page, "g", "3")

    expect(page.get_by_role("heading", name="Messages", exact=True)).to_be_visible()


def test_stream_that_is_not_there_is_told_of(page: Page, dashboard: DashboardProcess) -> None:
    for path in ("", "/messages", "/subjects", "/tail", "/consumers", "/edit"):
        page.goto(f"{dashboard.url}/streams/NOTHERE{path}")
        expect(page.get_by_role("alert").filter(has_text="There is no stream NOTHERE")).to_be_visible()


def test_subjects_open_level_by_level_with_counts(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, *[(f"{name}.eu.{city}", b"") for city in ("paris", "rome", "rome")], (f"{name}.us", b""))
    page.goto(f"{dashboard.url}/streams/{name}/subjects")
    expect(page.get_by_text("4 in 3 subjects")).to_be_visible()
    expect(page.get_by_text("rome")).to_have_count(0)

    page.locator("summary", has_text=name).click()
    page.locator("summary", has_text="eu").click()

    expect(page.locator(".leaf", has_text="rome")).to_contain_text("2")
    page.get_by_role("link", name="rome").click()
    expect(page.get_by_label("Subject")).to_have_value(f"{name}.eu.rome")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_many_subjects_are_shown_in_parts(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, *[(f"{name}.{number:03}", b"") for number in range(130)])
    page.goto(f"{dashboard.url}/streams/{name}/subjects?prefix={name}")
    expect(page.locator(".leaf")).to_have_count(100)
    expect(page.get_by_text("100 of 130")).to_be_visible()

    page.get_by_role("link", name="Show more").click()

    expect(page.locator(".leaf")).to_have_count(130)


def test_level_with_too_many_subjects_is_a_sample(url: str, name: str) -> None:
    store(url, *[(f"{name}.{number % 3}.{number}", b"") for number in range(90)], (f"{name}.rare.x", b""))

    whole = do(url, lambda api: sample_level(api, name, name))
    rare = do(url, lambda api: sample_level(api, name, f"{name}.rare"))

    assert whole.is_sample
    counted = {branch.token: (branch.messages, branch.has_more) for branch in whole.branches}
    assert counted == {"0": (30, True), "1": (30, True), "2": (30, True), "rare": (1, True)}
    assert [(branch.token, branch.messages, branch.is_subject) for branch in rare.branches] == [("x", 1, True)]
    assert stream_info(url, name)["state"]["consumer_count"] == 0


def test_messages_begin_with_the_newest_and_can_be_paged(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    store(url, *[(f"{name}.{('odd', 'even')[number % 2]}", b"%d" % number) for number in range(60)])
    page.goto(f"{dashboard.url}/streams/{name}/messages")
    expect(page.get_by_text("36\N{EN DASH}60 of sequences 1\N{EN DASH}60")).to_be_visible()

    page.get_by_role("link", name="Older").click()

    expect(page.get_by_text("11\N{EN DASH}35 of")).to_be_visible()
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_text("1\N{EN DASH}10 of")).to_be_visible()
    page.get_by_role("link", name="Newer").click()
    expect(page.get_by_text("11\N{EN DASH}35 of")).to_be_visible()
    page.get_by_role("link", name="First").click()
    expect(page.get_by_text("1\N{EN DASH}25 of")).to_be_visible()


def test_messages_are_found_by_subject_and_sequence(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    store(url, *[(f"{name}.{('odd', 'even')[number % 2]}", b"n%d" % number) for number in range(20)])
    page.goto(f"{dashboard.url}/streams/{name}/messages")

    page.get_by_label("Subject").fill(f"{name}.even")
    page.get_by_label("From sequence").fill("10")
    page.get_by_role("button", name="Show").click()

    expect(page.locator("tbody tr")).to_have_count(6)
    expect(page.locator("tbody tr").first).to_contain_text("n9")


def test_rare_subject_is_found_far_back(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, (f"{name}.rare", b"here"), *[(f"{name}.often", b"")] * 300)

    page.goto(f"{dashboard.url}/streams/{name}/messages?filter={name}.rare")

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("here")


def test_messages_are_found_by_time(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, (f"{name}.a", b"early"), (f"{name}.a", b"late"))
    late = ask_server(url, (f"STREAM.MSG.GET.{name}", {"seq": 2}))[0]["message"]["time"]
    page.goto(f"{dashboard.url}/streams/{name}/messages")

    page.get_by_label("Or from time").fill(late)
    page.get_by_role("button", name="Show").click()

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("late")
    page.get_by_label("Or from time").fill("1h")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(2)


@pytest.mark.parametrize(
    ("query", "told"), [("time=soon", "is not a time"), ("filter=a..b", "is not a subject"), ("from=x", "whole number")]
)
def test_wrong_fields_are_told_of(page: Page, dashboard: DashboardProcess, name: str, query: str, told: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/messages?{query}")

    expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()


def test_work_queue_is_browsed_without_a_consumer(page: Page, dashboard: DashboardProcess, url: str) -> None:
    config = {"name": "QUEUE", "subjects": ["queue"], "retention": "workqueue", "num_replicas": 1}
    ask_server(url, ("STREAM.CREATE.QUEUE", config))
    store(url, ("queue", b"job"))

    page.goto(f"{dashboard.url}/streams/QUEUE/messages")

    expect(page.locator("tbody tr")).to_contain_text("job")
    assert ask_server(url, ("STREAM.INFO.QUEUE", None))[0]["state"]["consumer_count"] == 0


def test_message_is_shown_as_json_text_and_hex(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, (f"{name}.a", b'{"n":[1,2]}', {"Trace": "t-1"}))
    page.goto(f"{dashboard.url}/streams/{name}/messages/1")
    payload = page.get_by_role("region", name="Payload")
    expect(payload).to_contain_text('"n": [')
    expect(page.get_by_text("t-1")).to_be_visible()

    page.get_by_role("link", name="Hex").click()

    expect(payload).to_contain_text("7b 22 6e 22")
    page.get_by_role("link", name="Text").click()
    expect(payload).to_have_text('{"n":[1,2]}')


def test_device_event_is_decoded(page: Page, dashboard: DashboardProcess, url: str) -> None:
    event = events.DeviceMetadataUpdated(device_id="11111111-1111-4111-8111-111111111111")
    encoded = EventCodec().encode(event)
    create_stream(url, "EVENTS", "events.>")
    store(url, (encoded.subject, encoded.payload))
    page.goto(f"{dashboard.url}/streams/EVENTS/messages/1")

    expect(page.get_by_role("region", name="Payload")).to_contain_text("devicemetadataupdated")

    page.get_by_role("link", name="Hex").click()
    expect(page.get_by_role("region", name="Payload")).to_contain_text("00000000")


def test_large_payload_is_cut_and_downloaded_whole(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    whole = b"x" * 1_000_000
    store(url, (f"{name}.big", whole))
    page.goto(f"{dashboard.url}/streams/{name}/messages/1")
    expect(page.get_by_text("Only the beginning is shown")).to_be_visible()

    with page.expect_download() as begun:
        page.get_by_role("link", name="Download").click()

    assert begun.value.path().read_bytes() == whole
    page.goto(f"{dashboard.url}/streams/{name}/messages")
    expect(page.locator("tbody tr")).to_contain_text("976.6 KiB")


def test_hostile_subjects_headers_and_payloads_are_text(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    store(
        url,
        (f"{name}.{HOSTILE}", HOSTILE.encode(), {"X": HOSTILE}),
        (f"{name}.control", b"\x00\x07\x1b[31m\xff\xfe"),
        (f"{name}.json", b'{"a":"</pre><script>alert(3)</script>"}'),
    )
    for path in ("/subjects", f"/subjects?prefix={name}", "/messages", "/messages/1", "/messages/2", "/messages/3"):
        page.goto(f"{dashboard.url}/streams/{name}{path}")
        expect(page.get_by_role("navigation", name="Pages of the stream")).to_be_visible()
        assert page.locator("main img, main script").count() == 0, path
    page.goto(f"{dashboard.url}/streams/{name}/messages/1")
    expect(page.get_by_role("region", name="Payload")).to_have_text(HOSTILE)
    expect(page.locator("dd", has_text=HOSTILE)).to_have_count(2)
    page.goto(f"{dashboard.url}/streams/{name}/messages/2?as=text")
    expect(page.get_by_role("region", name="Payload")).to_contain_text("\N{SYMBOL FOR NULL}")


def test_tail_shows_new_messages_as_text(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, (f"{name}.before", b"old"))
    page.goto(f"{dashboard.url}/streams/{name}/tail")
    expect(page.get_by_text("Waiting for messages")).to_be_visible()

    store(url, (f"{name}.{HOSTILE}", b"new " + HOSTILE.encode()))

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text(f"new {HOSTILE}")
    assert page.locator("main img, main script").count() == 0


def test_tail_can_be_filtered_paused_and_continued(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/tail")
    page.get_by_label("Subject").fill(f"{name}.wanted")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("Waiting for messages")).to_be_visible()

    store(url, (f"{name}.other", b"1"), (f"{name}.wanted", b"2"))

    expect(page.get_by_text("1 messages.")).to_be_visible()
    expect(page.locator("tbody tr")).to_contain_text(f"{name}.wanted")
    page.keyboard.press("p")
    expect(page.get_by_text("Paused after 1 messages")).to_be_visible()
    store(url, (f"{name}.wanted", b"while paused"))
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("1 messages.", exact=True)).to_be_visible()
    store(url, (f"{name}.wanted", b"after"))
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tbody tr").first).to_contain_text("after")
    assert ask_server(url, (f"STREAM.INFO.{name}", None))[0]["state"]["consumer_count"] == 0


def test_fast_tail_shows_some_and_counts_the_rest(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/tail")
    expect(page.get_by_text("Waiting for messages")).to_be_visible()

    # Nobody waits between two of them: a disk that is slow would make them come slowly enough to be shown.
    publish(url, *[(f"{name}.a", b"")] * 1500)

    expect(page.locator("[data-tail-state]")).to_contain_text("more came too fast to be shown")
    assert page.locator("tbody tr").count() <= 200


def test_tail_refuses_pages_of_other_sites(page: Page, dashboard: DashboardProcess, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/tail")
    address = f"{dashboard.url}/streams/{name}/tail/live"
    handshake = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}

    answer = page.request.get(address, headers={**handshake, "Origin": "http://evil.example"})

    assert answer.status == 403


def test_empty_stream_says_what_to_do(page: Page, dashboard: DashboardProcess, name: str) -> None:
    for path in ("/messages", "/subjects"):
        page.goto(f"{dashboard.url}/streams/{name}{path}")
        expect(page.get_by_role("heading", name="No messages yet")).to_be_visible()
        expect(page.get_by_text(f"jetlake pub '{name}.>' hello")).to_be_visible()


def test_pages_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    store(url, *[(f"{name}.eu.paris", b'{"order": 1}', {"Trace": "1"})] * 3)
    for path in ("", "/subjects", "/messages", "/messages/1", "/tail"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{dashboard.url}/streams/{name}{path}")
        if path == "/subjects":
            page.locator("summary", has_text=name).click()
            expect(page.locator("summary", has_text="eu")).to_be_visible()
        check_accessible(page)
        check_fits_a_phone(page)
