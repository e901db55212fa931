"""Who may come in over WebSocket: pages by their origin, clients by cookies, and by credentials of the block's own."""

from __future__ import annotations

import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_nkeys import PUBLIC, sign
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient, ask, websocket_address
from tests.compatibility.wire import RawClient

USERS = """
    authorization {
      users: [
        {user: ada, password: secret}
        {user: web, password: "", allowed_connection_types: [WEBSOCKET]}
        {user: wired, password: x, allowed_connection_types: [STANDARD]}
        {user: both, password: x, allowed_connection_types: [standard, websocket]}
        {user: bridge, password: x, allowed_connection_types: [MQTT]}
      ]
    }
"""

SHARED = "authorization { user: ada, password: secret }"

ACCOUNTS = """
    accounts {
      A { users: [{user: a, password: x}] }
      B { users: [{user: b, password: x}] }
    }
    no_auth_user: a
"""

COOKIES = 'user_cookie: "who", pass_cookie: "what", token_cookie: "pass"'


def expect_in(client: RawClient, **options: str) -> None:
    """Log in; a password is given as `password`."""
    client.connect(**_as_connect(options))


def expect_refused(client: RawClient, **options: str) -> None:
    client.send_connect(**_as_connect(options))
    client.expect_error("Authorization Violation")


def _as_connect(options: dict[str, str]) -> dict[str, str]:
    return {"pass" if name == "password" else name: value for name, value in options.items()}


# Origins


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("https://good.example", 101),
        ("https://good.example:443", 101),
        ("https://GOOD.example", 101),
        ("http://other.example:8080", 101),
        ("http://[::1]:9000", 101),
        ("http://good.example", 403),
        ("https://good.example:8443", 403),
        ("https://bad.example", 403),
        ("https://good.example.bad.example", 403),
        ("https://sub.good.example", 403),
        ("http://other.example", 403),
        ("null", 403),
        ("good.example", 403),
        ("https://", 403),
    ],
)
def test_page_must_come_from_an_allowed_origin(start_once, origin: str | None, status: int) -> None:
    origins = '["https://good.example", "http://other.example:8080", "http://[::1]:9000"]'
    server = start_once(websocket_config(f"allowed_origins: {origins}"))

    response = ask(server, {"Origin": origin})

    assert response.status == status
    if status == 403:
        assert response.status_line == "HTTP/1.1 403 Forbidden"
        assert response.headers["sec-websocket-version"] == "13"
        assert response.body == b"Forbidden\n"


def test_one_host_may_be_allowed_with_several_schemes_and_ports(start_once) -> None:
    origins = '["http://same.example", "https://same.example:8443", "https://same.example"]'
    server = start_once(websocket_config(f"allowed_origins: {origins}"))

    for origin in ("http://same.example", "https://same.example:8443", "https://same.example:443"):
        assert ask(server, {"Origin": origin}).status == 101
    for origin in ("http://same.example:8443", "https://same.example:80", "http://same.example:443"):
        assert ask(server, {"Origin": origin}).status == 403


@pytest.mark.parametrize("key", ["allowed_origin", "allow_origins", "allow_origin", "origins", "origin"])
def test_list_of_origins_has_other_names(start_once, key: str) -> None:
    server = start_once(websocket_config(f'{key}: ["https://good.example"]'))

    assert ask(server, {"Origin": "https://good.example"}).status == 101
    assert ask(server, {"Origin": "https://bad.example"}).status == 403


def test_page_must_come_from_the_server_itself(start_once) -> None:
    server = start_once(websocket_config("same_origin: true"))
    host, port = websocket_address(server)

    assert ask(server, {"Origin": f"http://{host}:{port}"}).status == 101
    assert ask(server, {"Origin": f"http://LOCALHOST:{port}", "Host": f"localhost:{port}"}).status == 101
    assert ask(server, {"Origin": "http://example.com", "Host": "example.com"}).status == 101
    assert ask(server, {"Origin": "http://example.com:80", "Host": "example.com"}).status == 101
    assert ask(server, {"Origin": f"https://{host}:{port}"}).status == 403
    assert ask(server, {"Origin": f"http://{host}"}).status == 403
    assert ask(server, {"Origin": "http://example.com"}).status == 403
    assert ask(server).status == 101
    server.wait_for_log(" - websocket handshake error: origin not allowed: not same origin")


