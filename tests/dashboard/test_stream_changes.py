"""The pages of one stream that change something: publish, edit, purge, delete; and their refusal in read-only mode."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jetlake.client.access import Access
from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import (
    DashboardProcess,
    ask_server,
    check_accessible,
    check_fits_a_phone,
    create_stream,
)
from tests.dashboard.features import POST
from tests.dashboard.stream_samples import create_consumer, store, stream_info

USERS = """
authorization {
  users: [
    {user: ada, password: secret}
    {user: guest, password: secret, permissions: {publish: {deny: ["own.>", "$JS.API.STREAM.MSG.GET.>"]}}}
  ]
}
jetstream { store_dir: "STORE" }
"""

_numbers = itertools.count(1)


@pytest.fixture
def name(url: str) -> str:
    """A stream that no other test uses, with six messages: a, b, a, b, a, b."""
    made = f"C{next(_numbers)}"
    create_stream(url, made, f"{made}.>")
    store(url, *[(f"{made}.{'ab'[number % 2]}", b"%d" % number) for number in range(6)])
    return made


def confirm(page: Page, word: str, button: str) -> None:
    """Type the word of the dialog that is open, and press its button."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("to confirm").fill(word)
    dialog.get_by_role("button", name=button).click()


def test_publish_stores_a_message_with_headers(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/publish")
    expect(page.get_by_label("Subject")).to_have_value(f"{name}.")

    page.get_by_label("Subject").fill(f"{name}.new")
    page.get_by_label("Headers").fill("Trace: t-1\nOther: a: b")
    page.get_by_label("Payload").fill("hello\nworld")
    page.get_by_role("button", name="Publish").click()

    expect(page.get_by_text(f"Stored message 7 on subject {name}.new.")).to_be_visible()
    expect(page.get_by_role("region", name="Payload")).to_have_text("hello\nworld")
    expect(page.get_by_text("a: b")).to_be_visible()


@pytest.mark.parametrize(
    ("subject", "headers", "told"),
    [
        ("{name}.>", "", "cannot be published to"),
        ("elsewhere.x", "", "is not listening on subject 'elsewhere.x'"),
        ("{name}.x", "no colon", "is not a header"),
    ],
)
def test_publish_that_cannot_work_keeps_the_form(
    page: Page, dashboard: DashboardProcess, url: str, name: str, subject: str, headers: str, told: str
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/publish")

    page.get_by_label("Subject").fill(subject.format(name=name))
    page.get_by_label("Headers").fill(headers)
    page.get_by_label("Payload").fill("kept")
    page.get_by_role("button", name="Publish").click()

    expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()
    expect(page.get_by_label("Payload")).to_have_value("kept")
    assert stream_info(url, name)["state"]["messages"] == 6


def test_edit_shows_what_changes_before_it_does(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/edit")
    page.get_by_label("Age at most", exact=True).fill("7d")
    page.get_by_label("Messages at most", exact=True).fill("1000")
    page.get_by_role("button", name="Preview", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("unlimited \N{RIGHTWARDS ARROW} 7d")
    expect(dialog.get_by_role("button", name="Copy as command")).to_have_attribute(
        "data-copy", f"jetlake stream edit {name} --max-age 7d --max-msgs 1000 --server {url}"
    )
    assert stream_info(url, name)["config"]["max_msgs"] == -1

    confirm(page, name, "Apply")

    expect(page.get_by_text(f"Changed stream {name}.")).to_be_visible()
    config = stream_info(url, name)["config"]
    assert config["max_age"] == 7 * 86_400 * 10**9
    assert config["max_msgs"] == 1000
    assert config["subjects"] == [f"{name}.>"]


def test_edit_as_json_changes_everything_else(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/edit")
    page.get_by_text("All settings as JSON").click()
    field = page.get_by_label("Configuration")

    field.fill(field.input_value().replace('"allow_direct": false', '"allow_direct": true'))
    page.get_by_role("button", name="Preview the JSON").click()

    expect(page.get_by_role("dialog")).to_contain_text("no \N{RIGHTWARDS ARROW} yes")
    confirm(page, name, "Apply")
    expect(page.get_by_text(f"Changed stream {name}.")).to_be_visible()
    assert stream_info(url, name)["config"]["allow_direct"] is True


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [("Size at most", "much", "Size at most is 'much'"), ("Description", "", "nothing changes")],
)
def test_edit_that_cannot_work_is_told_of(
    page: Page, dashboard: DashboardProcess, name: str, field: str, value: str, told: str
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/edit")

    page.get_by_label(field, exact=True).fill(value)
    page.get_by_role("button", name="Preview", exact=True).click()

    expect(page.get_by_role("alert").filter(has_text=told)).to_be_visible()


def test_edit_does_not_undo_what_others_have_changed(
    page: Page, dashboard: DashboardProcess, url: str, name: str
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}/edit")
    page.get_by_label("Age at most", exact=True).fill("7d")
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    ask_server(url, (f"STREAM.UPDATE.{name}", stream_info(url, name)["config"] | {"max_msgs": 77}))

    confirm(page, name, "Apply")

    expect(page.get_by_role("alert").filter(has_text="has been changed since the preview")).to_be_visible()
    assert stream_info(url, name)["config"]["max_msgs"] == 77
    assert stream_info(url, name)["config"]["max_age"] == 0


@pytest.mark.parametrize(
    ("fields", "lost"),
    [
        ({"Only this subject": "{name}.a"}, 3),
        ({"Only before sequence": "5"}, 4),
        ({"Or keep the newest": "2"}, 4),
        ({"Only this subject": "{name}.b", "Only before sequence": "5"}, 2),
        ({"Only this subject": "{name}.b", "Or keep the newest": "1"}, 2),
    ],
)
def test_purge_says_how_many_messages_go(
    page: Page, dashboard: DashboardProcess, url: str, name: str, fields: dict[str, str], lost: int
) -> None:
    page.goto(f"{dashboard.url}/streams/{name}")
    page.get_by_role("button", name="Purge").click()
    for label, value in fields.items():
        page.get_by_label(label).fill(value.format(name=name))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"{lost} of 6")

    confirm(page, name, "Purge")

    expect(page.get_by_text(f"Purged {lost} messages of stream {name}.")).to_be_visible()
    state = stream_info(url, name)["state"]
    assert state["messages"] == 6 - lost
    assert state["consumer_count"] == 0


def test_purge_of_a_work_queue_says_at_most(page: Page, dashboard: DashboardProcess, url: str) -> None:
    config = {"name": "JOBS", "subjects": ["jobs"], "retention": "workqueue", "num_replicas": 1}
    ask_server(url, ("STREAM.CREATE.JOBS", config))
    store(url, *[("jobs", b"")] * 3)
    page.goto(f"{dashboard.url}/streams/JOBS")

    page.get_by_role("button", name="Purge").click()
    page.get_by_label("Only before sequence").fill("3")
    page.get_by_role("button", name="Preview").click()

    expect(page.get_by_role("dialog")).to_contain_text("at most 3")


def test_delete_goes_back_to_the_list(page: Page, dashboard: DashboardProcess, url: str, name: str) -> None:
    page.goto(f"{dashboard.url}/streams/{name}")
    page.get_by_role("button", name="Delete").click()

    confirm(page, name, "Delete")

    expect(page.get_by_text(f"Deleted stream {name}.")).to_be_visible()
    assert name not in (ask_server(url, ("STREAM.NAMES", None))[0].get("streams") or [])


def test_read_only_mode_hides_and_refuses_every_action(
    page: Page, url: str, name: str, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    create_consumer(url, name, "worker")
    before = stream_info(url, name)
    dashboard = start_dashboard(url, "--read-only")
    page.goto(f"{dashboard.url}/streams/{name}")
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Purge")).to_have_count(0)
    expect(page.get_by_role("link", name="Publish")).to_have_count(0)

    fields = {"confirmation": name, "subject": f"{name}.x", "payload": "x", "name": "new", "until": "10m"}
    for path in (
        "publish", "edit", "edit/preview", "purge", "delete", "create-consumer", "consumers/worker/pause",
        "consumers/worker/resume", "consumers/worker/reset", "consumers/worker/delete",
    ):  # fmt: skip
        status, told = page.evaluate(POST, [f"/streams/{name}/{path}", fields])
        assert (status, "read-only" in told) == (403, True), path

    after = stream_info(url, name)
    assert (after["state"], after["config"]) == (before["state"], before["config"])


def test_permissions_of_the_user_decide(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: Path,
) -> None:
    server = start_server(config=USERS.replace("STORE", str(tmp_path / "store")))
    ada = Access(url=server.url, user="ada", password="secret")
    create_stream(ada, "OWN", "own.>")
    store(ada, ("own.a", b"here"))
    page.goto(f"{start_dashboard(server.url).url}/streams/OWN/publish")
    page.get_by_label("User", exact=True).fill("guest")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in", exact=True).click()

    page.get_by_label("Subject").fill("own.a")
    page.get_by_role("button", name="Publish").click()

    expect(page.get_by_role("alert").filter(has_text="Your user may not publish to own.a")).to_be_visible()
    page.get_by_role("link", name="Messages").click()
    expect(page.get_by_role("alert").filter(has_text="may not publish to $JS.API.STREAM.MSG.GET.OWN")).to_be_visible()
    assert stream_info(ada, "OWN")["state"]["messages"] == 1


def test_forms_and_dialogs_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, name: str) -> None:
    for path in ("publish", "edit"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{dashboard.url}/streams/{name}/{path}")
        check_accessible(page)
        check_fits_a_phone(page)
    page.goto(f"{dashboard.url}/streams/{name}")
    page.get_by_role("button", name="Purge").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    check_accessible(page)
    check_fits_a_phone(page)
