"""Rules of the TLS handshake that a configuration file may set: several certificates, curves, how many in a second."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.server_process import ServerProcess, run_to_end

ADMITTED_SECONDS_MAX = 10.0

THROTTLED = "Connection throttling is active. Please try again later."


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def pair(certificate: Certificate) -> str:
    return f'cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}"'


def test_client_gets_the_certificate_of_the_name_it_asks_for(start_server, authority: Authority) -> None:
    hosts = ("one.example", "two.example")
    certificates = [authority.server(host, host=host) for host in hosts]
    server = start_server(config=f"tls {{ certs: [ {', '.join(f'{{{pair(each)}}}' for each in certificates)} ] }}")
    careless = authority.context()
    careless.check_hostname = False

    for host in hosts:
        with server.client() as client:
            client.encrypt(authority.context(), host=host)
            client.connect()
    with server.client() as client:
        shown = client.encrypt(careless, host="three.example").getpeercert()

    assert shown is not None
    assert ("DNS", hosts[0]) in shown["subjectAltName"]


def test_key_exchange_is_on_a_curve_of_the_list(start_server, authority: Authority) -> None:
    server = start_server(config=f"tls {{ {pair(authority.server())}, curve_preferences: [CurveP384, CurveP521] }}")
    for curve, fits in (("secp384r1", True), ("prime256v1", False)):
        context = authority.context(version=ssl.TLSVersion.TLSv1_3)
        context.set_ecdh_curve(curve)
        with server.client() as client:
            if fits:
                client.encrypt(context)
                client.connect()
            else:
                with pytest.raises(ssl.SSLError):
                    client.encrypt(context)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("curve_preferences: [CurveP256, bogus]", "unrecognized curve preference bogus"),
        ("curve_preferences: []", "error parsing tls config, 'curve_preferences' cannot be empty"),
    ],
)
def test_curves_that_do_not_exist_are_refused(
    server_kind: str, authority: Authority, tmp_path: Path, key: str, reason: str
) -> None:
    (tmp_path / "server.conf").write_text(f"tls {{ {pair(authority.server())}, {key} }}")

    completed = run_to_end(server_kind, ["-t", "-c", "server.conf"], tmp_path)

    assert completed.returncode == 1
    assert reason in completed.stderr


def test_handshakes_beyond_the_rate_are_sent_away(start_server, authority: Authority) -> None:
    server = start_server(config=f"tls {{ {pair(authority.server())}, connection_rate_limit: 2 }}")
    clients = [server.client() for _ in range(4)]

    for client in clients[:2]:
        client.encrypt(authority.context())
        client.connect()
    for client in clients[2:]:
        client.expect_error_and_closed(THROTTLED)

    server.wait_for_log("connections due to TLS rate limiting")
    wait_until_admitted(server, authority.context())
    for client in clients:
        client.close()


def wait_until_admitted(server: ServerProcess, context: ssl.SSLContext) -> None:
    deadline = time.monotonic() + ADMITTED_SECONDS_MAX
    while True:
        with server.client() as client:
            try:
                client.encrypt(context)
            except (ssl.SSLError, ConnectionError):
                assert time.monotonic() < deadline
                time.sleep(0.2)
                continue
            client.connect()
            return


def test_clients_in_the_clear_are_not_counted(start_server, authority: Authority) -> None:
    server = start_server(config=f"tls {{ {pair(authority.server())}, connection_rate_limit: 1 }}\nallow_non_tls: true")
    for _ in range(3):
        with server.client() as plain:
            plain.connect()

    with server.client() as client:
        client.encrypt(authority.context())
        client.connect()
