"""What operators see of WebSocket: log, ports file, pages, events; and what a reload may change."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.monitored import TIME, Monitored
from tests.compatibility.server_process import ServerProcess, run_to_end
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient, open_socket, websocket_address, websocket_url
from tests.waiting import until

ADDRESS = re.compile(r"127\.0\.0\.1:\d+ - wid:\d+")


# The start


def test_log_says_where_pages_connect_and_warns_without_tls(websocket_server: ServerProcess) -> None:
    log = websocket_server.log()
    host, port = websocket_address(websocket_server)

    assert f"[INF] Listening for websocket clients on ws://{host}:{port}\n" in log
    assert "[WRN] Websocket not configured with TLS. DO NOT USE IN PRODUCTION!\n" in log
    assert log.index("websocket clients") < log.index("client connections")


def test_log_does_not_warn_with_tls(start_once, secure_config) -> None:
    server = start_once(secure_config())

    assert websocket_url(server).startswith("wss://")
    assert "DO NOT USE IN PRODUCTION" not in server.log()


def test_block_without_a_port_has_no_effect(start_server) -> None:
    server = start_server(config="websocket { compress: true, same_origin: true }")

    assert "websocket" not in server.log()


def test_port_that_is_taken_ends_the_server(server_kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        (tmp_path / "server.conf").write_text(f'websocket {{ listen: "127.0.0.1:{port}", no_tls: true }}')

        ended = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"], tmp_path)

    assert ended.returncode == 1
    assert "[FTL] Unable to listen for websocket connections: " in ended.stderr
    assert f"127.0.0.1:{port}: bind: address already in use" in ended.stderr


async def test_ports_file_has_the_addresses_for_pages(start_server, tmp_path: Path) -> None:
    server = start_server(["--ports_file_dir", str(tmp_path)], websocket_config())
    found: list[Path] = []
    await until(lambda: bool(found.extend(tmp_path.glob("*.ports")) or found))

    ports = json.loads(found[0].read_text())

    assert ports["websocket"] == [websocket_url(server)]
    assert ports["nats"] == [server.url]


@pytest.mark.parametrize(
    ("keys", "rest", "reason"),
    [
        ("port: 8080", "", "websocket requires TLS configuration"),
        ('port: 8080, no_tls: true, allowed_origins: ["example.com"]', "", "unable to parse allowed origin"),
        ('port: 8080, no_tls: true, allowed_origins: ["ftp://example.com"]', "", "http or https scheme"),
        ('port: 8080, no_tls: true, allowed_origins: ["https:///x"]', "", "host is required"),
        ("port: 8080, no_tls: true, no_auth_user: nobody", "", 'no_auth_user: "nobody" present, but users/nkeys are'),
        (
            "port: 8080, no_tls: true, no_auth_user: nobody",
            "authorization { users: [{user: a, password: b}] }",
            'no_auth_user: "nobody" not present as user or nkey in authorization block or account configuration',
        ),
        (
            "port: 8080, no_tls: true, authorization { user: x, password: y }",
            "authorization { users: [{user: a, password: b}] }",
            "websocket authentication username not compatible with presence of users/nkeys",
        ),
        (
            "port: 8080, no_tls: true, authorization { token: y }",
            "accounts { A { users: [{user: a, password: b}] } }",
            "websocket authentication token not compatible with presence of users/nkeys",
        ),
        (
            'port: 8080, no_tls: true, jwt_cookie: "jwt"',
            "",
            'trusted operators or trusted keys configuration is required for JWT authentication via cookie "jwt"',
        ),
        ("port: 8080, no_tls: true, headers { Host: a }", "", 'websocket: invalid header "Host" not allowed'),
        ("port: 8080, no_tls: true, headers { upgrade: a }", "", 'websocket: invalid header "upgrade" not allowed'),
        (
            "port: 8080, no_tls: true, headers { Sec-WebSocket-Protocol: a }",
            "",
            'websocket: invalid header "Sec-WebSocket-Protocol", "Sec-WebSocket-" prefix not allowed',
        ),
        ("port: 8080, no_tls: true, nonsense: 1", "", 'unknown field "nonsense"'),
        ("port: 8080, no_tls: true, authorization { users: [] }", "", 'unknown field "users"'),
    ],
)
def test_configuration_that_cannot_be_meant_is_refused(
    server_kind: str, tmp_path: Path, keys: str, rest: str, reason: str
) -> None:
    (tmp_path / "server.conf").write_text(f"websocket {{ {keys} }}\n{rest}")

    checked = run_to_end(server_kind, ["-a", "127.0.0.1", "-p", "-1", "-c", "server.conf"], tmp_path)

    assert checked.returncode == 1
    assert reason in checked.stderr


# Pages


def test_varz_shows_the_listener(start_monitored) -> None:
    keys = 'compress: true, same_origin: true, allowed_origins: ["http://a.example"], handshake_timeout: "2s"'
    rest = "authorization { users: [{user: ada, password: x}] }"
    monitored: Monitored = start_monitored(config=websocket_config(f"{keys}, no_auth_user: ada", rest))

    host, port = websocket_address(monitored.server)

    assert monitored.get_json("/varz")["websocket"] == {
        "host": host,
        "port": port,
        "no_auth_user": "ada",
        "handshake_timeout": 2_000_000_000,
        "no_tls": True,
        "same_origin": True,
        "allowed_origins": ["http://a.example"],
        "compression": True,
    }


def test_varz_shows_certificates_and_timeouts(start_monitored, secure_config, authority: Authority) -> None:
    pin = authority.client("pinned").key_fingerprint
    config = secure_config(
        f'verify_and_map: true, pinned_certs: ["{pin}"]',
        'advertise: "example.com:443", authorization { user: web, password: secret, timeout: 3 }',
    )
    monitored: Monitored = start_monitored(config=config)

    shown = monitored.get_json("/varz")["websocket"]

    assert TIME.match(shown.pop("tls_cert_not_after"))
    assert shown == {
        "host": "127.0.0.1",
        "port": websocket_address(monitored.server)[1],
        "advertise": "example.com:443",
        "auth_timeout": 3,
        "tls_map": True,
        "tls_pinned_certs": [pin],
    }


def test_connz_tells_pages_from_programs(start_monitored) -> None:
    monitored: Monitored = start_monitored(config=websocket_config())
    with WebSocketClient(monitored.server) as page, monitored.server.client() as wired:
        page.connect(name="page", lang="nats.ws", version="1.0")
        wired.connect(name="wired")
        page.send(b"SUB a 1\r\nPUB b 5\r\nhello\r\n")
        page.expect_pong()

        shown = {each["name"]: each for each in monitored.wait_for_connections("?subs=1", 2)}

        assert {name: (each["kind"], each["type"]) for name, each in shown.items()} == {
            "page": ("Client", "websocket"),
            "wired": ("Client", "nats"),
        }
        assert shown["page"]["subscriptions_list"] == ["a"]
        assert (shown["page"]["in_msgs"], shown["page"]["in_bytes"]) == (1, 5)
        assert shown["page"]["ip"] == "127.0.0.1"
        assert "tls_version" not in shown["page"]
    closed = {each["name"]: each for each in monitored.wait_for_connections("?state=closed", 2)}
    assert closed["page"]["type"] == "websocket"
    assert closed["page"]["reason"] == "Client Closed"


def test_connz_shows_how_a_page_is_encrypted(start_monitored, secure_config, authority: Authority) -> None:
    monitored: Monitored = start_monitored(config=secure_config())
    with WebSocketClient(monitored.server, tls=authority.context()) as page:
        page.connect()

        (shown,) = monitored.wait_for_connections("", 1)

        assert (shown["type"], shown["tls_version"]) == ("websocket", "1.3")
        assert shown["tls_cipher_suite"].startswith("TLS_")


def test_counts_of_connections_include_pages(start_monitored) -> None:
    monitored: Monitored = start_monitored(config=websocket_config())
    with WebSocketClient(monitored.server) as page:
        page.connect()

        varz = monitored.get_json("/varz")

        assert (varz["connections"], varz["total_connections"]) == (1, 1)
    assert monitored.get_json("/healthz") == {"status": "ok"}


def test_events_say_how_a_client_connected(start_server) -> None:
    rest = "accounts { A { users: [{user: a, password: x}] }, SYS { users: [{user: s, password: x}] } }\n"
    server: ServerProcess = start_server(config=websocket_config(rest=rest + "system_account: SYS"))
    with server.client() as system:
        system.connect(user="s", **{"pass": "x"})
        system.send(b"SUB $SYS.ACCOUNT.A.CONNECT 1\r\nSUB $SYS.ACCOUNT.A.DISCONNECT 2\r\n")
        system.send(b"SUB $SYS.SERVER.*.CLIENT.AUTH.ERR 3\r\n")
        system.expect_pong()
        with WebSocketClient(server) as page:
            page.connect(user="a", **{"pass": "x"})
        with WebSocketClient(server) as page:
            page.send_connect(user="a", **{"pass": "wrong"})
            page.expect_error("Authorization Violation")

        events = [_event(system.read_frame()) for _ in range(3)]

    assert {each["type"].rpartition(".")[2] for each in events} == {"client_connect", "client_disconnect"}
    assert [each["client"]["client_type"] for each in events] == ["websocket"] * 3
    assert [each["client"]["kind"] for each in events] == ["Client"] * 3


def _event(message: bytes) -> Any:
    return json.loads(message.partition(b"\r\n")[2])


# INFO


def test_info_names_the_port_for_pages_to_come_back_to(websocket_server: ServerProcess) -> None:
    host, port = websocket_address(websocket_server)
    with WebSocketClient(websocket_server) as page, websocket_server.client() as wired:
        shared = {"server_id", "server_name", "version", "proto", "headers", "max_payload", "client_ip"}
        assert {key: page.info[key] for key in shared} == {key: wired.info[key] for key in shared}
        assert (page.info["host"], page.info["port"]) == (host, port)
        assert (wired.info["host"], wired.info["port"]) == (websocket_server.host, websocket_server.port)
        assert "tls_required" not in page.info
        assert "ws_connect_urls" not in page.info
        assert "ws_connect_urls" not in wired.info


def test_advertised_address_is_for_servers_of_a_cluster(start_once) -> None:
    server = start_once(websocket_config('advertise: "nats.example.com:443"'))
    with WebSocketClient(server) as page:
        page.connect(protocol=1)

        assert "connect_urls" not in page.info
        assert "connect_urls" not in page.connected_info
        assert page.info["port"] == websocket_address(server)[1]


def test_address_behind_a_proxy_is_in_the_log(start_once) -> None:
    server = start_once(websocket_config(rest="debug: true"))
    with WebSocketClient(server, headers={"X-Forwarded-For": "203.0.113.7"}) as page:
        page.connect()
        assert page.info["client_ip"] == "127.0.0.1"

        server.wait_for_log("203.0.113.7/127.0.0.1:")


# Reload


def test_certificate_is_replaced_by_a_reload(
    start_server, secure_config, authority: Authority, server_certificate: Certificate
) -> None:
    server: ServerProcess = start_server(config=secure_config())
    path = server.folder / "server.conf"
    other = authority.server("renewed")
    with WebSocketClient(server, tls=authority.context()) as stays:
        stays.connect()
        text = path.read_text().replace(str(server_certificate.certificate_file), str(other.certificate_file))
        path.write_text(text.replace(str(server_certificate.key_file), str(other.key_file)))
        server.signal(signal.SIGHUP)
        server.wait_for_log("Reloaded server configuration")

        stays.expect_pong()
        with open_socket(server, authority.context()) as connection:
            assert isinstance(connection, ssl.SSLSocket)
            assert connection.getpeercert()["subject"][-1][-1] == ("commonName", "renewed")


@pytest.mark.parametrize("keys", ["compress: true", "same_origin: true", 'no_auth_user: "ada"', 'ping_interval: "9s"'])
def test_nothing_else_may_change(start_server, keys: str) -> None:
    rest = "authorization { users: [{user: ada, password: x}] }"
    server: ServerProcess = start_server(config=websocket_config(rest=rest))
    (server.folder / "server.conf").write_text(websocket_config(keys, rest))
    server.signal(signal.SIGHUP)

    log = server.wait_for_log("config reload not supported for Websocket")

    assert "Reloaded server configuration" not in log
    with WebSocketClient(server) as page:
        page.connect(user="ada", **{"pass": "x"})


def test_users_that_change_are_asked_again(start_server) -> None:
    before = "authorization { users: [{user: ada, password: x}, {user: bob, password: x}] }"
    server: ServerProcess = start_server(config=websocket_config(rest=before))
    with WebSocketClient(server) as ada, WebSocketClient(server) as bob:
        ada.connect(user="ada", **{"pass": "x"})
        bob.connect(user="bob", **{"pass": "x"})
        after = "authorization { users: [{user: ada, password: x}, {user: bob, password: y}] }"
        (server.folder / "server.conf").write_text(websocket_config(rest=after))
        server.signal(signal.SIGHUP)

        bob.expect_error_and_close("Authorization Violation", 1008, "Authentication Failure")
        ada.expect_pong()
