"""The blocking connection: every way to be let in, requests, and what it says when something is wrong."""

import base64
import binascii
import json
import socket
import threading
import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_credentials import ClientCredentials
from jetlake.client.raw_streams import Streams
from jetlake.client.user_keys import UserKey
from jetlake.errors import ClientError, ConfigurationError
from tests.compatibility.certificates import Authority
from tests.compatibility.server_process import start_server_process

SEED = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"

KINDS = [
    pytest.param("jetlake", marks=pytest.mark.jetlake),
    pytest.param("nats-server", marks=pytest.mark.nats_server),
]


@pytest.fixture(params=KINDS)
def start(request, tmp_path_factory):
    """A function that starts a server of each kind with flags or a configuration."""
    processes = []

    def run(flags=None, config=None, kind=request.param):
        processes.append(start_server_process(kind, tmp_path_factory.mktemp(kind), flags, config))
        return processes[-1]

    yield run
    for process in processes:
        process.stop()


def greet(**settings):
    """Connect and return what the server says of the connection."""
    with RawConnection(ConnectionSettings(**settings)) as connection:
        return connection.info


def test_requests_are_answered_and_unheard_ones_are_named(start, tmp_path):
    server = start(["-js", "-sd", str(tmp_path / "store")])

    with RawConnection(ConnectionSettings(url=server.url)) as connection:
        streams = Streams(connection)
        streams.ask("STREAM.CREATE.A", {"name": "A", "subjects": ["a"]})
        assert connection.request("a", b"x").json() == {"stream": "A", "seq": 1}
        assert connection.request("a", b"y", headers=b"NATS/1.0\r\nK: v\r\n\r\n").json()["seq"] == 2
        assert streams.names() == ["A"]
        assert streams.state("A").next_sequence == 3
        assert connection.is_jetlake == (server.kind == "jetlake")
        with pytest.raises(ClientError, match="nobody answers b"):
            connection.request("b")
        with pytest.raises(ClientError, match="stream not found"):
            streams.state("B")


def test_users_and_tokens_are_let_in_by_option_and_by_address(start):
    by_user = start(config="authorization { user: ann, password: s3cret }")
    address = by_user.url.removeprefix("nats://")

    assert greet(url=by_user.url, credentials=ClientCredentials(user="ann", password="s3cret"))["server_id"]
    assert greet(url=f"nats://ann:s3cret@{address}")["server_id"]
    with pytest.raises(ClientError, match="Authorization Violation"):
        greet(url=by_user.url, credentials=ClientCredentials(user="ann", password="wrong"))
    with pytest.raises(ClientError, match="check the credentials"):
        greet(url=by_user.url)

    by_token = start(config="authorization { token: t0ken }")
    assert greet(url=by_token.url, credentials=ClientCredentials(token="t0ken"))["server_id"]
    assert greet(url=f"nats://t0ken@{by_token.url.removeprefix('nats://')}")["server_id"]


def test_keys_are_let_in_by_seed_and_by_file(start, tmp_path):
    server = start(config=f"authorization {{ users: [ {{ nkey: {PUBLIC} }} ] }}")
    (tmp_path / "seed").write_text(f"{SEED}\n")

    assert UserKey(SEED).public_text == PUBLIC
    assert greet(url=server.url, credentials=ClientCredentials(nkey_seed=SEED))["server_id"]
    assert greet(url=server.url, credentials=ClientCredentials(nkey_seed=str(tmp_path / "seed")))["server_id"]


