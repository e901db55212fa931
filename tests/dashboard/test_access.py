"""Who gets in, and what is refused: logins, hosts, origins, form tokens, read-only mode, permissions."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import nkeys
import pytest
from playwright.sync_api import Page, expect

from jetlake.client.access import Access
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.dashboard.conftest import DashboardProcess, ask_server, check_accessible, create_stream
from tests.operator import key_of, trusted

PACKAGE = Path(__file__).parents[2] / "src" / "jetlake" / "dashboard"

USERS = """
authorization {
  users: [
    {user: ada, password: secret}
    {user: guest, password: secret, permissions: {publish: {deny: ["$JS.API.STREAM.NAMES"]}}}
    {user: reader, password: secret, permissions: {publish: {deny: ["$JS.API.STREAM.DELETE.>"]}}}
  ]
}
jetstream { store_dir: "STORE" }
"""

ADA = {"user": "ada", "password": "secret"}


class Answer:
    """What came back, and the cookie in it."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.text = response.read().decode()

    @property
    def cookie(self) -> str:
        return self.headers.get("Set-Cookie", "").partition(";")[0]


def send(
    dashboard: DashboardProcess, verb: str, path: str, headers: dict[str, str] | None = None, /, **form: str
) -> Answer:
    """Send one request as no browser would."""
    connection = http.client.HTTPConnection(urlsplit(dashboard.url).netloc, timeout=60)
    body = urlencode(form) if form else None
    sent = {"Content-Type": "application/x-www-form-urlencoded"} if form else {}
    connection.request(verb, path, body, sent | (headers or {}))
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


def token_in(text: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', text)
    assert found is not None
    return found[1]


@pytest.fixture
def users(start_server: Callable[..., ServerProcess], tmp_path: Path) -> ServerProcess:
    """A server that demands a login."""
    return start_server(config=USERS.replace("STORE", f"{tmp_path}/store"))


def log_in(page: Page, user: str, password: str = "secret") -> None:
    page.get_by_role("textbox", name="User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in", exact=True).click()


def test_cookie_is_kept_from_scripts_and_from_other_sites(dashboard: DashboardProcess) -> None:
    answer = send(dashboard, "GET", "/")

    assert answer.status == 200
    assert "HttpOnly" in answer.headers["Set-Cookie"]
    assert "SameSite=Strict" in answer.headers["Set-Cookie"]


def test_policy_allows_nothing_inline_and_nothing_from_other_hosts(dashboard: DashboardProcess) -> None:
    policy = send(dashboard, "GET", "/").headers["Content-Security-Policy"]

    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_no_template_turns_escaping_off_or_names_another_host() -> None:
    for path in (PACKAGE / "templates").glob("*.html"):
        text = path.read_text()
        assert not re.search(r"\|\s*safe\b|autoescape|Markup|https?://|<style|style=|\son\w+=", text), path


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_name_of_another_site_is_refused(dashboard: DashboardProcess, host: str) -> None:
    assert send(dashboard, "GET", "/", {"Host": host}).status in (400, 421)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_change_from_another_site_is_refused(dashboard: DashboardProcess, url: str, origin: str) -> None:
    create_stream(url, f"KEEP{len(origin)}", f"keep.{len(origin)}")
    first = send(dashboard, "GET", "/")
    name = f"KEEP{len(origin)}"

    answer = send(
        dashboard,
        "POST",
        f"/streams/{name}/delete",
        {"Cookie": first.cookie, "Origin": origin} if origin else {"Cookie": first.cookie},
        form_token=token_in(first.text),
        confirmation=name,
    )

    assert answer.status == 403
    assert ask_server(url, (f"STREAM.INFO.{name}", None))


def test_change_without_the_token_of_the_session_is_refused(dashboard: DashboardProcess, url: str) -> None:
    create_stream(url, "TOKEN", "token")
    first, other = send(dashboard, "GET", "/"), send(dashboard, "GET", "/")
    headers = {"Cookie": first.cookie, "Origin": dashboard.url}

    for token in ("", token_in(other.text)):
        answer = send(dashboard, "POST", "/streams/TOKEN/delete", headers, form_token=token, confirmation="TOKEN")
        assert answer.status == 403

    right = token_in(first.text)
    answer = send(dashboard, "POST", "/streams/TOKEN/delete", headers, form_token=right, confirmation="TOKEN")
    assert answer.status == 303


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_browser_that_goes_in_the_middle_of_a_form_is_no_fault(
    start_dashboard: Callable[..., DashboardProcess], url: str, kind: str
) -> None:
    dashboard = start_dashboard(url)
    first = send(dashboard, "GET", "/")
    headers = {"Cookie": first.cookie, "Origin": dashboard.url, "Content-Type": kind, "Content-Length": "100"}
    connection = http.client.HTTPConnection(urlsplit(dashboard.url).netloc, timeout=60)
    connection.request("POST", "/streams/ANY/delete", b"--x\r\n", headers)
    # The request is being read by now: the dashboard has answered a later one.
    assert send(dashboard, "GET", "/", {"Cookie": first.cookie}).status == 200

    connection.close()

    assert send(dashboard, "GET", "/", {"Cookie": first.cookie}).status == 200
    assert dashboard.stop() == 0
    assert "Traceback" not in dashboard.output()


def test_change_without_a_session_leads_to_the_login(dashboard: DashboardProcess) -> None:
    answer = send(dashboard, "POST", "/streams/ANY/delete", {"Origin": dashboard.url}, confirmation="ANY")

    assert (answer.status, answer.headers["Location"][:6]) == (303, "/login")


@pytest.mark.parametrize(("origin", "status"), [("own", 101), ("http://evil.example", 403)])
def test_websocket_is_for_own_pages_only(dashboard: DashboardProcess, origin: str, status: int) -> None:
    cookie = send(dashboard, "GET", "/").cookie
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Cookie": cookie,
        "Origin": dashboard.url if origin == "own" else origin,
    }
    connection = http.client.HTTPConnection(urlsplit(dashboard.url).netloc, timeout=60)

    connection.request("GET", "/live", headers=headers)

    assert connection.getresponse().status == status
    connection.close()


