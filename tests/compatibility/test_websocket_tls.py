"""WebSocket over TLS: certificates of both sides, users by certificate, and what INFO says about it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.server_process import ServerProcess, run_to_end
from tests.compatibility.websocket_servers import websocket_config
from tests.compatibility.websocket_wire import WebSocketClient, ask, open_socket, websocket_address, websocket_url

CERTIFICATE_USERS = """
    authorization {
      users: [
        {user: "alice@example.com"}
        {user: "CN=bob,O=Acme", allowed_connection_types: [WEBSOCKET]}
        {user: "CN=carol,O=Acme", allowed_connection_types: [STANDARD]}
        {user: dave, password: secret}
      ]
    }
"""

LARGE_BYTES = 1_000_000


@pytest.fixture(scope="module")
def alice(authority: Authority) -> Certificate:
    return authority.client("alice", subject={"O": "Acme", "CN": "alice"}, email="alice@example.com")


@pytest.fixture(scope="module")
def bob(authority: Authority) -> Certificate:
    return authority.client("bob", subject={"O": "Acme", "CN": "bob"})


@pytest.fixture(scope="module")
def carol(authority: Authority) -> Certificate:
    return authority.client("carol", subject={"O": "Acme", "CN": "carol"})


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that no server here trusts."""
    return Authority(tmp_path_factory.mktemp("strangers"), "Strangers")


@pytest.fixture
def secure_server(start_once: Callable[..., ServerProcess], secure_config: Callable[..., str]) -> ServerProcess:
    """A server whose WebSocket port wants TLS, and no certificate."""
    return start_once(secure_config())


def expect_no_handshake(server: ServerProcess, context: ssl.SSLContext) -> None:
    """Expect that a client with this context does not come in; TLS 1.3 tells it only when it reads."""
    with pytest.raises((ssl.SSLError, ConnectionResetError, AssertionError)):
        ask(server, tls=context)


def test_messages_go_both_ways(secure_server: ServerProcess, authority: Authority) -> None:
    body = b"x" * LARGE_BYTES
    with WebSocketClient(secure_server, tls=authority.context()) as client:
        client.connect()
        client.send(b"SUB echo 1\r\nPUB echo %d\r\n%b\r\n" % (len(body), body))

        client.expect(b"MSG echo 1 %d\r\n%b\r\n" % (len(body), body))


def test_compressed_messages_go_both_ways(start_once, secure_config, authority: Authority) -> None:
    server = start_once(secure_config(keys="compress: true"))
    with WebSocketClient(server, tls=authority.context(), compress=True) as client:
        client.connect()
        client.send_compressed(b"SUB echo 1\r\nPUB echo 500\r\n" + b"y" * 500 + b"\r\n")

        client.expect(b"MSG echo 1 500\r\n" + b"y" * 500 + b"\r\n")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_served(secure_server: ServerProcess, authority: Authority, version: ssl.TLSVersion) -> None:
    with WebSocketClient(secure_server, tls=authority.context(version=version)) as client:
        client.connect()


def test_info_says_what_holds_for_this_port(secure_server: ServerProcess, authority: Authority) -> None:
    host, port = websocket_address(secure_server)
    with WebSocketClient(secure_server, tls=authority.context()) as client:
        info = client.info

    assert (info["host"], info["port"]) == (host, port)
    assert info["tls_required"] is True
    assert info["tls_available"] is True
    with secure_server.client() as over_tcp:
        assert "tls_required" not in over_tcp.info
        assert over_tcp.info["port"] == secure_server.port


def test_info_in_the_clear_says_nothing_of_the_certificates_of_the_client_port(
    start_once, authority: Authority, server_certificate: Certificate
) -> None:
    rest = f"""
        tls {{
          cert_file: "{server_certificate.certificate_file}"
          key_file: "{server_certificate.key_file}"
        }}
    """
    server = start_once(websocket_config(rest=rest))
    with WebSocketClient(server) as client:
        assert "tls_required" not in client.info
        assert "tls_available" not in client.info
        client.connect()
    with server.client() as over_tcp:
        assert over_tcp.info["tls_required"] is True


def test_tls_is_used_although_no_tls_allows_to_do_without(start_once, secure_config, authority: Authority) -> None:
    server = start_once(secure_config(keys="no_tls: true"))

    assert websocket_url(server).startswith("wss://")
    assert ask(server, tls=authority.context()).status == 101


def test_client_in_the_clear_does_not_come_in(secure_server: ServerProcess) -> None:
    with open_socket(secure_server) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        received = connection.recv(65_536)

    assert b" 101 " not in received


