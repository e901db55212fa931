"""Pages over HTTPS."""

import contextlib
import http.client
import random
import socket
import ssl

import pytest

from jetlake.monitoring.monitor import Monitor
from tests.compatibility.certificates import Authority
from tests.monitoring.recorded import connection, recorded

TIMEOUT_S = 60.0


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@pytest.fixture
def monitor(authority):
    """The pages of a recorded server with many connections, so that a page is larger than a socket's buffers."""
    certificate = authority.server()
    warnings = []
    monitor = Monitor(
        lambda: recorded(connections=[connection(number) for number in range(20_000)]),
        host="127.0.0.1",
        port=0,
        certificate_file=str(certificate.certificate_file),
        key_file=str(certificate.key_file),
        warn=warnings.append,
    )
    monitor.start()
    yield monitor
    monitor.stop()
    assert warnings == []


def get(monitor, context, path="/varz"):
    client = http.client.HTTPSConnection("127.0.0.1", monitor.port, context=context, timeout=TIMEOUT_S)
    try:
        client.request("GET", path)
        response = client.getresponse()
        return response.status, response.read()
    finally:
        client.close()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_pages_are_served_over_tls(monitor, authority, version):
    status, body = get(monitor, authority.context(version=version))

    assert (status, body[:18]) == (200, b'{\n  "server_id": "')
    assert monitor.scheme == "https"


def test_a_large_page_arrives_whole(monitor, authority):
    status, body = get(monitor, authority.context(), "/connz?limit=20000")

    assert status == 200
    assert len(body) > 5_000_000
    assert body.endswith(b"}")


def test_an_authority_that_is_not_trusted_is_noticed(monitor, tmp_path):
    stranger = Authority(tmp_path, "Stranger")

    with pytest.raises(ssl.SSLCertVerificationError):
        get(monitor, stranger.context())


def test_plain_text_and_random_bytes_on_the_tls_port_do_no_harm(monitor, authority):
    chance = random.Random(1)
    for data in [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"", *(chance.randbytes(200) for _ in range(200))]:
        client = socket.create_connection(("127.0.0.1", monitor.port), timeout=TIMEOUT_S)
        # The server may have hung up already.
        with client, contextlib.suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(65_536):
                pass

    assert get(monitor, authority.context(), "/healthz")[0] == 200


def test_clients_that_never_finish_the_handshake_hold_nobody_up(monitor, authority):
    waiting = [socket.create_connection(("127.0.0.1", monitor.port), timeout=TIMEOUT_S) for _ in range(200)]
    for client in waiting:
        client.sendall(b"\x16\x03\x01")

    assert get(monitor, authority.context(), "/healthz")[0] == 200
    for client in waiting:
        client.close()


def test_a_renewed_certificate_is_shown_from_the_next_connection_on(monitor, tmp_path):
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other", "Other")
    certificate = other.server()

    monitor.renew_certificate(str(certificate.certificate_file), str(certificate.key_file))

    assert get(monitor, other.context())[0] == 200


def test_a_certificate_that_cannot_be_loaded_is_refused(tmp_path):
    (tmp_path / "empty.pem").write_text("")

    for name in ("empty.pem", "missing.pem"):
        with pytest.raises(OSError):  # noqa: PT011 - OpenSSL says it in its own words
            Monitor(
                recorded,
                host="127.0.0.1",
                port=0,
                certificate_file=str(tmp_path / name),
                key_file=str(tmp_path / name),
                warn=print,
            )
