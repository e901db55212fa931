"""nats.js over WebSocket, in Chromium: with its own frames, compression, origins, cookies and certificates."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.clients.websocket_lines import EXPECTED_LINES, restartable
from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.websocket_wire import websocket_url
from tests.conftest import NO_CHROMIUM, find_chromium

WAIT_MS = 60_000
"""How long a page may take for its work, on a machine that is busy with other tests."""

pytestmark = pytest.mark.timeout(900)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing about it."""

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip(NO_CHROMIUM)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def origin(page_folder: Path) -> Iterator[str]:
    """Where the page comes from."""
    handler = functools.partial(QuietHandler, directory=str(page_folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        thread = threading.Thread(target=pages.serve_forever, name="pages")
        thread.start()
        yield f"http://127.0.0.1:{pages.server_port}"
        pages.shutdown()
        thread.join()


@pytest.fixture
def lines_of(browser: Browser, origin: str) -> Iterator[Callable[..., list[str]]]:
    """Open the page and return its lines; `on_line` is called when the page has said a certain line."""
    with browser.new_context(ignore_https_errors=True) as context:

        def run(url: str, on_line: tuple[str, Callable[[], None]] | None = None, **parameters: str) -> list[str]:
            page = context.new_page()
            page.goto(f"{origin}/browser.html?{urlencode({'url': url, **parameters})}")
            lines = page.locator("#lines")
            if on_line is not None:
                expect(lines).to_contain_text(on_line[0], timeout=WAIT_MS)
                on_line[1]()
            expect(lines).to_contain_text("end\n", timeout=WAIT_MS)
            *said, _ = lines.inner_text().splitlines()
            page.close()
            return said

        yield run


def config(keys: str, rest: str = "") -> str:
    return f'websocket {{ listen: "127.0.0.1:-1", {keys} }}\n{rest}'


@pytest.mark.parametrize("library", ["nats-core", "nats.ws"])
@pytest.mark.parametrize("keys", ["", "compress: true"])
def test_page_does_its_work(lines_of, start_server, tmp_path: Path, keys: str, library: str) -> None:
    start, url = restartable(start_server, tmp_path, keys)
    server: ServerProcess = start()

    def restart() -> None:
        server.stop()
        start(port=server.port)

    assert lines_of(url, ("ready to reconnect", restart), work="yes", library=library) == EXPECTED_LINES


def test_page_comes_in_only_from_an_allowed_origin(lines_of, start_server, origin: str) -> None:
    allowing = start_server(config=config(f'no_tls: true, allowed_origins: ["{origin}"]'))
    refusing = start_server(config=config('no_tls: true, allowed_origins: ["http://example.com"]'))
    same = start_server(config=config("no_tls: true, same_origin: true"))

    assert lines_of(websocket_url(allowing)) == ["connected"]
    assert lines_of(websocket_url(refusing))[0].startswith("failed ")
    assert lines_of(websocket_url(same))[0].startswith("failed ")
    refusing.wait_for_log("origin not allowed: not in the allowed list")


def test_page_logs_in_with_its_cookies(lines_of, start_server) -> None:
    # A browser sends the cookies of a host to all its ports.
    keys = 'no_tls: true, user_cookie: "nats_user", pass_cookie: "nats_pass"'
    by_token = 'no_tls: true, token_cookie: "nats_token"'
    users = start_server(config=config(keys, "authorization { user: ada, password: secret }"))
    token = start_server(config=config(by_token, "authorization { token: secret }"))

    assert lines_of(websocket_url(token)) == ["failed AuthorizationError"]
    assert lines_of(websocket_url(token), cookie="nats_token=secret") == ["connected"]
    assert lines_of(websocket_url(users))[0].startswith("failed ")
    lines_of(websocket_url(users), cookie="nats_user=ada")
    assert lines_of(websocket_url(users), cookie="nats_pass=secret") == ["connected"]


def test_page_speaks_over_tls(lines_of, start_server, tmp_path: Path) -> None:
    certificate = Authority(tmp_path).server()
    tls = f'tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}" }}'
    server = start_server(config=config(f"{tls}, compress: true"))

    assert lines_of(websocket_url(server)) == ["connected"]
