"""Key-value buckets in the browser: keys in pages, values, revisions, and every change to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jetlake.client.access import Access
from jetlake.client.api import Api
from jetlake.errors import NotFoundError
from jetlake.kv.bucket import BucketStatus
from jetlake.kv.buckets import Buckets
from jetlake.kv.config import BucketConfig
from jetlake.kv.entry import Entry
from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import DashboardProcess, check_accessible, check_fits_a_phone
from tests.dashboard.features import HOSTILE, confirm, do, post

_numbers = itertools.count(1)

USERS = """
port: -1
authorization {
  users: [
    {user: ada, password: secret}
    {user: reader, password: secret, permissions: {publish: {deny: ["$KV.>"]}}}
  ]
}
jetstream { store_dir: "STORE" }
"""


def put(url: Access | str, bucket: str, *pairs: tuple[str, bytes]) -> None:
    async def work(api: Api) -> None:
        opened = await Buckets(api).open(bucket)
        for key, value in pairs:
            await opened.put(key, value)

    do(url, work)


def history_of(url: str, bucket: str, key: str) -> list[Entry[bytes]]:
    async def work(api: Api) -> list[Entry[bytes]]:
        return await (await Buckets(api).open(bucket)).history(key)

    return do(url, work)


def value_of(url: str, bucket: str, key: str) -> bytes | None:
    async def work(api: Api) -> bytes | None:
        return (await (await Buckets(api).open(bucket)).get(key)).value

    return do(url, work)


@pytest.fixture
def bucket(url: str) -> str:
    """A bucket that no other test uses, with one key that has two revisions."""
    name = f"CONFIG_{next(_numbers)}"

    async def work(api: Api) -> None:
        made = await Buckets(api).create(BucketConfig(bucket=name, history=5, description="Settings"))
        await made.put("web.settings", b'{"port": 8080}')
        await made.put("web.settings", b'{"port": 8081}')

    do(url, work)
    return name


def test_list_shows_buckets_and_leads_to_their_keys(page: Page, dashboard: DashboardProcess, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv?filter={bucket}")
    expect(page.get_by_role("row").filter(has_text="Settings")).to_contain_text(bucket)

    page.get_by_role("link", name=bucket, exact=True).click()

    expect(page.get_by_role("row").filter(has_text="web.settings")).to_contain_text('{"port": 8081}')


def test_bucket_is_created_as_the_form_says(page: Page, dashboard: DashboardProcess, url: str) -> None:
    name = f"CREATED_{next(_numbers)}"
    page.goto(f"{dashboard.url}/kv")
    page.get_by_role("button", name="Create bucket").click()
    dialog = page.get_by_role("dialog")

    dialog.get_by_label("Name").fill(name)
    dialog.get_by_label("Revisions kept of each key").fill("7")
    dialog.get_by_label("Values expire after").fill("1h")
    dialog.get_by_label("Largest value").fill("1KiB")
    dialog.get_by_label("Storage").select_option("memory")
    check_accessible(page)
    dialog.get_by_role("button", name="Create", exact=True).click()

    expect(page.get_by_text(f"Created bucket {name}.")).to_be_visible()
    expect(page.get_by_role("heading", name="No keys yet")).to_be_visible()

    async def status(api: Api) -> BucketStatus:
        return await Buckets(api).status(name)

    config = do(url, status).config
    assert (config.history, config.ttl_s, config.max_value_bytes, config.storage) == (7, 3600.0, 1024, "memory")


def test_bucket_that_cannot_be_is_refused_with_a_reason(page: Page, dashboard: DashboardProcess) -> None:
    page.goto(f"{dashboard.url}/kv")

    assert "Invalid bucket name" in post(page, "/new-bucket", bucket=HOSTILE)[1]
    assert "is not a time" in post(page, "/new-bucket", bucket="A", ttl="soon")[1]
    assert "keeps 1 to 64 revisions" in post(page, "/new-bucket", bucket="A", history="100")[1]


def test_keys_are_read_in_pages_and_found_by_prefix_and_pattern(
    page: Page, dashboard: DashboardProcess, url: str, bucket: str
) -> None:
    put(url, bucket, *[(f"line{number % 3}.machine{number}.limit", b"1") for number in range(60)])
    page.goto(f"{dashboard.url}/kv/{bucket}")
    expect(page.get_by_text("1\N{EN DASH}25 of 61 keys")).to_be_visible()

    page.get_by_role("link", name="Last").click()
    expect(page.get_by_text("51\N{EN DASH}61 of 61 keys")).to_be_visible()
    page.get_by_role("searchbox", name="Filter by prefix").fill("line1.")
    expect(page.get_by_text("of 20 keys")).to_be_visible()
    page.get_by_role("searchbox", name="Filter by prefix").fill("line1.machine4.")
    expect(page.get_by_text("1\N{EN DASH}1 of 1 keys")).to_be_visible()
    page.get_by_role("searchbox", name="Filter by prefix").fill("*.machine5.*")

    expect(page.get_by_role("rowheader", name="line2.machine5.limit")).to_be_visible()
    expect(page.get_by_role("rowheader")).to_have_count(1)


def test_open_list_shows_keys_that_others_put(page: Page, dashboard: DashboardProcess, url: str, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}")
    expect(page.get_by_role("rowheader")).to_have_count(1)

    put(url, bucket, ("put.by.others", b"hello"))

    expect(page.get_by_role("row").filter(has_text="put.by.others")).to_contain_text("hello")


def test_value_is_shown_as_json_text_and_hex(page: Page, dashboard: DashboardProcess, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")
    expect(page.get_by_role("region", name="Payload")).to_contain_text('"port": 8081')

    page.get_by_role("link", name="Hex").click()

    expect(page.get_by_role("region", name="Payload")).to_contain_text("00000000  7b 22 70 6f 72 74")
    expect(page.get_by_role("link", name="Hex")).to_have_attribute("aria-current", "true")


def test_two_revisions_are_compared_line_by_line(page: Page, dashboard: DashboardProcess, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")
    expect(page.get_by_role("region", name="Table of revisions").get_by_role("rowheader")).to_have_count(2)

    page.get_by_role("button", name="Compare").click()

    compared = page.get_by_role("region", name="Revision 1 compared with 2")
    expect(compared.locator(".removed")).to_have_text('-  "port": 8080\n')
    expect(compared.locator(".added")).to_have_text('+  "port": 8081\n')
    check_accessible(page)


def test_earlier_revision_can_be_looked_at(page: Page, dashboard: DashboardProcess, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")

    page.get_by_role("rowheader").get_by_role("link", name="1", exact=True).click()

    expect(page.get_by_role("region", name="Payload")).to_contain_text('"port": 8080')


def test_put_stores_the_edited_value(page: Page, dashboard: DashboardProcess, url: str, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")
    page.get_by_text("Change the value").click()

    page.get_by_role("textbox", name="Value", exact=True).fill('{"port": 9000,\n"name": "größer"}')
    page.get_by_role("button", name="Put").click()

    expect(page.get_by_text(f"Put web.settings of bucket {bucket}: revision 3.")).to_be_visible()
    assert value_of(url, bucket, "web.settings") == '{"port": 9000,\n"name": "größer"}'.encode()


def test_put_with_an_old_revision_changes_nothing(
    page: Page, dashboard: DashboardProcess, url: str, bucket: str
) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")
    page.get_by_text("Change the value").click()
    put(url, bucket, ("web.settings", b"by somebody else"))

    page.get_by_role("textbox", name="Value", exact=True).fill("mine")
    page.get_by_role("button", name="Put").click()

    notice = page.get_by_role("alert").filter(has_text="was changed by another client")
    expect(notice).to_contain_text("its last revision is 3, not 2")
    assert value_of(url, bucket, "web.settings") == b"by somebody else"


def test_new_key_is_put_only_if_it_has_no_value(page: Page, dashboard: DashboardProcess, url: str, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}")
    page.get_by_text("Put a key").click()
    page.get_by_label("Key", exact=True).fill("web.color")
    page.get_by_role("textbox", name="Value", exact=True).fill("62 6c 75 65")
    page.get_by_label("Format").select_option("hex")
    page.get_by_label("Expected revision").fill("0")
    page.get_by_role("button", name="Put").click()
    expect(page.get_by_text(f"Put web.color of bucket {bucket}: revision 3.")).to_be_visible()

    status, text = post(page, f"/kv/{bucket}/put", key="web.color", payload="red", format="text", expected_revision="0")

    assert (status, "exists already" in text) == (400, True)
    assert value_of(url, bucket, "web.color") == b"blue"


def test_key_that_cannot_be_is_refused_with_a_reason(page: Page, dashboard: DashboardProcess, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}")

    status, text = post(page, f"/kv/{bucket}/put", key=HOSTILE, payload="1", format="text")

    assert status == 400
    assert "Invalid key" in text
    assert "<img" not in text


def test_delete_asks_for_the_key_and_keeps_the_history(
    page: Page, dashboard: DashboardProcess, url: str, bucket: str
) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}")
    page.get_by_role("button", name="Delete web.settings").click()
    expect(page.get_by_role("dialog")).to_contain_text("Its earlier revisions stay")
    copy = page.get_by_role("dialog").get_by_role("button", name="Copy as command")
    expect(copy).to_have_attribute("data-copy", f"jetlake kv del {bucket} web.settings --server {url}")

    confirm(page, "web.settings", "Delete")

    expect(page.get_by_text(f"Deleted web.settings of bucket {bucket}.")).to_be_visible()
    assert [entry.operation.value for entry in history_of(url, bucket, "web.settings")] == ["PUT", "PUT", "DEL"]


def test_purge_removes_the_history(page: Page, dashboard: DashboardProcess, url: str, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")
    page.get_by_role("button", name="Purge").click()

    confirm(page, "web.settings", "Purge")

    expect(page.get_by_text(f"Purged web.settings of bucket {bucket}.")).to_be_visible()
    assert [entry.operation.value for entry in history_of(url, bucket, "web.settings")] == ["PURGE"]


def test_key_that_was_changed_since_the_preview_is_not_deleted(
    page: Page, dashboard: DashboardProcess, url: str, bucket: str
) -> None:
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=web.settings")
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    put(url, bucket, ("web.settings", b"new"))

    confirm(page, "web.settings", "Delete")

    expect(page.get_by_role("alert").filter(has_text="was changed by another client")).to_be_visible()
    assert value_of(url, bucket, "web.settings") == b"new"


def test_hostile_keys_and_values_are_shown_as_text(
    page: Page, dashboard: DashboardProcess, url: str, bucket: str
) -> None:
    hostile_key = "x.<img/src=x/onerror=alert(1)>"

    async def work(api: Api) -> None:
        # No client writes such a key, but nothing keeps others from it.
        await api.connection.request(f"$KV.{bucket}.{hostile_key}", HOSTILE.encode())

    do(url, work)
    values = [("a.html", HOSTILE.encode()), ("b.bytes", b"\xff\xfe\x00"), ("c.control", b"a\x1b[31mb\x07")]
    put(url, bucket, *values)
    page.goto(f"{dashboard.url}/kv/{bucket}")
    expect(page.get_by_role("rowheader", name=hostile_key)).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="a.html")).to_contain_text(HOSTILE)
    expect(page.get_by_role("row").filter(has_text="b.bytes")).to_contain_text("ff fe 00")

    for key, _ in values:
        page.goto(f"{dashboard.url}/kv/{bucket}/key?key={key}&as=text")
        expect(page.get_by_role("region", name="Payload")).to_be_visible()
    page.get_by_role("link", name=bucket, exact=True).click()
    page.get_by_role("link", name=hostile_key).click()

    expect(page.get_by_role("alert").filter(has_text="invalid key")).to_be_visible()
    assert page.locator("main img, main script").count() == 0


def test_large_value_is_cut_on_the_page_and_downloaded_whole(
    page: Page, dashboard: DashboardProcess, url: str, bucket: str, tmp_path: Path
) -> None:
    large = b"0123456789" * 100_000
    put(url, bucket, ("large", large))
    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=large")
    expect(page.get_by_text("Only the beginning is shown.")).to_be_visible()
    page.get_by_text("Change the value").click()
    expect(page.get_by_text("too large to be edited here")).to_be_visible()

    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()

    started.value.save_as(tmp_path / "value")
    assert (tmp_path / "value").read_bytes() == large
    assert started.value.suggested_filename == "large"


def test_bucket_and_key_that_are_not_there_are_named(page: Page, dashboard: DashboardProcess, bucket: str) -> None:
    page.goto(f"{dashboard.url}/kv/NOWHERE")
    expect(page.get_by_text("Bucket NOWHERE does not exist")).to_be_visible()

    page.goto(f"{dashboard.url}/kv/{bucket}/key?key=nothing")

    expect(page.get_by_text(f"Key 'nothing' of bucket {bucket} does not exist")).to_be_visible()


def test_read_only_dashboard_refuses_every_change(
    page: Page, start_dashboard: Callable[..., DashboardProcess], url: str, bucket: str
) -> None:
    page.goto(f"{start_dashboard(url, '--read-only').url}/kv/{bucket}")
    expect(page.get_by_role("rowheader", name="web.settings")).to_be_visible()
    expect(page.get_by_role("button", name="Delete web.settings")).to_have_count(0)
    expect(page.get_by_text("Put a key")).to_have_count(0)

    answers = [
        post(page, "/new-bucket", bucket="NEW"),
        post(page, f"/kv/{bucket}/put", key="web.settings", payload="1", format="text"),
        post(page, f"/kv/{bucket}/delete?key=web.settings&revision=2", confirmation="web.settings"),
        post(page, f"/kv/{bucket}/purge?key=web.settings&revision=2", confirmation="web.settings"),
    ]

    assert [status for status, _ in answers] == [403] * 4
    assert len(history_of(url, bucket, "web.settings")) == 2

    async def open_new(api: Api) -> None:
        await Buckets(api).open("NEW")

    with pytest.raises(NotFoundError):
        do(url, open_new)


def test_user_who_may_not_write_is_told_at_once(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: Path,
) -> None:
    server = start_server(config=USERS.replace("STORE", str(tmp_path / "store")))
    ada = Access(url=server.url, user="ada", password="secret")

    async def work(api: Api) -> None:
        await (await Buckets(api).create("CONFIG")).put("color", b"red")

    do(ada, work)
    page.goto(f"{start_dashboard(server.url).url}/kv/CONFIG/key?key=color")
    page.get_by_role("textbox", name="User").fill("reader")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in", exact=True).click()
    expect(page.get_by_role("region", name="Payload")).to_have_text("red")
    page.get_by_text("Change the value").click()

    page.get_by_role("button", name="Put").click()

    expect(page.get_by_role("alert").filter(has_text="may not publish to $KV.CONFIG.color")).to_be_visible()


def test_pages_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, url: str, bucket: str) -> None:
    put(url, bucket, ("a" * 200, b"x" * 500))
    for path in (f"/kv?filter={bucket}", f"/kv/{bucket}", f"/kv/{bucket}/key?key=web.settings&before=1&after=2"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(dashboard.url + path)
        page.evaluate("document.querySelectorAll('details.more').forEach((each) => { each.open = true; })")
        check_accessible(page)
        check_fits_a_phone(page)