def test_both_rules_must_hold(start_once) -> None:
    server = start_once(websocket_config('same_origin: true, allowed_origins: ["http://good.example"]'))

    assert ask(server, {"Origin": "http://good.example", "Host": "good.example"}).status == 101
    assert ask(server, {"Origin": "http://good.example"}).status == 403
    assert ask(server, {"Origin": "http://example.com", "Host": "example.com"}).status == 403


def test_origin_of_old_browsers_counts_too(start_once) -> None:
    server = start_once(websocket_config('allowed_origins: ["https://good.example"] # old'))

    assert ask(server, {"Sec-WebSocket-Origin": "https://good.example"}).status == 101
    assert ask(server, {"Sec-WebSocket-Origin": "https://bad.example"}).status == 403


# Cookies


@pytest.mark.parametrize(
    "cookie",
    [
        "who=ada; what=secret",
        "other=1; what=secret; who=ada; last=2",
        'who=ada; what="secret"',
    ],
)
def test_cookies_log_in_a_client_whose_connect_says_nothing(start_once, cookie: str) -> None:
    server = start_once(websocket_config(COOKIES, SHARED))
    with WebSocketClient(server, headers={"Cookie": cookie}) as client:
        expect_in(client)


@pytest.mark.parametrize("cookie", [None, "who=ada", "what=secret", "who=ada; what=wrong", "WHO=ada; WHAT=secret"])
def test_other_cookies_do_not(start_once, cookie: str | None) -> None:
    server = start_once(websocket_config(COOKIES, SHARED))
    with WebSocketClient(server, headers={"Cookie": cookie}) as client:
        expect_refused(client)


def test_connect_counts_more_than_cookies(start_once) -> None:
    server = start_once(websocket_config(COOKIES, USERS))
    with WebSocketClient(server, headers={"Cookie": "who=both; what=x"}) as client:
        expect_in(client, user="ada", password="secret")
    with WebSocketClient(server, headers={"Cookie": "who=ada; what=secret"}) as client:
        expect_refused(client, user="ada", password="wrong")
    with WebSocketClient(server, headers={"Cookie": "who=nobody; what=secret"}) as client:
        expect_in(client, user="ada")


def test_cookie_holds_a_token(start_once) -> None:
    server = start_once(websocket_config(COOKIES, "authorization { token: secret }"))
    with WebSocketClient(server, headers={"Cookie": "pass=secret"}) as client:
        expect_in(client)
    with WebSocketClient(server, headers={"Cookie": "pass=wrong"}) as client:
        expect_refused(client)


def test_cookies_mean_nothing_unless_they_are_configured(start_once) -> None:
    server = start_once(websocket_config(rest=SHARED))
    with WebSocketClient(server, headers={"Cookie": "user=ada; pass=secret; who=ada; what=secret"}) as client:
        expect_refused(client)


# Credentials of the block's own


def test_same_credentials_hold_without_others(start_once) -> None:
    server = start_once(websocket_config(rest=SHARED))
    with WebSocketClient(server) as client:
        assert client.info["auth_required"] is True
        expect_in(client, user="ada", password="secret")
    with WebSocketClient(server) as client:
        expect_refused(client, user="ada", password="wrong")


def test_user_of_the_block_holds_only_over_websocket(start_once) -> None:
    server = start_once(websocket_config("authorization { user: web, password: page }", SHARED))
    with WebSocketClient(server) as client:
        expect_in(client, user="web", password="page")
    with WebSocketClient(server) as client:
        expect_refused(client, user="ada", password="secret")
    with server.client() as client:
        expect_in(client, user="ada", password="secret")
    with server.client() as client:
        expect_refused(client, user="web", password="page")


def test_token_of_the_block_holds_only_over_websocket(start_once) -> None:
    server = start_once(websocket_config("authentication { token: page }", SHARED))
    with WebSocketClient(server) as client:
        expect_in(client, auth_token="page")
    with WebSocketClient(server) as client:
        expect_refused(client, user="ada", password="secret")
    with server.client() as client:
        expect_refused(client, auth_token="page")


def test_only_websocket_clients_may_need_credentials(start_once) -> None:
    server = start_once(websocket_config("authorization { user: web, password: page }"))
    with server.client() as client:
        assert "auth_required" not in client.info
        expect_in(client)
    with WebSocketClient(server) as client:
        assert client.info["auth_required"] is True
        expect_in(client, user="web", password="page")
    with WebSocketClient(server) as client:
        expect_refused(client)


