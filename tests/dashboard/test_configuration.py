"""The configuration page: a declaration becomes a diff, and after a word the server is so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import (
    DashboardProcess,
    ask_server,
    check_accessible,
    check_fits_a_phone,
    create_stream,
)
from tests.dashboard.stream_samples import store

DECLARATION = """
project: {project}
streams:
  {name}:
    subjects: [{name}.>]
    max_age: {age}
    consumers:
      worker: {{ack_wait: 1m}}
"""


def plan(page: Page, dashboard: DashboardProcess, text: str) -> None:
    page.goto(f"{dashboard.url}/configuration")
    page.get_by_label("Declaration").fill(text)
    page.get_by_role("button", name="Plan").click()


def declared(name: str, age: str = "30d") -> str:
    return DECLARATION.format(project=name.lower(), name=name, age=age)


def streams(url: str) -> list[str]:
    return list(ask_server(url, ("STREAM.NAMES", None))[0].get("streams") or [])


def apply(page: Page, word: str) -> None:
    page.get_by_role("button", name="Apply…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill(word)
    dialog.get_by_role("button", name="Apply", exact=True).click()


def test_plan_shows_a_diff_and_changes_nothing(page: Page, dashboard: DashboardProcess, url: str) -> None:
    plan(page, dashboard, declared("SHOWN"))

    expect(page.locator(".plan-diff")).to_contain_text("+ stream SHOWN")
    expect(page.locator(".plan-diff")).to_contain_text("+ consumer SHOWN/worker")
    expect(page.locator(".plan-diff")).to_contain_text("2 to create")
    assert "SHOWN" not in streams(url)
    check_accessible(page)
    check_fits_a_phone(page)


def test_plan_is_applied_after_the_word(page: Page, dashboard: DashboardProcess, url: str) -> None:
    plan(page, dashboard, declared("APPLIED"))

    apply(page, "apply")

    expect(
        page.get_by_text("Applied 2 changes: create stream APPLIED, create consumer APPLIED/worker.")
    ).to_be_visible()
    assert ask_server(url, ("CONSUMER.INFO.APPLIED.worker", None))[0]["config"]["ack_wait"] == 60_000_000_000
    plan(page, dashboard, declared("APPLIED"))
    expect(page.locator(".plan-diff")).to_contain_text("Nothing to do, 2 unchanged.")
    expect(page.get_by_role("button", name="Apply…")).to_have_count(0)


def test_wrong_word_changes_nothing(page: Page, dashboard: DashboardProcess, url: str) -> None:
    plan(page, dashboard, declared("GUARDED"))
    page.get_by_role("button", name="Apply…").click()
    dialog = page.get_by_role("dialog")

    dialog.get_by_role("textbox").fill("yes")
    page.evaluate("document.querySelector('dialog [type=submit]').disabled = false")
    dialog.get_by_role("button", name="Apply", exact=True).click()

    expect(page.get_by_text("Nothing was changed: type apply to confirm.")).to_be_visible()
    assert "GUARDED" not in streams(url)


def test_plan_that_destroys_asks_for_another_word(page: Page, dashboard: DashboardProcess, url: str) -> None:
    plan(page, dashboard, declared("LOST"))
    apply(page, "apply")
    expect(page.get_by_text("Applied 2 changes")).to_be_visible()
    store(url, ("LOST.new", b"hello"))
    plan(page, dashboard, "project: lost\n")
    page.get_by_label("Remove what the project no longer declares").check()
    page.get_by_role("button", name="Plan").click()
    expect(page.locator(".diff-remove").first).to_contain_text("LOST")

    apply(page, "apply and destroy")

    expect(page.get_by_text("Applied")).to_be_visible()
    assert "LOST" not in streams(url)


def test_plan_is_refused_if_the_server_has_changed_since(page: Page, dashboard: DashboardProcess, url: str) -> None:
    plan(page, dashboard, declared("RACED"))
    expect(page.locator(".plan-diff")).to_contain_text("RACED")
    create_stream(url, "RACED", "RACED.>")

    apply(page, "apply")

    expect(page.get_by_text("the server has changed since this plan was made", exact=False)).to_be_visible()


def test_file_is_read_instead_of_the_text(page: Page, dashboard: DashboardProcess, tmp_path: Path) -> None:
    path = tmp_path / "shop.toml"
    path.write_text('[streams.FROM_FILE]\nsubjects = ["from.file"]\n')
    page.goto(f"{dashboard.url}/configuration")

    page.get_by_label("Or a file").set_input_files(path)
    page.get_by_role("button", name="Plan").click()

    expect(page.locator(".plan-diff")).to_contain_text("+ stream FROM_FILE")
    assert (page.locator("#plan [data-copy]").get_attribute("data-copy") or "").startswith("jetlake plan shop.toml")


def test_python_is_never_run(page: Page, dashboard: DashboardProcess, tmp_path: Path) -> None:
    path = tmp_path / "evil.py"
    path.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef resources(): return {{}}\n")
    page.goto(f"{dashboard.url}/configuration")

    page.get_by_label("Or a file").set_input_files(path)
    page.get_by_role("button", name="Plan").click()

    expect(page.get_by_text("evil.py cannot be read: its name must end in")).to_be_visible()
    assert not (tmp_path / "ran").exists()


def test_declaration_sees_no_variable_of_the_machine(page: Page, dashboard: DashboardProcess) -> None:
    plan(page, dashboard, 'streams:\n  LEAK: {subjects: [leak.>], description: "${HOME}"}\n')

    expect(page.get_by_role("alert")).to_contain_text("${HOME} has no value")


@pytest.mark.parametrize("text", ["streams: [", "strems:\n  A: {subjects: [a]}\n", "just text", "\x00\x01"])
def test_mistake_is_told_with_its_line(page: Page, dashboard: DashboardProcess, text: str) -> None:
    plan(page, dashboard, text)

    expect(page.get_by_role("alert")).to_contain_text("declaration.yaml")


def test_names_that_look_like_html_are_text(page: Page, dashboard: DashboardProcess) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    plan(page, dashboard, f"streams:\n  HOSTILE: {{subjects: [h.>], description: '{hostile}'}}\n")

    expect(page.locator(".plan-diff")).to_contain_text(hostile)
    assert page.locator("#plan img").count() == 0


def test_read_only_dashboard_refuses_plans(
    page: Page, url: str, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    dashboard = start_dashboard(url, "--read-only")
    page.goto(f"{dashboard.url}/configuration")
    expect(page.get_by_text("This dashboard is read-only")).to_be_visible()
    expect(page.get_by_role("button", name="Plan")).to_have_count(0)
    token = page.evaluate("JSON.parse(document.body.getAttribute('hx-headers'))['X-Form-Token']")

    answers = [
        page.request.post(
            f"{dashboard.url}{path}", headers={"Origin": dashboard.url, "X-Form-Token": token}, form={"text": "x"}
        )
        for path in ("/configuration", "/configuration/plans/x/apply")
    ]

    assert [answer.status for answer in answers] == [403, 403]
    assert "read-only" in answers[0].text()
