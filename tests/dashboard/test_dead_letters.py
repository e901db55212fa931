"""Dead letters in the browser: groups by cause, one letter, edit, redrive and delete, with the rules of `jetlake dead`.

Jetlake writes its letters itself. nats-server writes none, and keeps headers as they come: there the tests publish
letters as a restored stream would hold them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from jetlake.client.api import Api
from jetlake.client.dead_letters import OPTION, DeadLetters
from tests.dashboard.conftest import DashboardProcess, ask_server, check_accessible, check_fits_a_phone
from tests.dashboard.features import HOSTILE, confirm, do, post

_numbers = itertools.count(1)

WAIT_S_MAX = 60.0


class Streams:
    """A stream whose consumer gives messages up, and the one that keeps them."""

    def __init__(self, url: str, kind: str) -> None:
        number = next(_numbers)
        self.url, self.kind = url, kind
        self.dead, self.jobs, self.subject = f"DEAD_{number}", f"JOBS_{number}", f"jobs{number}"
        # Each stream of dead letters takes those of one stream, so that several can be on one server.
        keeper = {"name": self.dead, "subjects": [f"dead.{self.jobs}.>"], "num_replicas": 1}
        jobs = {
            "name": self.jobs,
            "subjects": [f"{self.subject}.>"],
            "metadata": {OPTION: self.dead},
            "num_replicas": 1,
        }
        worker = {"stream_name": self.jobs, "config": {"durable_name": "worker", "ack_policy": "explicit"}}
        ask_server(
            url,
            (f"STREAM.CREATE.{self.dead}", keeper),
            (f"STREAM.CREATE.{self.jobs}", jobs),
            (f"CONSUMER.CREATE.{self.jobs}.worker", worker),
        )

    def give_up(self, *letters: tuple[str, bytes, str]) -> None:
        """Have the consumer give messages up: token of the subject, payload and reason of each."""
        do(self.url, lambda api: self._give_up(api, letters))

    async def _give_up(self, api: Api, letters: tuple[tuple[str, bytes, str], ...]) -> None:
        count = await self._count(api)
        worker = await api.connection.jetstream().pull_subscribe_bind("worker", self.jobs)
        for token, payload, reason in letters:
            subject = f"{self.subject}.{token}"
            answer = await api.connection.request(subject, payload, headers={"Kind": "job"})
            sequence = json.loads(answer.data)["seq"]
            if self.kind == "jetlake":
                (pulled,) = await worker.fetch(1, timeout=WAIT_S_MAX)
                await api.connection.publish(pulled.reply, b"+TERM " + reason.encode())
            else:
                own = {"Stream": self.jobs, "Consumer": "worker", "Subject": subject, "Sequence": str(sequence)}
                own |= {"Reason": reason, "Deliveries": "1"}
                headers = {f"Jetlake-Dead-{name}": value for name, value in own.items()} | {"Kind": "job"}
                await api.connection.request(f"dead.{self.jobs}.worker.{subject}", payload, headers=headers)
        deadline = asyncio.get_running_loop().time() + WAIT_S_MAX
        while await self._count(api) < count + len(letters):
            assert asyncio.get_running_loop().time() < deadline
            await asyncio.sleep(0.05)

    async def _count(self, api: Api) -> int:
        return int((await api.request(f"STREAM.INFO.{self.dead}"))["state"]["messages"])

    def letters(self) -> list[tuple[str, bytes]]:
        async def work(api: Api) -> list[tuple[str, bytes]]:
            async with DeadLetters(api, self.dead) as dead:
                return [(letter.original_subject, letter.payload) for letter in await dead.all()]

        return do(self.url, work)

    def last_job(self) -> tuple[str, bytes, dict[str, str]]:
        async def work(api: Api) -> tuple[str, bytes, dict[str, str]]:
            stored = await api.connection.jetstream().get_last_msg(self.jobs, f"{self.subject}.>")
            return stored.subject or "", stored.data or b"", dict(stored.headers or {})

        return do(self.url, work)


@pytest.fixture
def streams(url: str, server_kind: str) -> Streams:
    """Streams that no other test uses, with three letters of two causes."""
    made = Streams(url, server_kind)
    made.give_up(
        ("a", b'{"image": 1}', "image too large: 8000 pixels"),
        ("b", b'{"image": 2}', "image too large: 9000 pixels"),
        ("c", b"\xff\x00", "unknown format"),
    )
    return made


def test_letters_are_grouped_by_stream_consumer_and_cause(
    page: Page, dashboard: DashboardProcess, streams: Streams
) -> None:
    page.goto(f"{dashboard.url}/dead?filter={streams.dead}")
    page.get_by_role("link", name=streams.dead, exact=True).click()
    expect(page.get_by_role("rowheader")).to_have_text(["image too large: # pixels", "unknown format"])
    first = page.get_by_role("row").filter(has_text="too large")
    expect(first).to_contain_text(streams.jobs)
    expect(first.locator('[data-label="Letters"]')).to_have_text("2")

    page.get_by_role("link", name="image too large: # pixels").click()

    expect(page.get_by_text("image too large: 9000 pixels")).to_be_visible()
    expect(page.get_by_role("rowheader")).to_have_text(["1", "2"])


def test_open_page_shows_letters_that_come_later(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}")
    expect(page.get_by_role("rowheader")).to_have_count(2)

    streams.give_up(("d", b"x", "no disk space"))

    expect(page.get_by_role("rowheader", name="no disk space")).to_be_visible()


def test_letter_shows_payload_and_headers(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/1")

    expect(page.get_by_role("region", name="Payload")).to_contain_text('"image": 1')
    expect(page.get_by_text("image too large: 8000 pixels").first).to_be_visible()
    page.get_by_text("Headers").click()
    expect(page.get_by_text("Kind", exact=True)).to_be_visible()
    copy = page.get_by_role("button", name="Copy redrive command")
    expect(copy).to_have_attribute("data-copy", f"jetlake dead redrive {streams.dead} 1 --server {streams.url}")


def test_redrive_publishes_the_message_again_and_removes_the_letter(
    page: Page, dashboard: DashboardProcess, streams: Streams
) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/3")
    expect(page.get_by_role("region", name="Payload")).to_contain_text("ff 00")

    page.get_by_role("button", name="Redrive", exact=True).click()

    expect(page.get_by_text(f"Redrove letter 3 to {streams.subject}.c: {streams.jobs} has it as 4.")).to_be_visible()
    subject, payload, headers = streams.last_job()
    assert (subject, payload, headers["Kind"]) == (f"{streams.subject}.c", b"\xff\x00", "job")
    assert len(streams.letters()) == 2


def test_edited_letter_is_redriven_with_the_new_payload(
    page: Page, dashboard: DashboardProcess, streams: Streams
) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/1")
    page.get_by_text("Edit and redrive").click()

    page.get_by_role("textbox", name="Payload").fill('{"image": 1, "fixed": true}')
    page.get_by_label("Format").select_option("json")
    page.get_by_role("button", name="Redrive edited").click()

    expect(page.get_by_text(f"Redrove letter 1 to {streams.subject}.a")).to_be_visible()
    assert streams.last_job()[:2] == (f"{streams.subject}.a", b'{"image": 1, "fixed": true}')


def test_group_is_redriven_after_a_preview(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}")
    page.get_by_role("button", name="Redrive image too large").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("Redrive 2 dead letters")
    copy = dialog.get_by_role("button", name="Copy as command")
    expect(copy).to_have_attribute("data-copy", f"jetlake dead redrive {streams.dead} 1 2 --server {streams.url}")
    # A letter that comes after the preview is not part of it.
    streams.give_up(("d", b"x", "image too large: 1 pixels"))

    confirm(page, streams.dead, "Redrive")

    expect(page.get_by_text(f"Redrove 2 letters of {streams.dead}.")).to_be_visible()
    assert [subject for subject, _ in streams.letters()] == [f"{streams.subject}.c", f"{streams.subject}.d"]


def test_letter_whose_stream_does_not_listen_any_more_stays(
    page: Page, dashboard: DashboardProcess, streams: Streams
) -> None:
    changed = {"name": streams.jobs, "subjects": ["elsewhere." + streams.subject], "num_replicas": 1}
    ask_server(streams.url, (f"STREAM.UPDATE.{streams.jobs}", changed))
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/1")

    page.get_by_role("button", name="Redrive", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="is not listening on")).to_be_visible()
    page.goto(f"{dashboard.url}/dead/{streams.dead}")
    page.get_by_role("button", name="Redrive image too large").click()
    confirm(page, streams.dead, "Redrive")

    expect(page.get_by_text(f"Redrove 0 letters of {streams.dead}. 2 stay where they are")).to_be_visible()
    assert len(streams.letters()) == 3


def test_letter_of_a_client_is_shown_and_not_redriven(
    page: Page, dashboard: DashboardProcess, streams: Streams
) -> None:
    async def work(api: Api) -> None:
        own = {"Stream": streams.jobs, "Consumer": "service", "Subject": "$JS.API.STREAM.DELETE.X", "Sequence": "1"}
        headers = {f"Jetlake-Client-Dead-{name}": value for name, value in own.items()}
        await api.connection.request(f"dead.{streams.jobs}.service.x", b"x", headers=headers)

    do(streams.url, work)
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/4")
    expect(page.get_by_text("a client, so it is not redriven")).to_be_visible()
    expect(page.get_by_role("button", name="Redrive", exact=True)).to_have_count(0)

    _, text = post(page, f"/dead/{streams.dead}/letter/4/redrive")

    assert "was written by a client and not by the server" in text
    assert len(streams.letters()) == 4


def test_one_letter_is_deleted_after_the_word(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/2")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("all that is left of its message")

    confirm(page, streams.dead, "Delete")

    expect(page.get_by_text(f"Deleted dead letter 2 of {streams.dead}.")).to_be_visible()
    assert [subject for subject, _ in streams.letters()] == [f"{streams.subject}.a", f"{streams.subject}.c"]


def test_group_is_deleted_after_the_word(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}")
    page.get_by_role("button", name="Delete image too large").click()
    check_accessible(page)

    confirm(page, streams.dead, "Delete")

    expect(page.get_by_text(f"Deleted 2 letters of {streams.dead}.")).to_be_visible()
    assert [subject for subject, _ in streams.letters()] == [f"{streams.subject}.c"]


def test_hostile_letters_are_shown_as_text(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    streams.give_up(("<img/src=x/onerror=alert(1)>", HOSTILE.encode(), HOSTILE), ("large", b"x" * 900_000, "large"))
    page.goto(f"{dashboard.url}/dead/{streams.dead}")
    expect(page.get_by_role("rowheader").filter(has_text="onerror=alert")).to_be_visible()

    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/4")
    expect(page.get_by_role("region", name="Payload")).to_have_text(HOSTILE)
    page.goto(f"{dashboard.url}/dead/{streams.dead}/letter/5")

    expect(page.get_by_text("Only the beginning is shown.")).to_be_visible()
    expect(page.get_by_text("Edit and redrive")).to_have_count(0)
    assert page.locator("main img, main script").count() == 0


def test_what_is_not_there_is_named(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    for path, sentence in (
        ("/dead/NOWHERE", "There is no stream NOWHERE"),
        (f"/dead/{streams.dead}/letter/99", f"{streams.dead} has no dead letter 99"),
        (f"/dead/{streams.dead}/group/none", "This group has no letters any more"),
    ):
        page.goto(dashboard.url + path)
        expect(page.get_by_text(sentence)).to_be_visible()


def test_read_only_dashboard_refuses_every_change(
    page: Page, start_dashboard: Callable[..., DashboardProcess], streams: Streams
) -> None:
    page.goto(f"{start_dashboard(streams.url, '--read-only').url}/dead/{streams.dead}")
    expect(page.get_by_role("button", name="Redrive image too large")).to_have_count(0)
    group = (page.get_by_role("link", name="unknown format").get_attribute("href") or "").rpartition("/")[2]

    answers = [
        post(page, f"/dead/{streams.dead}/letter/1/redrive"),
        post(page, f"/dead/{streams.dead}/letter/1/delete", confirmation=streams.dead),
        post(page, f"/dead/{streams.dead}/group/{group}/redrive?last=9", confirmation=streams.dead),
        post(page, f"/dead/{streams.dead}/group/{group}/delete?last=9", confirmation=streams.dead),
    ]

    assert [status for status, _ in answers] == [403] * 4
    assert len(streams.letters()) == 3


def test_pages_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, streams: Streams) -> None:
    page.goto(f"{dashboard.url}/dead/{streams.dead}")
    group = page.get_by_role("link", name="unknown format").get_attribute("href")
    dead = f"/dead/{streams.dead}"
    for path in (f"/dead?filter={streams.dead}", dead, group, f"{dead}/letter/1"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{dashboard.url}{path}")
        page.evaluate("document.querySelectorAll('details.more').forEach((each) => { each.open = true; })")
        check_accessible(page)
        check_fits_a_phone(page)


def test_stream_without_letters_says_where_they_come_from(
    page: Page, dashboard: DashboardProcess, url: str, server_kind: str
) -> None:
    empty = Streams(url, server_kind)

    page.goto(f"{dashboard.url}/dead/{empty.dead}")

    expect(page.get_by_role("heading", name="No dead letters")).to_be_visible()
    command = page.get_by_text(f"jetlake stream edit JOBS --metadata jetlake.dead_letters={empty.dead}")
    expect(command).to_have_count(1 if server_kind == "jetlake" else 0)
