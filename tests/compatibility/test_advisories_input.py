"""Classes of NATS security advisories, 2020 to 2026: hostile input, memory, files, leaks and cryptography.

One test per class; its docstring names the advisories. Frames and compression of WebSocket are in
`test_websocket_frames.py` and `test_websocket_compression.py`. Not here, because there is nothing of it to attack yet:
MQTT, import loops, archives that are restored. The port for leaf nodes is in `test_leafnode_access.py`. That unknown
clients may fill no memory is measured besides, by `benchmarks/flood.py`. Who comes in and what it may do is in
`test_advisories_access.py`.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.certificates import Authority
from tests.compatibility.monitored import Monitored, monitored_of
from tests.compatibility.server_process import ServerProcess
from tests.compatibility.test_nkeys import PUBLIC, sign
from tests.compatibility.wire import RawClient

INTEGER_MAX = 2**63 - 1

# How long the server may take to close a client that dawdles; it closes after five seconds, a busy machine later.
CLOSED_SECONDS_MAX = 60.0

# What a client could write into a log, a page or a line of the protocol.
HOSTILE_TEXT = "a\r\nPUB injected 0\r\n\r\n[1] 2026/01/01 00:00:00 [INF] forged\x00\x1b[31m\u2028"

# The group of a prime order in which ed25519 works: a signature plus this is the same to a careless check.
ED25519_ORDER = 2**252 + 27742317777372353535851937790883648493

PAGES = (
    *["/", "/varz", "/connz?auth=1&subs=detail&state=all", "/subsz?subs=detail", "/accountz?acc=$G", "/jsz?config=1"],
    *["/accstatz?unused=1", "/stacksz", "/debug/vars", "/healthz?details=1", "/routez", "/leafz", "/gatewayz"],
)


@pytest.fixture
def start_monitored(start_server) -> Callable[..., Monitored]:
    """Start a server with pages."""
    return lambda flags=(), **options: monitored_of(start_server(["-m", "-1", *flags], **options))


def ask(client: RawClient, subject: bytes, payload: bytes = b"") -> bytes:
    client.send(b"SUB answer 77\r\nPUB %s answer %d\r\n%s\r\n" % (subject, len(payload), payload))
    answer = client.read_line()
    client.send(b"UNSUB 77\r\n")
    return answer.split(b"\r\n", 1)[1]


# Injection


def test_control_bytes_of_a_client_end_no_line(start_monitored: Callable[..., Monitored]) -> None:
    """NATS-2026-22: line ends in a client's words became operations on another connection."""
    monitored = start_monitored(
        ["-DV"], config="authorization { users: [ {user: a, password: a}, {user: b, password: b} ] }"
    )
    server = monitored.server
    with server.client() as spy, server.client() as client:
        spy.connect(**{"user": "a", "pass": "a"})
        spy.send(b"SUB injected 1\r\nSUB open 2\r\n")
        spy.expect_pong()
        client.connect(**{"user": "b", "pass": "b", "name": HOSTILE_TEXT, "lang": HOSTILE_TEXT, "version": "\r\n"})
        client.send(b"SUB open q\x00\x1b 1\r\nPUB open reply\x00\x1b\rx 2\r\n\r\n\r\n")

        spy.expect(b"MSG open 2 reply\x00\x1b\rx 2\r\n\r\n\r\n")
        client.expect(b"MSG open 1 reply\x00\x1b\rx 2\r\n\r\n\r\n")
        spy.expect_pong()
        (shown,) = (each for each in monitored.connections("?subs=detail") if each["cid"] == client.info["client_id"])
        assert (shown["name"], shown["lang"]) == (HOSTILE_TEXT, HOSTILE_TEXT)
    with server.client() as stranger:
        stranger.send_connect(**{"user": HOSTILE_TEXT, "pass": "x", "name": HOSTILE_TEXT})
        stranger.expect_error_and_closed("Authorization Violation")
    log = server.wait_for_log("authentication error")

    if server.kind == "jetlake":
        # nats-server writes some of this as it came.
        assert not re.search(r"^(?!\[\d+\] \d{4}/\d\d/\d\d )", log.rstrip("\n"), re.MULTILINE)
        assert "\x1b" not in log


@pytest.mark.parametrize("target", ["//a%0d%0aSet-Cookie:%20x=1/../varz", "/x%0d%0a/../connz", "//%0aX:y/"])
def test_control_bytes_of_a_request_end_no_header(start_monitored: Callable[..., Monitored], target: str) -> None:
    """NATS-2026-22, for the pages: what is told in a redirection is told in one line."""
    answer = start_monitored().exchange(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())

    head = answer.partition(b"\r\n\r\n")[0]
    assert answer.startswith(b"HTTP/1.1 ")
    assert not re.search(rb"^(Set-Cookie|X):", head, re.MULTILINE)