def test_websocket_clients_may_have_less_time_than_others(start_once) -> None:
    rest = 'authorization { user: ada, password: secret, timeout: "30s" }'
    server = start_once(websocket_config("authorization { user: web, password: page, timeout: 0.3 }", rest))
    with WebSocketClient(server) as client:
        client.expect_error_and_close("Authentication Timeout", 1008, "Authentication Timeout")


# Users


def test_user_without_credentials_of_the_block_holds_only_over_websocket(start_once) -> None:
    server = start_once(websocket_config("no_auth_user: web", USERS))
    with WebSocketClient(server) as client:
        expect_in(client)
    with WebSocketClient(server) as client:
        expect_in(client, user="ada", password="secret")
    with server.client() as client:
        expect_refused(client)


def test_user_without_credentials_of_the_server_holds_over_websocket_too(start_once) -> None:
    server = start_once(websocket_config(rest=f"{USERS}\nno_auth_user: both"))
    with WebSocketClient(server) as client:
        assert client.info["auth_required"] is True
        expect_in(client)
    with server.client() as client:
        assert "auth_required" not in client.info
        expect_in(client)


def test_user_without_credentials_of_the_block_goes_before_that_of_the_server(start_once) -> None:
    server = start_once(websocket_config("no_auth_user: b", ACCOUNTS))
    with WebSocketClient(server) as page, server.client() as wired, server.client() as of_b:
        expect_in(page)
        expect_in(wired)
        expect_in(of_b, user="b", password="x")
        page.send(b"SUB news 1\r\n")
        page.expect_pong()
        wired.send(b"PUB news 1\r\na\r\n")
        wired.expect_pong()
        of_b.send(b"PUB news 1\r\nb\r\n")

        page.expect(b"MSG news 1 1\r\nb\r\n")


def test_client_that_never_says_connect_becomes_the_user_of_the_block(start_once) -> None:
    server = start_once(websocket_config("no_auth_user: b", ACCOUNTS))
    with WebSocketClient(server) as page, server.client() as of_b:
        expect_in(of_b, user="b", password="x")
        page.send(b"SUB news 1\r\nPING\r\n")
        while page.read_frame() != b"PONG\r\n":
            pass
        of_b.send(b"PUB news 1\r\nb\r\n")

        assert page.read_frame() == b"MSG news 1 1\r\nb\r\n"


def test_user_without_credentials_must_be_allowed_to_connect_so(start_once) -> None:
    server = start_once(websocket_config("no_auth_user: wired", USERS))
    with WebSocketClient(server) as client:
        expect_refused(client)


@pytest.mark.parametrize(
    ("user", "password", "over_websocket", "over_tcp"),
    [
        ("ada", "secret", True, True),
        ("web", "", True, False),
        ("wired", "x", False, True),
        ("both", "x", True, True),
        ("bridge", "x", False, False),
    ],
)
def test_user_connects_in_the_ways_it_is_allowed_to(
    start_once, user: str, password: str, over_websocket: bool, over_tcp: bool
) -> None:
    server: ServerProcess = start_once(websocket_config(rest=USERS))
    for client, is_allowed in ((WebSocketClient(server), over_websocket), (server.client(), over_tcp)):
        with client:
            (expect_in if is_allowed else expect_refused)(client, user=user, password=password)


def test_user_with_a_key_signs_the_nonce(start_once) -> None:
    server = start_once(websocket_config(rest=f"authorization {{ users: [{{nkey: {PUBLIC}}}] }}"))
    with WebSocketClient(server) as client:
        expect_in(client, nkey=PUBLIC, sig=sign(client.info["nonce"]))
    with WebSocketClient(server) as client:
        expect_refused(client, nkey=PUBLIC, sig=sign("another nonce"))


def test_users_keep_their_permissions(start_once) -> None:
    rest = 'authorization { users: [{user: a, password: x, permissions { publish: "in", subscribe: "out" }}] }'
    server = start_once(websocket_config(rest=rest))
    with WebSocketClient(server) as client:
        expect_in(client, user="a", password="x")
        client.send(b"SUB in 1\r\n")

        client.expect(b"-ERR 'Permissions Violation for Subscription to \"in\"'\r\n")


# The system account


def test_everybody_comes_in_if_only_the_system_account_has_users(start_once) -> None:
    rest = "accounts { SYS { users: [{user: admin, password: x}] } }, system_account: SYS"
    server = start_once(websocket_config(rest=rest))
    with WebSocketClient(server) as client:
        expect_in(client)
    with WebSocketClient(server) as client:
        expect_in(client, user="admin", password="x")
