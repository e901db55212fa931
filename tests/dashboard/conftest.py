"""Fixtures of the dashboard's tests: a server of each kind, a dashboard as a process, and a Chromium that is there.

All tests here are synchronous: Playwright's blocking interface keeps an event loop in the thread of the tests.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from jetlake.cli.app import main
from jetlake.client.access import Access
from jetlake.client.api import open_api
from tests.compatibility import fixtures
from tests.conftest import NO_CHROMIUM, find_chromium
from tests.forked_process import ForkedProcess

own_environment, server_kind, url = fixtures.own_environment, fixtures.server_kind, fixtures.url
start_server = fixtures.start_server

START_S_MAX = 60.0
"""How long a dashboard may take to say that it is ready, on a machine that is busy with other tests."""

WAIT_MS = 60_000
"""How long a page may take to show something, on such a machine."""

PHONE_WIDTH = 390

POLL_MS = 20
"""Between two looks at a page."""

READY = "Dashboard is ready at "

HIDDEN_UNTIL_READY = """
const cover = new CSSStyleSheet();
cover.replaceSync(":root { visibility: hidden }");
document.adoptedStyleSheets.push(cover);
document.addEventListener("DOMContentLoaded", () => setTimeout(() => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== cover);
}));
"""
"""Playwright waits for what cannot be seen: on a busy machine a button is there before the script that answers it."""

COLOUR_RULES = ["color-contrast", "link-in-text-block"]
"""What axe finds by colours; everything else is the same in the dark."""

expect.set_options(timeout=WAIT_MS)


def pytest_configure(config: pytest.Config) -> None:
    fixtures.register_markers(config)


class DashboardProcess:
    """One `jetlake dashboard` started by a test."""

    def __init__(self, server_url: str, folder: Path, *flags: str, program: Sequence[str] = ()) -> None:
        self._output_path = folder / f"dashboard-{time.monotonic_ns()}.log"
        words = ["dashboard", "--port", "0", "--server", server_url, *flags]
        self.process: ForkedProcess | subprocess.Popen[bytes]
        if program:
            with self._output_path.open("wb") as output:
                command = [sys.executable, *program, *words]
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        else:
            self.process = ForkedProcess(main, ["jetlake", *words], Path.cwd(), self._output_path)
        try:
            self._wait_until_ready()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_S_MAX
        while READY not in self.output() or "Ctrl-C" not in self.output():
            assert self.process.poll() is None, f"did not start:\n{self.output()}"
            assert time.monotonic() < deadline, f"did not start in time:\n{self.output()}"
            time.sleep(0.01)

    def output(self) -> str:
        return self._output_path.read_text()

    @property
    def entry_url(self) -> str:
        """The address that the terminal shows."""
        line = next(line for line in self.output().splitlines() if READY in line)
        return line.partition(READY)[2].strip()

    @property
    def url(self) -> str:
        return self.entry_url.partition("/enter")[0]

    def stop(self) -> int:
        """End it as Ctrl-C does, and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(START_S_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def ask_server(access: Access | str, *requests: tuple[str, Any]) -> list[dict[str, Any]]:
    """Send requests of JetStream's API, in a thread of their own."""

    async def work() -> list[dict[str, Any]]:
        async with open_api(access) as api:
            return [await api.request(request, body) for request, body in requests]

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work()).result()


def publish(access: Access | str, *messages: tuple[str, bytes]) -> None:
    """Publish messages and wait until the server has them."""

    async def work() -> None:
        async with open_api(access) as api:
            for subject, payload in messages:
                await api.connection.publish(subject, payload)
            await api.flush()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work()).result()


def create_stream(access: Access | str, name: str, *subjects: str) -> None:
    config = {"name": name, "subjects": list(subjects) or [f"{name.lower()}.>"], "num_replicas": 1}
    ask_server(access, (f"STREAM.CREATE.{name}", config))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for all tests of this folder."""
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    with sync_playwright() as playwright:
        # All pages in one process: a new one for each test costs as much as the page.
        arguments = ["--no-sandbox", "--renderer-process-limit=1"]
        launched = playwright.chromium.launch(executable_path=path, args=arguments)
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """One window for all tests of this folder: Chromium takes longer to open one than most tests take in it."""
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(WAIT_MS)
    made.add_init_script(HIDDEN_UNTIL_READY)
    # A window stays for as long as it has a page.
    made.new_page()
    yield made
    made.close()


@pytest.fixture
def page(window: BrowserContext) -> Iterator[Page]:
    """A page without a past, in which no script fails, the policy refuses nothing, and no other host is asked."""
    made = window.new_page()
    origins: set[str] = set()
    wrong: list[str] = []

    def note_request(sent: Request) -> None:
        if "//127.0.0.1:" not in sent.url:
            wrong.append(f"another host: {sent.url}")
        address = urlsplit(sent.url)
        origins.add(f"{address.scheme}://{address.netloc}")

    made.on("pageerror", lambda error: wrong.append(f"script failed: {error}"))
    made.on("console", lambda told: wrong.append(told.text) if "Content Security Policy" in told.text else None)
    made.on("dialog", lambda dialog: (wrong.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
    made.on("request", note_request)
    yield made
    window.clear_cookies()
    developer_tools = window.new_cdp_session(made)
    for origin in origins:
        developer_tools.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
    made.close()
    assert not wrong, wrong


@pytest.fixture(scope="module")
def dashboard(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardProcess]:
    """A dashboard of the server that the tests of a file share."""
    started = DashboardProcess(url, tmp_path_factory.mktemp("dashboard"))
    yield started
    started.stop()


@pytest.fixture
def start_dashboard(tmp_path: Path) -> Iterator[Callable[..., DashboardProcess]]:
    """A function that starts further dashboards, stopped when the test ends."""
    started: list[DashboardProcess] = []

    def start(server_url: str, *flags: str, **options: Any) -> DashboardProcess:
        started.append(DashboardProcess(server_url, tmp_path, *flags, **options))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def press_shortcut(page: Page, first: str, second: str) -> None:
    """Press two keys on a visible page; they belong together however long a busy machine takes between them."""
    page.evaluate("Date.now = () => 1_767_225_600_000")
    page.keyboard.press(first)
    page.keyboard.press(second)


def search_for(page: Page, text: str) -> None:
    """Go to the search with its key, and type; a page that is not yet visible does not let it have the focus."""
    field = page.locator("#search")
    expect(field).to_be_visible()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type(text)


def check_accessible(page: Page) -> None:
    """Have axe look at a page as it is now: at all of it in light colours, and at the colours again in dark ones."""
    # Colours that are still changing have no contrast yet.
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = Axe().run(page).response["violations"]
    page.emulate_media(color_scheme="dark")
    found += page.evaluate("rules => axe.run({ runOnly: rules })", COLOUR_RULES)["violations"]
    page.emulate_media(color_scheme="light")
    assert not found, [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found]


def check_fits_a_phone(page: Page) -> None:
    """Nothing is wider than the screen."""
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 844})
    # A chart takes its new width a moment later. The page's policy forbids Playwright to look more than once by itself.
    deadline = time.monotonic() + WAIT_MS / 1000
    while (width := page.evaluate("document.documentElement.scrollWidth")) > PHONE_WIDTH:
        assert time.monotonic() < deadline, f"{width} pixels wide"
        page.wait_for_timeout(POLL_MS)
