"""Rules of the TLS handshake that a configuration file may set: several certificates, curves, how many in a second."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from pathlib import Path

import pytest

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.server_process import ServerProcess, run_to_end
from tests.compatibility.wire import RawClient

ADMITTED_SECONDS_MAX = 60.0

THROTTLED = "Connection throttling is active. Please try again later."


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def pair(certificate: Certificate) -> str:
    return f'cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}"'


def patient(certificate: Certificate) -> str:
    """Return the keys of a certificate, and time enough for a handshake: a machine may be busy."""
    return f"{pair(certificate)}, timeout: 60"


def test_client_gets_the_certificate_of_the_name_it_asks_for(start_server, authority: Authority) -> None:
    hosts = ("one.example", "two.example")
    certificates = [authority.server(host, host=host) for host in hosts]
    listed = ", ".join(f"{{{pair(each)}}}" for each in certificates)
    server = start_server(config=f"tls {{ certs: [ {listed} ], timeout: 60 }}")
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


NAMES = ["one.example", "two.example", "three.example", "ONE.EXAMPLE", "sub.one.example", "127.0.0.1", "a." * 120 + "b"]


@pytest.mark.parametrize("host", [*NAMES, None], ids=lambda host: str(host)[:20])
def test_name_that_a_client_asks_for_gives_it_no_rights(start_server, authority: Authority, host: str | None) -> None:
    certificates = [authority.server(name, host=name) for name in ("one.example", "two.example")]
    users = '{user: "ann@example.com", permissions: {publish: open}}, {user: "one.example"}, {user: "two.example"}'
    server = start_server(
        config=f"""
          tls {{ certs: [ {", ".join(f"{{{pair(each)}}}" for each in certificates)} ]
                 ca_file: "{authority.file}", verify_and_map: true, timeout: 60 }}
          authorization {{ users: [ {users} ], timeout: 60 }}
        """
    )
    for certificate in (authority.client("ann", subject={"CN": "ann"}, email="ann@example.com"), None):
        context = authority.context(certificate)
        context.check_hostname = False
        with server.client() as client:
            client.encrypt(context, host=host)
            operations = b'CONNECT {"verbose":false}\r\nPUB open 0\r\n\r\nPUB shut 0\r\n\r\nPING\r\n'
            if certificate is not None:
                client.send(operations)
                client.expect_error('Permissions Violation for Publish to "shut"')
                client.expect(b"PONG\r\n")
                continue
            # Whoever has no certificate is nobody, whatever name it asked for.
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                client.send(operations)
                assert client.read_to_end() == b""


def hello(name: bytes) -> bytes:
    """The first message of a handshake that asks for this name, even if no library would."""
    placeholder = "x" * len(name)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    handshake = context.wrap_bio(incoming, outgoing, server_hostname=placeholder)
    with contextlib.suppress(ssl.SSLWantReadError):
        handshake.do_handshake()
    data = outgoing.read()
    assert data.count(placeholder.encode()) == 1
    return data.replace(placeholder.encode(), name)


@pytest.mark.parametrize(
    "name",
    [
        b"a\0.example",
        b"a\r\nPING\r\n",
        b"../../etc/passwd",
        b"\xff\xfe\xfd",
        b"a b",
        b"*.example",
        b"." * 20,
        b"-" * 60,
    ],
)
def test_name_that_is_none_harms_nobody(start_server, authority: Authority, name: bytes) -> None:
    server = start_server(config=f"tls {{ {patient(authority.server())} }}")
    with server.client() as other:
        other.encrypt(authority.context())
        other.connect()

        with server.client() as client:
            client.send(hello(name))
            # Nothing more will come, so that no server waits for the rest of the handshake.
            client._socket.shutdown(socket.SHUT_WR)
            # A server may overlook the name, or refuse it; either is said in a record of TLS, and in nothing else.
            answer = client.read_to_end()
            assert answer[:2] in (b"\x16\x03", b"\x15\x03", b"")
        other.expect_pong()
    with server.client() as client:
        client.encrypt(authority.context())
        client.connect()


def test_key_exchange_is_on_a_curve_of_the_list(start_server, authority: Authority) -> None:
    server = start_server(config=f"tls {{ {patient(authority.server())}, curve_preferences: [CurveP384, CurveP521] }}")
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
    server = start_server(config=f"tls {{ {patient(authority.server())}, connection_rate_limit: 2 }}")

    wait_until_sent_away(server)

    server.wait_for_log("connections due to TLS rate limiting")
    wait_until_admitted(server, authority.context())


def wait_until_sent_away(server: ServerProcess) -> None:
    """Open four connections at a time until one is sent away; a busy machine may need a second for four."""
    deadline = time.monotonic() + ADMITTED_SECONDS_MAX
    while time.monotonic() < deadline:
        with contextlib.ExitStack() as opened:
            last = [opened.enter_context(server.client()) for _ in range(4)][-1]
            with contextlib.suppress(TimeoutError):
                assert last.read_frame(timeout_seconds=0.3) == b"-ERR '%s'\r\n" % THROTTLED.encode()
                last.expect_closed()
                return
    raise AssertionError("no connection was sent away")


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
    server = start_server(
        config=f"tls {{ {patient(authority.server())}, connection_rate_limit: 1 }}\nallow_non_tls: true"
    )
    for _ in range(3):
        with server.client() as plain:
            plain.connect()

    with server.client() as client:
        client.encrypt(authority.context())
        client.connect()


def test_file_may_allow_plain_clients_beside_certificates_of_the_command_line(
    start_server, authority: Authority
) -> None:
    certificate = authority.server()
    flags = ["--tls", "--tlscert", str(certificate.certificate_file), "--tlskey", str(certificate.key_file)]
    server: ServerProcess = start_server(flags, "allow_non_tls: true")

    with server.client() as plain, server.client() as encrypted:
        plain.connect()
        encrypted.encrypt(authority.context())
        encrypted.connect()

        assert plain.info["tls_available"] is True
        assert "tls_required" not in plain.info


def test_time_too_short_for_any_handshake_stops_clients_and_not_the_server(start_server, authority: Authority) -> None:
    server: ServerProcess = start_server(config=f"tls {{ {pair(authority.server())}, timeout: 0.0001 }}")

    with server.client() as client:
        client.expect_closed()
    with server.client() as client:
        assert client.info["tls_required"] is True


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("which", "alert"),
    [
        ("foreign", "TLSV1_ALERT_UNKNOWN_CA"),
        ("foreign of the same name", "TLSV1_ALERT_UNKNOWN_CA"),
        ("expired", "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
    ],
)
def test_client_hears_what_is_wrong_with_its_certificate(
    start_server, authority: Authority, tmp_path: Path, version: ssl.TLSVersion, which: str, alert: str
) -> None:
    (tmp_path / "other").mkdir()
    if which == "expired":
        certificate = authority.client("late", days=-1)
    else:
        name = "Test Authority" if "same" in which else "Other Authority"
        certificate = Authority(tmp_path / "other", name).client()
    server = start_server(config=f'tls {{ {patient(authority.server())}, ca_file: "{authority.file}", verify: true }}')

    with server.client() as client, pytest.raises(ssl.SSLError) as refused:
        log_in(client, authority.context(certificate, version=version))

    assert refused.value.reason == alert


def log_in(client: RawClient, context: ssl.SSLContext) -> None:
    """With TLS 1.3 a client hears only after its own handshake that its certificate was refused."""
    client.encrypt(context)
    client.connect()


@pytest.mark.parametrize("wrong", ["cert_file", "key_file", "ca_file", "another key"])
def test_check_finds_certificates_that_are_none(
    server_kind: str, authority: Authority, tmp_path: Path, wrong: str
) -> None:
    certificate, other = authority.server(), authority.server("other")
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    files = {
        "cert_file": certificate.certificate_file,
        "key_file": other.key_file if wrong == "another key" else certificate.key_file,
        "ca_file": authority.file,
    }
    if wrong in files:
        files[wrong] = junk
    file = tmp_path / "server.conf"
    keys = ", ".join(f'{key}: "{path}"' for key, path in files.items())
    file.write_text(f"tls {{ verify: true, {keys} }}")

    ended = run_to_end(server_kind, ["-t", "-c", str(file)], tmp_path)

    assert ended.returncode == 1
    assert "is valid" not in ended.stderr