# Numbers


def test_numbers_that_overflow_end_nothing(start_monitored: Callable[..., Monitored]) -> None:
    """NATS-2026-28: offset plus limit overflowed; CVE-2022-42708, CVE-2020-26521: other numbers nobody had checked."""
    config = "accounts { $SYS { users: [ {user: admin, password: admin} ] } }"
    monitored = start_monitored(config=config)
    numbers = (-1, 0, 1, 2**31, 2**32, INTEGER_MAX, -INTEGER_MAX - 1)
    with monitored.server.client() as admin, monitored.server.client() as witness:
        witness.connect()
        admin.connect(**{"user": "admin", "pass": "admin"})
        for page in ("connz", "subsz"):
            for offset in numbers:
                for limit in numbers:
                    answer = monitored.get(f"/{page}?subs=1&offset={offset}&limit={limit}")
                    assert answer.status == 200, (page, offset, limit)
                    body = b'{"offset":%d,"limit":%d,"subscriptions":true}' % (offset, limit)
                    reply = json.loads(ask(admin, b"$SYS.REQ.SERVER.PING.%s" % page.upper().encode(), body))
                    assert reply["data"]["offset"] >= 0, (page, offset, limit)
        for number in ("1e400", "99999999999999999999", '"1"', "1.5", "[]", "{" * 500, "-" * 500):
            for field in ("offset", "limit", "cid", "state"):
                body = b'{"%s":%s}' % (field.encode(), number.encode())
                assert json.loads(ask(admin, b"$SYS.REQ.SERVER.PING.CONNZ", body))["error"]["code"] == 400

        witness.expect_pong()


@pytest.mark.parametrize(
    "line",
    [
        *[b"PUB a 99999999999999999999", b"PUB a -1", b"PUB a 9223372036854775807", b"PUB a 2147483648"],
        *[b"HPUB a 9223372036854775807 1", b"HPUB a 5 2", b"HPUB a -1 -1", b"HPUB a 4294967296 4294967297"],
    ],
)
def test_sizes_that_overflow_end_one_connection(server: ServerProcess, line: bytes) -> None:
    """CVE-2026-27889: the length of a frame was trusted; here it is the size of a message."""
    with server.client() as witness, server.client() as client:
        witness.connect()
        client.connect(headers=True)
        client.send(line + b"\r\n")

        assert client.read_to_end() in {b"", b"-ERR 'Maximum Payload Violation'\r\n"}
        witness.expect_pong()


# Memory


def test_unknown_client_may_neither_stay_nor_grow(start_server) -> None:
    """NATS-2026-25, CVE-2026-27571 and CVE-2026-33219: unfinished greetings held memory before any authentication."""
    server = start_server(config="authorization { user: ann, password: ann, timeout: 5 }")
    with server.client() as slow, server.client() as fat, server.client() as known:
        known.connect(**{"user": "ann", "pass": "ann"})
        begun_at = time.monotonic()
        fat.send(b'CONNECT {"name":"' + b"x" * 200_000)
        assert fat.read_to_end() in {b"", b"-ERR 'maximum control line exceeded'\r\n"}
        while time.monotonic() - begun_at < CLOSED_SECONDS_MAX and not slow._closed_by_server:
            slow.send(b"C" if time.monotonic() - begun_at < 0.05 else b"O")
            time.sleep(0.2)

        assert slow.read_to_end() != b""
        known.expect_pong()


# Files


def test_names_of_clients_and_accounts_make_no_paths(start_server, tmp_path: Path) -> None:
    """CVE-2022-28357: an account's name became the name of a file; CVE-2022-26652: so did those of an archive."""
    inside = tmp_path / "inside"
    inside.mkdir()
    name = "../../outside"
    server = start_server(
        ["-sd", str(inside / "store"), "--ports_file_dir", str(inside), "-P", str(inside / "pid")],
        config=f"""
          jetstream: enabled, server_name: "{name}"
          accounts {{ "{name}" {{ jetstream: enabled, users: [ {{user: "{name}", password: a}} ] }} }}
        """,
    )
    with server.client() as client:
        client.connect(**{"user": name, "pass": "a", "name": name, "lang": name})
        client.send(b"SUB outside /../outside 1\r\n")
        client.expect_pong()

    assert [path.name for path in tmp_path.iterdir()] == ["inside"]
    assert not list(tmp_path.rglob("*outside*"))
    assert not (tmp_path.parent / "outside").exists()


# Leaks