def test_same_origin_is_one_over_tls(start_once, secure_config, authority: Authority) -> None:
    server = start_once(secure_config(keys="same_origin: true"))
    host, port = websocket_address(server)
    context = authority.context()

    assert ask(server, {"Origin": f"https://{host}:{port}"}, tls=context).status == 101
    assert ask(server, {"Origin": f"http://{host}:{port}"}, tls=context).status == 403
    assert ask(server, {"Origin": "https://a.example", "Host": "a.example:443"}, tls=context).status == 101


# Certificates of clients


def test_server_that_verifies_wants_a_certificate(
    start_once, secure_config, authority: Authority, strangers: Authority, alice: Certificate
) -> None:
    server = start_once(secure_config("verify: true"))
    foreign = authority.context(strangers.client("mallory"))

    with WebSocketClient(server, tls=authority.context(alice)) as client:
        client.connect()
    expect_no_handshake(server, authority.context())
    expect_no_handshake(server, foreign)


def test_only_pinned_certificates_come_in(
    start_once, secure_config, authority: Authority, alice: Certificate, bob: Certificate
) -> None:
    server: ServerProcess = start_once(secure_config(f'verify: true, pinned_certs: ["{alice.key_fingerprint}"]'))

    with WebSocketClient(server, tls=authority.context(alice)) as client:
        client.connect()
    # nats-server looks at the pins of this port only when they change.
    if server.kind != "nats-server":
        expect_no_handshake(server, authority.context(bob))


def test_certificate_makes_a_client_a_user(
    start_once, secure_config, authority: Authority, alice: Certificate, bob: Certificate
) -> None:
    server = start_once(secure_config("verify_and_map: true", rest=CERTIFICATE_USERS))
    for certificate in (alice, bob):
        with WebSocketClient(server, tls=authority.context(certificate)) as client:
            client.connect()


def test_certificate_of_a_user_that_must_not_connect_so_is_refused(
    start_once, secure_config, authority: Authority, carol: Certificate
) -> None:
    server = start_once(secure_config("verify_and_map: true", rest=CERTIFICATE_USERS))
    with WebSocketClient(server, tls=authority.context(carol)) as client:
        client.send_connect()

        client.expect_error("Authorization Violation")


def test_certificate_counts_and_not_what_connect_says(start_once, secure_config, authority: Authority) -> None:
    server = start_once(secure_config("verify_and_map: true", rest=CERTIFICATE_USERS))
    nobody = authority.client("nobody", subject={"O": "Acme", "CN": "nobody"})
    with WebSocketClient(server, tls=authority.context(nobody)) as client:
        client.send_connect(user="dave", **{"pass": "secret"})

        client.expect_error("Authorization Violation")


def test_certificates_make_users_only_on_this_port(start_once, secure_config) -> None:
    server = start_once(secure_config("verify_and_map: true", rest=CERTIFICATE_USERS))
    with server.client() as client:
        client.connect(user="dave", **{"pass": "secret"})


def test_user_known_by_its_certificate_is_not_found_by_an_empty_password(start_once, secure_config) -> None:
    server = start_once(secure_config("verify_and_map: true", rest=CERTIFICATE_USERS))
    with server.client() as client:
        client.send_connect(user="alice@example.com", **{"pass": ""})
        client.expect_error("Authorization Violation")
    with server.client() as client:
        # A certificate never makes a client this user: over WebSocket, where it would, the user must not connect.
        client.connect(user="CN=carol,O=Acme", **{"pass": ""})


def test_certificates_of_the_client_port_make_no_users_here(
    start_once, authority: Authority, server_certificate: Certificate, alice: Certificate
) -> None:
    tls = f"""
        tls {{
          cert_file: "{server_certificate.certificate_file}"
          key_file: "{server_certificate.key_file}"
          ca_file: "{authority.file}"
          verify_and_map: true
        }}
    """
    server = start_once(websocket_config(rest=tls + CERTIFICATE_USERS))
    with WebSocketClient(server) as client:
        client.connect(user="dave", **{"pass": "secret"})
    with WebSocketClient(server) as client:
        client.send_connect(user="alice@example.com", **{"pass": ""})
        client.expect_error("Authorization Violation")


@pytest.mark.parametrize("keys", ['cert_file: "missing.pem", key_file: "missing-key.pem"', 'cert_file: "missing.pem"'])
def test_check_of_a_configuration_finds_missing_certificates(server_kind: str, tmp_path: Path, keys: str) -> None:
    (tmp_path / "server.conf").write_text(f"websocket {{ port: -1, tls {{ {keys} }} }}")

    checked = run_to_end(server_kind, ["-c", "server.conf", "-t"], tmp_path)

    assert checked.returncode == 1
    assert "missing.pem" in checked.stderr or "key_file" in checked.stderr
