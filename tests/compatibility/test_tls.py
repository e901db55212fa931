"""TLS: what a client sees before, during and after the handshake, with and without a certificate of its own."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import nats
import nats.errors
import pytest

from tests.compatibility.certificates import Authority, Certificate
from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.wire import RawClient

TIMEOUT_SECONDS = 2.0
"""nats-server's default for the handshake."""

PATIENT_TIMEOUT_SECONDS = 60
"""For the handshake where a test is not about its time: a machine may be busy."""

LARGE_BYTES = 1_000_000

# A record and a message of the right lengths, with nonsense in them; and how the answer to that begins.
DAMAGED_HELLO = b"\x16\x03\x01\x00\x09\x01\x00\x00\x05aaaaa"
ALERT = b"\x15\x03"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority that no server here trusts."""
    return Authority(tmp_path_factory.mktemp("strangers"), "Strangers")


@pytest.fixture(scope="module")
def server_certificate(authority: Authority) -> Certificate:
    return authority.server()


@pytest.fixture(scope="module")
def alice(authority: Authority) -> Certificate:
    return authority.client("alice", subject={"O": "Acme", "CN": "alice"}, email="alice@example.com")


@pytest.fixture(scope="module")
def flags(authority: Authority, server_certificate: Certificate) -> list[str]:
    return [
        "--tls",
        f"--tlscert={server_certificate.certificate_file}",
        f"--tlskey={server_certificate.key_file}",
        f"--tlscacert={authority.file}",
    ]


@pytest.fixture(scope="module")
def start_once(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ServerProcess]]:
    """Start one server per set of flags or configuration for the whole module."""
    processes: dict[tuple[tuple[str, ...], str | None], ServerProcess] = {}

    def start(flags: list[str] | None = None, config: str | None = None) -> ServerProcess:
        key = (tuple(flags or ()), config)
        if key not in processes:
            folder = tmp_path_factory.mktemp(server_kind)
            processes[key] = start_server_process(server_kind, folder, flags, config)
        return processes[key]

    yield start
    for process in processes.values():
        process.stop()


@pytest.fixture
def tls_server(start_once, flags: list[str]) -> ServerProcess:
    """A server that wants TLS, and no certificate."""
    return start_once(flags)


@pytest.fixture
def verifying_server(start_once, flags: list[str]) -> ServerProcess:
    """A server that wants a certificate."""
    return start_once([*flags, "--tlsverify"])


@pytest.fixture
def configure(authority: Authority, server_certificate: Certificate) -> Callable[..., str]:
    """Write a configuration: keys of the block `tls`, and what stands outside of it."""

    def write(keys: str = "", rest: str = "", certificate: Certificate = server_certificate) -> str:
        return f"""
            tls {{
              cert_file: "{certificate.certificate_file}"
              key_file: "{certificate.key_file}"
              ca_file: "{authority.file}"
              {keys if "timeout:" in keys else f"timeout: {PATIENT_TIMEOUT_SECONDS}, {keys}"}
            }}
            {rest}
        """

    return write


def expect_echo(client: RawClient) -> None:
    """Publish to itself: the connection carries messages both ways."""
    client.send(b"SUB echo 1\r\nPUB echo 2\r\nhi\r\n")
    client.expect(b"MSG echo 1 2\r\nhi\r\n")


def expect_refused(server: ServerProcess, context: ssl.SSLContext) -> None:
    """Expect that a client with this context does not get in."""
    with server.client() as client:
        try:
            encrypted = client.encrypt(context)
            encrypted.sendall(b"CONNECT {}\r\nPING\r\n")
            # With TLS 1.3 a client hears of it only here: its own side of the handshake was over before.
            answer = encrypted.recv(4096)
        except (ssl.SSLError, ConnectionError):
            answer = b""
        assert answer == b""


# The flags


def test_info_says_what_is_required(tls_server: ServerProcess, verifying_server: ServerProcess) -> None:
    with tls_server.client() as one, verifying_server.client() as other:
        assert one.info["tls_required"] is True
        assert "tls_verify" not in one.info
        assert "tls_available" not in one.info
        assert other.info["tls_required"] is True
        assert other.info["tls_verify"] is True


def test_log_says_what_is_required(tls_server: ServerProcess, start_once, configure) -> None:
    assert "TLS required for client connections" in tls_server.log()
    optional = start_once(config=configure(rest="allow_non_tls: true"))
    assert "TLS available for client connections" in optional.log()
    first = start_once(config=configure("handshake_first: true"))
    assert 'Clients that are not using "TLS Handshake First" option will fail to connect' in first.log()


def test_session_begins_after_the_handshake(tls_server: ServerProcess, authority: Authority) -> None:
    with tls_server.client() as client:
        client.encrypt(authority.context())

        client.expect_silence()
        client.connect(protocol=1)
        expect_echo(client)

        assert client.connected_info["tls_required"] is True
        assert client.connected_info["connect_info"] is True


def test_everything_may_come_with_the_end_of_the_handshake(tls_server: ServerProcess, authority: Authority) -> None:
    with tls_server.client() as client:
        client.encrypt(authority.context())

        client.send(b'CONNECT {"verbose":false}\r\nSUB a 1\r\nPUB a 1\r\nx\r\nPING\r\n')

        client.expect(b"MSG a 1 1\r\nx\r\nPONG\r\n")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_are_spoken(tls_server: ServerProcess, authority: Authority, version: ssl.TLSVersion) -> None:
    with tls_server.client() as client:
        encrypted = client.encrypt(authority.context(version=version))

        client.connect()
        expect_echo(client)

        suite = encrypted.cipher()
        assert suite is not None
        assert suite[0] in ("TLS_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256")


def test_plain_client_is_closed_without_a_word(tls_server: ServerProcess) -> None:
    with tls_server.client() as client:
        client.send(b"CONNECT {}\r\nPING\r\n")

        client.expect_closed()


def test_idle_client_is_closed_at_the_timeout(tls_server: ServerProcess) -> None:
    begun_at = time.monotonic()
    with tls_server.client() as client:
        client.expect_closed()

        assert time.monotonic() - begun_at > TIMEOUT_SECONDS * 0.8


def test_client_that_stops_in_the_handshake_is_closed_at_the_timeout(tls_server: ServerProcess) -> None:
    begun_at = time.monotonic()
    with tls_server.client() as client:
        client.send(b"\x16\x03\x01\x00\xc8\x01")

        client.expect_closed()

        assert time.monotonic() - begun_at > TIMEOUT_SECONDS * 0.8


def test_damaged_hello_is_answered_with_an_alert(tls_server: ServerProcess) -> None:
    with tls_server.client() as client:
        client.send(DAMAGED_HELLO)

        received = client.read_to_end()

        assert received[:2] == ALERT


def test_record_that_was_tampered_with_ends_the_connection(tls_server: ServerProcess, authority: Authority) -> None:
    with tls_server.client() as client:
        plain = socket.fromfd(client._socket.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        client.encrypt(authority.context())
        client.connect()

        plain.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
        with pytest.raises(ssl.SSLError):
            client.read_to_end()
        plain.close()


def test_server_says_goodbye(tls_server: ServerProcess, authority: Authority) -> None:
    with tls_server.client() as client:
        client.encrypt(authority.context())
        client.connect()

        client.send(b"NONSENSE\r\n")

        # The end is announced: nobody in between can forge it.
        client.expect_error_and_closed("Unknown Protocol Operation")


def test_client_that_does_not_trust_the_server_leaves_it_unharmed(
    tls_server: ServerProcess, authority: Authority, strangers: Authority
) -> None:
    with tls_server.client() as client, pytest.raises(ssl.SSLCertVerificationError):
        client.encrypt(strangers.context())

    with tls_server.client() as client:
        client.encrypt(authority.context())
        client.connect()
        expect_echo(client)


def test_large_messages_pass_whole(tls_server: ServerProcess, authority: Authority) -> None:
    payload = bytes(range(256)) * (LARGE_BYTES // 256)
    message = b"%d\r\n%b\r\n" % (len(payload), payload)
    with tls_server.client() as client:
        client.encrypt(authority.context())
        client.connect()
        client.send(b"SUB large 1\r\n")

        for _ in range(5):
            client.send(b"PUB large " + message)
            client.expect(b"MSG large 1 " + message)


def test_small_messages_pass_in_order(tls_server: ServerProcess, authority: Authority) -> None:
    count = 20_000
    with tls_server.client() as subscriber, tls_server.client() as publisher:
        for client in (subscriber, publisher):
            client.encrypt(authority.context())
            client.connect()
        subscriber.send(b"SUB n 1\r\n")
        subscriber.expect_pong()

        publisher.send(b"".join(b"PUB n 6\r\n%06d\r\n" % number for number in range(count)))

        for number in range(count):
            subscriber.expect(b"MSG n 1 6\r\n%06d\r\n" % number)


def test_records_may_cut_operations_anywhere(tls_server: ServerProcess, authority: Authority) -> None:
    with tls_server.client() as client:
        client.encrypt(authority.context())

        client.send_in_pieces(b'CONNECT {"verbose":false}\r\nSUB a 1\r\nPUB a 3\r\nabc\r\nPING\r\n')

        client.expect(b"MSG a 1 3\r\nabc\r\nPONG\r\n")


# Certificates of clients


def test_client_with_a_certificate_is_let_in(
    verifying_server: ServerProcess, authority: Authority, alice: Certificate
) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with verifying_server.client() as client:
            client.encrypt(authority.context(alice, version=version))

            client.connect()
            expect_echo(client)


def test_client_without_a_certificate_is_refused(verifying_server: ServerProcess, authority: Authority) -> None:
    expect_refused(verifying_server, authority.context())
    expect_refused(verifying_server, authority.context(version=ssl.TLSVersion.TLSv1_2))


def test_client_of_another_authority_is_refused(
    verifying_server: ServerProcess, authority: Authority, strangers: Authority
) -> None:
    expect_refused(verifying_server, authority.context(strangers.client("mallory")))


def test_client_with_an_expired_certificate_is_refused(verifying_server: ServerProcess, authority: Authority) -> None:
    expect_refused(verifying_server, authority.context(authority.client("late", days=-1)))


def test_certificate_is_not_asked_for_without_verify(
    tls_server: ServerProcess, authority: Authority, strangers: Authority
) -> None:
    with tls_server.client() as client:
        client.encrypt(authority.context(strangers.client("anyone")))

        client.connect()
        expect_echo(client)


# Client libraries


async def test_library_client_requests_over_tls(tls_server: ServerProcess, authority: Authority) -> None:
    connection = await nats.connect(
        f"tls://localhost:{tls_server.port}", tls=authority.context(), allow_reconnect=False
    )

    async def answer(message) -> None:
        await message.respond(b"answer to " + message.data)

    await connection.subscribe("question", cb=answer)
    answers = await asyncio.gather(
        *[connection.request("question", b"%d" % number, timeout=60) for number in range(200)]
    )

    assert [message.data for message in answers] == [b"answer to %d" % number for number in range(200)]
    await connection.close()


async def test_library_client_shows_its_certificate(
    verifying_server: ServerProcess, authority: Authority, alice: Certificate
) -> None:
    url = f"tls://localhost:{verifying_server.port}"
    connection = await nats.connect(url, tls=authority.context(alice), allow_reconnect=False)
    subscription = await connection.subscribe("a")

    await connection.publish("a", b"x" * LARGE_BYTES)

    message = await subscription.next_msg(timeout=60)
    assert len(message.data) == LARGE_BYTES
    await connection.close()


async def test_library_client_without_a_certificate_is_refused(
    verifying_server: ServerProcess, authority: Authority
) -> None:
    async def ignore(_: Exception) -> None:
        """The error is expected."""

    with pytest.raises((nats.errors.Error, OSError)):
        await nats.connect(
            f"tls://localhost:{verifying_server.port}",
            tls=authority.context(),
            allow_reconnect=False,
            connect_timeout=60,
            error_cb=ignore,
        )


# The configuration file


def test_handshake_comes_first(start_once, configure, authority: Authority) -> None:
    server = start_once(config=configure("handshake_first: true"))

    with server.client(tls_first=authority.context()) as client:
        assert client.info["tls_required"] is True
        client.connect()
        expect_echo(client)
    hasty = start_once(config=configure("timeout: 0.5, handshake_first: true"))
    with socket.create_connection((hasty.host, hasty.port), timeout=60) as plain:
        plain.settimeout(60)
        assert plain.recv(4096) == b""


def test_handshake_may_come_first(start_once, configure, authority: Authority) -> None:
    # Long enough for the first client to begin in time, also on a machine that is busy.
    server = start_once(config=configure('handshake_first: "4s"'))

    with server.client(tls_first=authority.context()) as client:
        client.connect()
        expect_echo(client)
    begun_at = time.monotonic()
    with server.client() as client:
        assert time.monotonic() - begun_at > 3.9
        assert client.info["tls_required"] is True
        client.encrypt(authority.context())
        client.expect_silence()
        client.connect()
        expect_echo(client)


@pytest.mark.parametrize("first", ["true", '"auto"', '"4s"'])
@pytest.mark.parametrize(
    "data",
    [
        b'CONNECT {"verbose":false}\r\nPING\r\n',
        b"C",
        b"\x16",
        b"GET / HTTP/1.1\r\n\r\n",
        b"INFO {}\r\n",
        b"\x00\xff" * 20,
    ],
)
def test_one_who_speaks_first_and_in_the_clear_hears_nothing(start_once, configure, first: str, data: bytes) -> None:
    server = start_once(config=configure(f"timeout: 0.5, handshake_first: {first}"))

    with socket.create_connection((server.host, server.port), timeout=60) as plain:
        plain.sendall(data)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := plain.recv(4096):
                heard += piece

    # At most an alert that this is no TLS.
    assert heard == b"" or (heard.startswith(ALERT) and len(heard) < 10)


def test_one_who_says_nothing_is_told_who_is_there_after_the_time_for_that(start_once, configure) -> None:
    for first, hears in (("true", False), ('"auto"', True), ('"300ms"', True), ("false", True)):
        server = start_once(config=configure(f"timeout: 0.5, handshake_first: {first}"))
        with socket.create_connection((server.host, server.port), timeout=60) as plain:
            assert plain.recv(5) == (b"INFO " if hears else b"")


def test_plain_clients_may_be_allowed(start_once, configure, authority: Authority) -> None:
    server = start_once(config=configure(rest="allow_non_tls: true"))

    with server.client() as client:
        assert client.info["tls_available"] is True
        assert "tls_required" not in client.info
        client.connect()
        expect_echo(client)
    with server.client() as client:
        client.encrypt(authority.context())
        client.connect()
        expect_echo(client)
    with server.client() as client:
        client.send(DAMAGED_HELLO)
        assert client.read_to_end()[:2] == ALERT


def test_allowed_plain_client_may_be_slow(start_once, configure) -> None:
    server = start_once(config=configure("timeout: 0.3", rest="allow_non_tls: true"))

    with server.client() as client:
        time.sleep(0.8)
        client.connect()
        expect_echo(client)


def test_oldest_version_is_obeyed(start_once, configure, authority: Authority) -> None:
    server = start_once(config=configure('min_version: "1.3"'))

    expect_refused(server, authority.context(version=ssl.TLSVersion.TLSv1_2))
    with server.client() as client:
        client.encrypt(authority.context(version=ssl.TLSVersion.TLSv1_3))
        client.connect()


def test_cipher_suites_are_obeyed(start_once, configure, authority: Authority) -> None:
    server = start_once(config=configure("cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]"))

    with server.client() as client:
        encrypted = client.encrypt(authority.context(version=ssl.TLSVersion.TLSv1_2))
        client.connect()
        suite = encrypted.cipher()
        assert suite is not None
        assert suite[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    # A list for TLS 1.2 says nothing about TLS 1.3.
    with server.client() as client:
        client.encrypt(authority.context(version=ssl.TLSVersion.TLSv1_3))
        client.connect()


def test_only_pinned_clients_are_let_in(start_once, configure, authority: Authority, alice: Certificate) -> None:
    server = start_once(config=configure(f"verify: true, pinned_certs: [{alice.key_fingerprint}]"))

    with server.client() as client:
        client.encrypt(authority.context(alice))
        client.connect()
        expect_echo(client)
    expect_refused(server, authority.context(authority.client("bob")))


def test_handshake_is_as_slow_as_the_timeout_allows(start_once, configure) -> None:
    server = start_once(config=configure("timeout: 0.5"))

    begun_at = time.monotonic()
    with server.client() as client:
        client.expect_closed()
        assert time.monotonic() - begun_at > 0.3


def test_time_for_connect_begins_after_the_handshake(start_once, configure, authority: Authority) -> None:
    server = start_once(config=configure(rest="authorization { token: t0ken, timeout: 1 }"))

    with server.client() as client:
        time.sleep(1.3)
        begun_at = time.monotonic()
        client.encrypt(authority.context())
        client.expect_error_and_closed("Authentication Timeout")
        assert time.monotonic() - begun_at > 0.7
    patient = start_once(config=configure(rest="authorization { token: t0ken, timeout: 60 }"))
    with patient.client() as client:
        client.encrypt(authority.context())
        client.connect(auth_token="t0ken")


def test_connection_too_many_is_told_in_the_clear(start_server, configure) -> None:
    server = start_server(config=configure(rest="max_connections: 1"))

    with server.client(), server.client() as other:
        other.expect_error_and_closed("maximum connections exceeded")


def test_users_are_known_by_their_certificates(start_once, configure, authority: Authority, alice: Certificate) -> None:
    users = """
        authorization { users: [
          { user: "alice@example.com", permissions: { publish: "echo", subscribe: "echo" } }
          { user: "CN=bob,O=Acme", permissions: { publish: "echo", subscribe: "echo" } }
        ] }
    """
    server = start_once(config=configure("verify_and_map: true", rest=users))
    bob = authority.client("bob", subject={"O": "Acme", "CN": "bob"})

    for certificate in (alice, bob):
        with server.client() as client:
            client.encrypt(authority.context(certificate))
            client.connect()
            expect_echo(client)
            client.send(b"PUB other 0\r\n\r\n")
            client.expect_error('Permissions Violation for Publish to "other"')
    with server.client() as client:
        client.encrypt(authority.context(authority.client("carol")))
        client.send_connect()
        client.expect_error_and_closed("Authorization Violation")


def test_new_certificate_is_shown_after_a_reload_and_old_connections_stay(
    start_server, configure, authority: Authority
) -> None:
    old, new = authority.server("old"), authority.server("new")
    server = start_server(config=configure(certificate=old))
    config_file = server.folder / "server.conf"
    with server.client() as before:
        old_serial = serial_number(before.encrypt(authority.context()))
        before.connect()

        config_file.write_text(configure(certificate=new))
        server.signal(signal.SIGHUP)
        server.wait_for_log("Reloaded")

        with server.client() as after:
            assert serial_number(after.encrypt(authority.context())) != old_serial
            after.connect()
            expect_echo(after)
        before.expect_pong()


def test_certificate_that_cannot_be_used_is_refused_at_a_reload_and_the_old_one_stays(
    start_server, configure, authority: Authority
) -> None:
    old, new = authority.server("kept"), authority.server("broken")
    server = start_server(config=configure(certificate=old))
    new.key_file.write_text("no key")

    (server.folder / "server.conf").write_text(configure(certificate=new))
    server.signal(signal.SIGHUP)
    server.wait_for_log("Failed to reload")

    with server.client() as client:
        client.encrypt(authority.context())
        client.connect()


def serial_number(encrypted: ssl.SSLSocket) -> str:
    certificate = encrypted.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


@pytest.mark.parametrize("wrong", ["missing", "mismatch"])
def test_server_does_not_start_with_files_that_cannot_be_used(
    start_server, flags: list[str], authority: Authority, tmp_path: Path, wrong: str
) -> None:
    key_file = tmp_path / "missing.pem" if wrong == "missing" else authority.client("other").key_file
    with pytest.raises(RuntimeError, match="ended with 1"):
        start_server([*flags[:2], f"--tlskey={key_file}", flags[3]])