def test_no_page_and_no_line_shows_a_credential(start_monitored: Callable[..., Monitored]) -> None:
    """CVE-2020-26149, CVE-2026-33216 and CVE-2026-33247: passwords in options, pages and the command line."""
    secrets = {"pass": "hidden-1", "auth_token": "hidden-2", "sig": "hidden-3", "jwt": "hidden-4"}
    monitored = start_monitored(["--user", "ann", "--pass", "hidden-1", "-DV"])
    server = monitored.server
    with server.client() as client, server.client() as stranger:
        client.connect(user="ann", protocol=1, **secrets)
        stranger.send_connect(user="ann", **{**secrets, "pass": "hidden-5"})
        stranger.expect_error_and_closed("Authorization Violation")
        shown = [client.info_line, json.dumps(client.connected_info).encode()]
        shown += [monitored.get(path).body for path in PAGES]
        shown.append(ask(client, b"$SYS.REQ.USER.INFO"))
        shown.append(ask(client, b"$SYS.REQ.ACCOUNT.PING.CONNZ", b'{"auth":true,"state":2}'))
    log = server.wait_for_log("authentication error")
    if server.kind == "nats-server":
        # It traces signatures, which are good for one connection, and tokens of operator mode.
        log = log.replace("hidden-3", "").replace("hidden-4", "")

    assert not [text for text in [*shown, log.encode()] if b"hidden-" in text]


def test_no_page_shows_a_token(start_monitored: Callable[..., Monitored]) -> None:
    """CVE-2026-33216, and bearer tokens in /connz?auth=1: what lets a client in is not what names it."""
    monitored = start_monitored(["--auth", "hidden-token", "-DV"])
    with monitored.server.client() as client:
        client.connect(auth_token="hidden-token")
        shown = [monitored.get(path).body for path in PAGES]
        named = monitored.connections("?auth=1")[0]["authorized_user"]

    assert named == "[REDACTED]"
    assert not [text for text in [*shown, monitored.server.log().encode()] if b"hidden-" in text]


# Cryptography


def test_signature_is_accepted_in_its_one_form_only(start_server) -> None:
    """CVE-2023-46129: keys that were no keys. Of a signature, too, there is one form, and all others are refused."""
    server = start_server(config=f"authorization {{ users: [ {{nkey: {PUBLIC}}} ] }}")

    def changed(signature: bytes) -> dict[str, bytes]:
        scalar = int.from_bytes(signature[32:], "little")
        return {
            "as signed": signature,
            "plus the order": signature[:32] + (scalar + ED25519_ORDER).to_bytes(32, "little"),
            "zero": bytes(64),
            "identity": b"\x01" + bytes(63),
            "cut": signature[:63],
            "doubled": signature * 2,
        }

    for name in changed(bytes(64)):
        with server.client() as client:
            padded = sign(client.info["nonce"]) + "=="
            signature = changed(base64.urlsafe_b64decode(padded))[name]
            text = base64.urlsafe_b64encode(signature).rstrip(b"=").decode()
            client.send_connect(verbose=False, nkey=PUBLIC, sig=text)
            client.send(b"PING\r\n")
            assert (client.read_line() == b"PONG\r\n") == (name == "as signed"), name


def test_flags_offer_no_weaker_ciphers_than_a_file(start_server, tmp_path: Path) -> None:
    """CVE-2021-32026: with TLS switched on by flags, ciphers were offered that are off by default."""
    authority = Authority(tmp_path)
    files = authority.server()
    server = start_server(["--tls", "--tlscert", str(files.certificate_file), "--tlskey", str(files.key_file)])
    for ciphers in ("ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384"):
        context = authority.context(version=ssl.TLSVersion.TLSv1_2)
        context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
        with server.client() as client, pytest.raises((ssl.SSLError, ConnectionError)):
            client.encrypt(context)
    with server.client() as client:
        client.encrypt(authority.context(version=ssl.TLSVersion.TLSv1_2))
        client.connect()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_session_of_before_does_not_outlive_its_authority(
    start_server, tmp_path: Path, version: ssl.TLSVersion
) -> None:
    """CVE-2025-68121, of Go: a resumed session was believed after the trusted authorities had changed."""
    first, second = (Authority(tmp_path, name) for name in ("First", "Second"))
    files = first.server()

    def configuration(trusted: Authority) -> str:
        return f"""tls {{ cert_file: "{files.certificate_file}", key_file: "{files.key_file}"
                          ca_file: "{trusted.file}", verify: true }}"""

    server = start_server(config=configuration(first))
    context = first.context(first.client("alice"), version=version)
    with server.client() as client:
        encrypted = client.encrypt(context)
        client.connect()
        session = encrypted.session
    (server.folder / "server.conf").write_text(configuration(second))
    server.signal(signal.SIGHUP)
    server.wait_for_log("Reloaded")

    # Its own side of the handshake may be over before the client hears that it failed.
    with server.client() as client, pytest.raises(ssl.SSLError, match=r"(?i)alert"):
        client.encrypt(context, session).recv(1)