@pytest.mark.nats_server
def test_a_credentials_file_is_let_in(tmp_path):
    operator, account, user = Key("O"), Key("A"), Key("U")
    tokens = {
        "operator": operator.token(operator, {"type": "operator", "version": 2}),
        "account": operator.token(account, {"type": "account", "version": 2, "limits": UNLIMITED}),
        "user": account.token(user, {"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1}),
    }
    config = (
        f"operator: {tokens['operator']}\nresolver: MEMORY\n"
        f"resolver_preload {{ {account.public}: {tokens['account']} }}\n"
    )
    file = tmp_path / "user.creds"
    file.write_text(
        f"-----BEGIN NATS USER JWT-----\n{tokens['user']}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
    )
    server = start_server_process("nats-server", tmp_path, config=config)
    try:
        assert greet(url=server.url, credentials=ClientCredentials(credentials_file=str(file)))["server_id"]
        with pytest.raises(ClientError, match="Authorization Violation"):
            greet(url=server.url)
    finally:
        server.stop()


def test_tls_is_spoken_with_and_without_a_certificate(start, tmp_path):
    authority = Authority(tmp_path)
    of_server, of_client = authority.server(), authority.client()
    flags = [
        "--tls",
        f"--tlscert={of_server.certificate_file}",
        f"--tlskey={of_server.key_file}",
        f"--tlscacert={authority.file}",
    ]
    plain, verifying = start(flags), start([*flags, "--tlsverify"])
    trust = {"tls_ca": str(authority.file)}

    assert greet(url=plain.url, **trust)["tls_required"]
    assert greet(url=plain.url.replace("nats://", "tls://"), **trust)["tls_required"]
    with pytest.raises(ClientError, match=r"TLS with .* failed"):
        greet(url=plain.url)
    certificate = {"tls_certificate": str(of_client.certificate_file), "tls_key": str(of_client.key_file)}
    assert greet(url=verifying.url, **trust, **certificate)["tls_verify"]


def test_tls_may_come_first(start, tmp_path):
    authority = Authority(tmp_path)
    certificate = authority.server()
    server = start(
        config=f'tls {{ cert_file: "{certificate.certificate_file}", key_file: "{certificate.key_file}", '
        "handshake_first: true }"
    )

    assert greet(url=server.url, tls_ca=str(authority.file), tls_first=True)["server_id"]


def test_a_server_without_tls_is_told_apart(start):
    with pytest.raises(ClientError, match="does not speak TLS"):
        greet(url=start().url.replace("nats://", "tls://"))


def test_the_first_address_that_answers_is_taken(start):
    server = start()

    assert greet(url=f"nats://127.0.0.1:1,{server.url}")["server_id"]


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nats://127.0.0.1:1", "check that a server runs there"),
        ("http://127.0.0.1:1", "write nats://host:4222"),
    ],
)
def test_addresses_that_cannot_work_are_told(url, says):
    with pytest.raises((ClientError, ConfigurationError), match=says):
        greet(url=url)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"x" * 100_000, b"INFO {broken\r\n"])
def test_something_that_is_no_nats_server_is_told_apart(answer):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        client, _ = listener.accept()
        client.sendall(answer)
        time.sleep(0.2)
        client.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with pytest.raises(ClientError, match=r"not a NATS server|not JSON|no end of a line"):
            greet(url=f"nats://127.0.0.1:{listener.getsockname()[1]}")
    finally:
        thread.join()
        listener.close()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"user": "a", "token": "b"}, "authenticate in one way"),
        ({"nkey_seed": "SUBAD"}, "58 letters"),
        ({"nkey_seed": "not/there"}, "cannot read not/there"),
        ({"credentials_file": "not/there"}, "cannot read not/there"),
    ],
)
def test_credentials_that_cannot_work_are_refused_without_being_shown(given, says):
    with pytest.raises(ConfigurationError, match=says):
        ClientCredentials(**given).connect_fields("nonce")


def test_a_file_without_credentials_is_named(tmp_path):
    (tmp_path / "empty").write_text("nothing")

    with pytest.raises(ConfigurationError, match="holds no user JWT"):
        ClientCredentials(credentials_file=str(tmp_path / "empty")).connect_fields("nonce")
    with pytest.raises(ConfigurationError, match="holds no seed"):
        ClientCredentials(nkey_seed=str(tmp_path / "empty")).connect_fields("nonce")


UNLIMITED = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage"), -1)


class Key:
    """A key of an operator, an account or a user, as text and to sign tokens with."""

    PREFIXES = {"O": 14 << 3, "A": 0, "U": 20 << 3}  # noqa: RUF012

    def __init__(self, kind: str) -> None:
        self._key = Ed25519PrivateKey.generate()
        prefix = self.PREFIXES[kind]
        self.public = self._text(bytes([prefix]) + self._key.public_key().public_bytes_raw())
        self.seed = self._text(bytes([18 << 3 | prefix >> 5, (prefix & 31) << 3]) + self._key.private_bytes_raw())

    def token(self, subject: "Key", claims: dict) -> str:
        """Return a token by this key about another one."""
        body = {"jti": "test", "iat": int(time.time()), "iss": self.public, "name": "test", "sub": subject.public}
        parts = [encoded({"typ": "JWT", "alg": "ed25519-nkey"}), encoded({**body, "nats": claims})]
        signature = self._key.sign(".".join(parts).encode())
        return ".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=").decode()])

    @staticmethod
    def _text(body: bytes) -> str:
        return base64.b32encode(body + binascii.crc_hqx(body, 0).to_bytes(2, "little")).rstrip(b"=").decode()


def encoded(value: dict) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