def test_read_only_dashboard_refuses_what_its_pages_do_not_offer(
    page: Page, start_dashboard: Callable[..., DashboardProcess], url: str
) -> None:
    create_stream(url, "READONLY", "readonly")
    dashboard = start_dashboard(url, "--read-only")
    page.goto(f"{dashboard.url}/streams?filter=READONLY")
    expect(page.get_by_role("rowheader", name="READONLY")).to_be_visible()
    expect(page.get_by_role("button", name="Delete READONLY")).to_have_count(0)
    first = send(dashboard, "GET", "/")

    answer = send(
        dashboard,
        "POST",
        "/streams/READONLY/delete",
        {"Cookie": first.cookie, "Origin": dashboard.url},
        form_token=token_in(first.text),
        confirmation="READONLY",
    )

    assert answer.status == 403
    assert "This dashboard is read-only." in answer.text
    assert ask_server(url, ("STREAM.INFO.READONLY", None))


def test_user_logs_in_with_a_password_and_out_again(
    page: Page, users: ServerProcess, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    dashboard = start_dashboard(users.url)
    page.goto(f"{dashboard.url}/streams")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    check_accessible(page)

    log_in(page, "ada", "wrong")
    expect(page.get_by_role("alert")).to_have_text("The server rejected the login. Check what you have entered.")
    log_in(page, "ada")

    expect(page.get_by_role("heading", name="Streams", exact=True)).to_be_visible()
    expect(page.locator(".who-name")).to_have_text("ada")

    page.get_by_label("Session").click()
    page.get_by_role("button", name="Log out").click()

    expect(page.get_by_role("heading", name="You are logged out")).to_be_visible()
    page.goto(dashboard.url)
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_user_logs_in_with_a_token(
    page: Page, start_server: Callable[..., ServerProcess], start_dashboard: Callable[..., DashboardProcess]
) -> None:
    dashboard = start_dashboard(start_server(["--auth", "s3cret"]).url)
    page.goto(dashboard.url)

    page.get_by_text("Token", exact=True).first.click()
    page.get_by_label("Token").fill("s3cret")
    page.get_by_role("button", name="Log in with the token").click()

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def log_in_with_file(page: Page, content: bytes) -> None:
    page.get_by_text("Credentials file").click()
    page.get_by_label("File of your user").set_input_files(
        {"name": "ada.creds", "mimeType": "application/octet-stream", "buffer": content}
    )
    page.get_by_role("button", name="Log in with the file").click()


@pytest.mark.nats_server
def test_user_logs_in_with_a_credentials_file(
    page: Page, start_dashboard: Callable[..., DashboardProcess], tmp_path: Path
) -> None:
    user = trusted(bytes(key_of(nkeys.PREFIX_BYTE_USER, b"user").seed))
    config = f'{user.config}\njetstream {{ store_dir: "{tmp_path}/store" }}\n'
    # Jetlake knows no operators.
    server = start_server_process("nats-server", tmp_path, config=config)
    page.goto(start_dashboard(server.url).url)

    log_in_with_file(page, user.credentials)

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    server.stop()


def test_user_logs_in_with_the_seed_of_a_key(
    page: Page, start_server: Callable[..., ServerProcess], start_dashboard: Callable[..., DashboardProcess]
) -> None:
    key = key_of(nkeys.PREFIX_BYTE_USER, b"user")
    server = start_server(config=f"authorization {{ users: [ {{nkey: {key.public_key.decode()}}} ] }}")
    page.goto(start_dashboard(server.url).url)

    log_in_with_file(page, b"not a seed")
    expect(page.get_by_role("alert")).to_contain_text("The file holds no credentials of a user.")
    log_in_with_file(page, bytes(key.seed))

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_credentials_of_the_command_line_are_for_the_one_who_sees_the_terminal(
    page: Page, users: ServerProcess, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    dashboard = start_dashboard(users.url, "--user", "ada", "--password", "secret")
    assert send(dashboard, "GET", "/").status == 303
    assert send(dashboard, "GET", "/enter?key=guessed").status == 403

    page.goto(dashboard.entry_url)

    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    expect(page.locator(".who-name")).to_have_text("ada")


def test_open_server_is_not_served_to_other_machines(
    start_dashboard: Callable[..., DashboardProcess], url: str
) -> None:
    dashboard = start_dashboard(url, "--host", "0.0.0.0")
    assert send(dashboard, "GET", "/").status == 303

    form = {"method": "password", "user": "any", "password": "any"}
    answer = send(dashboard, "POST", "/login", {"Origin": dashboard.url}, **form)

    assert answer.status == 401
    assert "This server accepts every user" in answer.text


@pytest.mark.parametrize("address", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_login_leads_to_own_pages_only(
    users: ServerProcess, start_dashboard: Callable[..., DashboardProcess], address: str
) -> None:
    dashboard = start_dashboard(users.url)

    answer = send(dashboard, "POST", "/login", {"Origin": dashboard.url}, method="password", next=address, **ADA)

    assert (answer.status, answer.headers["Location"]) == (303, "/")


def test_user_without_a_permission_reads_which_one(
    page: Page, users: ServerProcess, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    page.goto(f"{start_dashboard(users.url).url}/streams")

    log_in(page, "guest")

    expect(page.get_by_role("alert").last).to_contain_text("Your user may not publish to $JS.API.STREAM.NAMES")


def test_server_refuses_an_action_that_the_user_may_not_do(
    page: Page, users: ServerProcess, start_dashboard: Callable[..., DashboardProcess]
) -> None:
    create_stream(Access(url=users.url, **ADA), "ORDERS")
    page.goto(f"{start_dashboard(users.url).url}/streams")
    log_in(page, "reader")
    page.get_by_role("button", name="Delete ORDERS").click()

    page.get_by_role("dialog").get_by_role("textbox").fill("ORDERS")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    notice = page.get_by_role("alert").filter(has_text="may not publish to $JS.API.STREAM.DELETE.ORDERS")
    expect(notice).to_be_visible()
    assert ask_server(Access(url=users.url, **ADA), ("STREAM.INFO.ORDERS", None))


def test_ctrl_c_ends_the_command(start_dashboard: Callable[..., DashboardProcess], url: str) -> None:
    dashboard = start_dashboard(url)
    send(dashboard, "GET", "/")

    assert dashboard.stop() == 0
    assert "Stopped" in dashboard.output()
    assert "Traceback" not in dashboard.output()


def test_taken_port_is_named(dashboard: DashboardProcess, url: str) -> None:
    port = str(urlsplit(dashboard.url).port)
    command = [sys.executable, "-m", "jetlake", "dashboard", "--port", port, "--server", url]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in ended.stderr
    assert "--port" in ended.stderr


def test_missing_extra_is_named_in_one_line() -> None:
    program = "import sys; sys.modules['jinja2'] = None; from jetlake.cli.app import main; sys.exit(main())"

    ended = subprocess.run(
        [sys.executable, "-c", program, "dashboard"], capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert ended.stderr.strip().splitlines() == [
        "jetlake dashboard: the dashboard needs the package jinja2: run `pip install 'jetlake[dashboard]'`"
    ]
