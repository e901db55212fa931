"""Objects in the browser: up and down in pieces, details, delete."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from jetlake.client.access import Access
from jetlake.client.api import Api
from jetlake.errors import NotFoundError
from jetlake.objects.config import StoreConfig
from jetlake.objects.info import ObjectInfo
from jetlake.objects.stores import Stores
from tests.compatibility.server_process import ServerProcess
from tests.dashboard.conftest import DashboardProcess, ask_server, check_accessible, check_fits_a_phone
from tests.dashboard.features import HOSTILE, confirm, do, post

_numbers = itertools.count(1)

LARGE_BYTES = 40 * 1024 * 1024
"""More than the windows of an upload hold, so that it cannot pass without being sent on."""

MEMORY_KIB_MAX = 150 * 1024
"""What a dashboard may take, with a transfer."""

USERS = """
port: -1
authorization {
  users: [
    {user: ada, password: secret}
    {user: reader, password: secret, permissions: {publish: {deny: ["$O.>"]}}}
  ]
}
jetstream { store_dir: "STORE" }
"""


def put(url: Access | str, store: str, name: str, content: bytes) -> None:
    async def work(api: Api) -> None:
        await (await Stores(api).open(store)).put(name, content, description="Firmware", metadata={"board": "r4"})

    do(url, work)


def info_of(url: str, store: str, name: str) -> ObjectInfo:
    async def work(api: Api) -> ObjectInfo:
        return await (await Stores(api).open(store)).info(name)

    return do(url, work)


def content_of(url: str, store: str, name: str) -> bytes:
    async def work(api: Api) -> bytes:
        return await (await Stores(api).open(store)).get(name)

    return do(url, work)


def peak_memory_kib(process_id: int) -> int:
    lines = Path(f"/proc/{process_id}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.fixture
def store(url: str) -> str:
    """An object store that no other test uses."""
    name = f"FILES_{next(_numbers)}"

    async def work(api: Api) -> None:
        await Stores(api).create(StoreConfig(store=name, description="Of the gateways"))

    do(url, work)
    return name


def test_list_leads_to_stores_and_their_empty_state(page: Page, dashboard: DashboardProcess, store: str) -> None:
    page.goto(f"{dashboard.url}/objects?filter={store}")
    expect(page.get_by_role("row").filter(has_text="Of the gateways")).to_contain_text(store)

    page.get_by_role("link", name=store, exact=True).click()

    expect(page.get_by_role("heading", name="No objects yet")).to_be_visible()
    expect(page.get_by_text(f"jetlake object put {store} FILE")).to_be_visible()


def test_file_goes_up_and_comes_down_again(
    page: Page, dashboard: DashboardProcess, url: str, store: str, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 10_000
    (tmp_path / "firmware.bin").write_bytes(content)
    page.goto(f"{dashboard.url}/objects/{store}")

    page.get_by_label("File").set_input_files(tmp_path / "firmware.bin")
    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_text(f"Stored object firmware.bin of {store}: 2.4 MiB.")).to_be_visible()
    assert content_of(url, store, "firmware.bin") == content
    with page.expect_download() as started:
        page.get_by_role("link", name="Download firmware.bin").click()
    started.value.save_as(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert started.value.suggested_filename == "firmware.bin"


def test_large_file_passes_in_pieces(
    page: Page, dashboard: DashboardProcess, url: str, store: str, tmp_path: Path
) -> None:
    content = hashlib.sha256(b"").digest() * (LARGE_BYTES // 32)
    (tmp_path / "large").write_bytes(content)
    page.goto(f"{dashboard.url}/objects/{store}")
    page.get_by_label("Name").fill("renamed.bin")
    page.get_by_label("File").set_input_files(tmp_path / "large")

    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_text(f"Stored object renamed.bin of {store}: 40.0 MiB.")).to_be_visible()
    assert info_of(url, store, "renamed.bin").size == LARGE_BYTES
    with page.expect_download() as started:
        page.get_by_role("link", name="Download renamed.bin").click()
    started.value.save_as(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert peak_memory_kib(dashboard.process.pid) < MEMORY_KIB_MAX


def test_upload_shows_how_much_is_sent_and_can_be_stopped(
    page: Page, dashboard: DashboardProcess, url: str, store: str, tmp_path: Path
) -> None:
    (tmp_path / "slow").write_bytes(b"x" * LARGE_BYTES)
    page.goto(f"{dashboard.url}/objects/{store}")
    # A slow line, so that there is something to see and to stop.
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 4 * 1024 * 1024},
    )
    page.get_by_label("File").set_input_files(tmp_path / "slow")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text("% sent")).to_be_visible()

    page.get_by_role("button", name="Stop").click()

    expect(page.get_by_text("Not stored.")).to_be_visible()
    with pytest.raises(NotFoundError):
        info_of(url, store, "slow")
    assert "Traceback" not in dashboard.output()


def test_details_of_an_object_are_shown(page: Page, dashboard: DashboardProcess, url: str, store: str) -> None:
    put(url, store, "firmware.bin", b"x" * 3_000_000)
    page.goto(f"{dashboard.url}/objects/{store}")

    page.get_by_role("link", name="firmware.bin", exact=True).click()

    expect(page.get_by_text("2.9 MiB (3,000,000 bytes)")).to_be_visible()
    expect(page.get_by_text("SHA-256=")).to_be_visible()
    expect(page.get_by_text("Metadata board")).to_be_visible()
    copy = page.get_by_role("button", name="Copy download command")
    expect(copy).to_have_attribute("data-copy", f"jetlake object get {store} firmware.bin --server {url}")


def test_delete_asks_for_the_name_first(page: Page, dashboard: DashboardProcess, url: str, store: str) -> None:
    put(url, store, "firmware.bin", b"x")
    page.goto(f"{dashboard.url}/objects/{store}")
    page.get_by_role("button", name="Delete firmware.bin").click()

    confirm(page, "firmware.bin", "Delete")

    expect(page.get_by_text(f"Deleted object firmware.bin of {store}.")).to_be_visible()
    with pytest.raises(NotFoundError):
        info_of(url, store, "firmware.bin")


def test_open_list_shows_objects_that_others_put(page: Page, dashboard: DashboardProcess, url: str, store: str) -> None:
    page.goto(f"{dashboard.url}/objects/{store}")
    expect(page.get_by_role("heading", name="No objects yet")).to_be_visible()

    put(url, store, "put-by-others.bin", b"x")

    expect(page.get_by_role("rowheader", name="put-by-others.bin")).to_be_visible()


def test_objects_are_listed_in_pages_and_found_by_name(
    page: Page, dashboard: DashboardProcess, url: str, store: str
) -> None:
    async def work(api: Api) -> None:
        opened = await Stores(api).open(store)
        for number in range(30):
            await opened.put(f"part-{number:02}", b"x")

    do(url, work)
    page.goto(f"{dashboard.url}/objects/{store}")
    expect(page.get_by_text("1\N{EN DASH}25 of 30 objects")).to_be_visible()

    page.get_by_role("searchbox", name="Filter by name").fill("PART-29")

    expect(page.get_by_role("rowheader")).to_have_count(1)


@pytest.mark.parametrize("name", [HOSTILE, "../../etc/passwd", "line\nbreak \x1b[31m\x07", "größer / ☃", "n" * 300])
def test_hostile_name_is_only_a_name(
    page: Page, dashboard: DashboardProcess, url: str, store: str, tmp_path: Path, name: str
) -> None:
    put(url, store, name, b"<script>alert(1)</script>")
    page.goto(f"{dashboard.url}/objects/{store}")
    expect(page.get_by_role("rowheader")).to_have_count(1)
    assert page.locator("main img, main script").count() == 0
    with page.expect_download() as started:
        page.get_by_role("link", name="Download").click()
    started.value.save_as(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"<script>alert(1)</script>"
    assert "/" not in started.value.suggested_filename
    page.get_by_role("rowheader").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Details")).to_be_visible()

    page.get_by_role("button", name="Delete").click()
    word = page.get_by_role("dialog").locator("strong").text_content() or ""
    confirm(page, word, "Delete")

    expect(page.get_by_role("heading", name="No objects yet")).to_be_visible()


def test_download_of_an_object_that_has_lost_a_chunk_fails(
    page: Page, dashboard: DashboardProcess, url: str, store: str
) -> None:
    put(url, store, "damaged.bin", b"x" * 5_000_000)
    chunk = info_of(url, store, "damaged.bin").nuid
    found = ask_server(url, (f"STREAM.MSG.GET.OBJ_{store}", {"last_by_subj": f"$O.{store}.C.{chunk}"}))
    ask_server(url, (f"STREAM.MSG.DELETE.OBJ_{store}", {"seq": found[0]["message"]["seq"]}))
    page.goto(f"{dashboard.url}/objects/{store}")

    with page.expect_download() as started:
        page.get_by_role("link", name="Download damaged.bin").click()

    assert started.value.failure()
    assert "damaged.bin of" in dashboard.output()
    assert "Traceback" not in dashboard.output()
    expect(page.get_by_role("rowheader", name="damaged.bin")).to_be_visible()


def test_form_without_a_file_and_with_a_name_that_is_too_long_are_refused(
    page: Page, dashboard: DashboardProcess, store: str
) -> None:
    page.goto(f"{dashboard.url}/objects/{store}")
    send = """async ([path, name]) => {
      const token = JSON.parse(document.body.getAttribute("hx-headers"))["X-Form-Token"];
      const body = new FormData();
      body.append("name", name);
      if (name.length > 1) body.append("file", new Blob(["x"]), "x");
      const headers = { "X-Form-Token": token, "HX-Request": "true" };
      const answer = await fetch(path, { method: "POST", body, headers });
      return [answer.status, await answer.text()];
    }"""

    assert "No file was chosen" in page.evaluate(send, [f"/objects/{store}/upload", ""])[1]
    assert "The name is too long" in page.evaluate(send, [f"/objects/{store}/upload", "n" * 5_000])[1]
    assert "The form has no file" in post(page, f"/objects/{store}/upload", name="x")[1]
    assert "does not exist" in page.evaluate(send, ["/objects/NOWHERE/upload", "x"])[1]


def test_read_only_dashboard_refuses_every_change(
    page: Page, start_dashboard: Callable[..., DashboardProcess], url: str, store: str
) -> None:
    put(url, store, "kept.bin", b"x")
    page.goto(f"{start_dashboard(url, '--read-only').url}/objects/{store}")
    expect(page.get_by_role("rowheader", name="kept.bin")).to_be_visible()
    expect(page.get_by_role("button", name="Upload")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete kept.bin")).to_have_count(0)

    assert post(page, f"/objects/{store}/upload", name="new.bin")[0] == 403
    assert post(page, f"/objects/{store}/delete?name=kept.bin", confirmation="kept.bin")[0] == 403
    assert content_of(url, store, "kept.bin") == b"x"


def test_user_who_may_not_write_is_told_at_once(
    page: Page,
    start_server: Callable[..., ServerProcess],
    start_dashboard: Callable[..., DashboardProcess],
    tmp_path: Path,
) -> None:
    server = start_server(config=USERS.replace("STORE", str(tmp_path / "store")))

    async def work(api: Api) -> None:
        await Stores(api).create("FILES")

    do(Access(url=server.url, user="ada", password="secret"), work)
    page.goto(f"{start_dashboard(server.url).url}/objects/FILES")
    page.get_by_role("textbox", name="User").fill("reader")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Log in", exact=True).click()
    page.get_by_label("File").set_input_files({"name": "a", "mimeType": "text/plain", "buffer": b"hello"})

    page.get_by_role("button", name="Upload").click()

    expect(page.get_by_role("alert").filter(has_text="may not publish to $O.FILES.")).to_be_visible()


def test_pages_are_accessible_and_fit_a_phone(page: Page, dashboard: DashboardProcess, url: str, store: str) -> None:
    put(url, store, "n" * 200, b"x")
    for path in (f"/objects?filter={store}", f"/objects/{store}", f"/objects/{store}/object?name={'n' * 200}"):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(dashboard.url + path)
        check_accessible(page)
        check_fits_a_phone(page)
