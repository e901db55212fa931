"""NKEYs: a client signs the nonce of INFO."""

from __future__ import annotations

import base64

import nats
import nkeys
import pytest

from tests.compatibility.server_process import ServerProcess
from tests.compatibility.wire import RawClient

SEED = b"SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"
PUBLIC = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"

CONFIG = f"""
accounts {{
  KEYS {{ users: [ {{nkey: {PUBLIC}, permissions: {{publish: {{deny: secret}}}}}} ] }}
  WORDS {{ users: [ {{user: ann, password: a}} ] }}
}}
"""


def sign(nonce: str) -> str:
    raw = nkeys.from_seed(bytearray(SEED)).sign(nonce.encode())
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.fixture
def server(start_server) -> ServerProcess:
    return start_server(config=CONFIG)


def connect(client: RawClient, **options: object) -> None:
    client.connect(protocol=1, nkey=PUBLIC, sig=sign(client.info["nonce"]), **options)


def test_nonce_is_new_for_every_client(server: ServerProcess) -> None:
    with server.client() as one, server.client() as other:
        assert len(one.info["nonce"]) == 15
        assert one.info["nonce"] != other.info["nonce"]


def test_signature_of_the_nonce_is_accepted(server: ServerProcess) -> None:
    with server.client() as client:
        connect(client)

        assert client.connected_info["remote_account"] == "KEYS"


def test_permissions_of_a_key_hold(server: ServerProcess) -> None:
    with server.client() as client:
        connect(client)
        client.send(b"PUB secret 0\r\n\r\n")

        client.expect_error('Permissions Violation for Publish to "secret"')


def test_password_works_beside_keys(server: ServerProcess) -> None:
    with server.client() as client:
        client.connect(**{"protocol": 1, "user": "ann", "pass": "a"})

        assert client.connected_info["remote_account"] == "WORDS"


def test_signature_of_another_connection_is_refused(server: ServerProcess) -> None:
    with server.client() as one, server.client() as other:
        other.send_connect(verbose=False, nkey=PUBLIC, sig=sign(one.info["nonce"]))

        other.expect_error_and_closed("Authorization Violation")


@pytest.mark.parametrize(
    "options",
    [
        {"nkey": PUBLIC},
        {"nkey": PUBLIC, "sig": ""},
        {"nkey": PUBLIC, "sig": "x"},
        {"nkey": PUBLIC, "sig": "A" * 86},
        {"nkey": "UABC", "sig": "A" * 86},
        {"nkey": PUBLIC, "user": "ann", "pass": "a"},
        {"user": PUBLIC, "pass": ""},
    ],
    ids=str,
)
def test_anything_else_is_refused(server: ServerProcess, options: dict) -> None:
    with server.client() as client:
        client.send_connect(verbose=False, **options)

        client.expect_error_and_closed("Authorization Violation")


def test_right_signature_for_another_key_is_refused(server: ServerProcess) -> None:
    with server.client() as client:
        other = nkeys.from_seed(bytearray(b"SUAEL6GG2L2HIF7DUGZJGMRUFKXELGGYFMHF76UO2AYBG3K4YLWR3FKC2Q"))
        client.send_connect(verbose=False, nkey=other.public_key.decode(), sig=sign(client.info["nonce"]))

        client.expect_error_and_closed("Authorization Violation")


def test_nkey_without_credentials_may_be_the_user_for_that(start_server) -> None:
    server = start_server(config=f"{CONFIG}\nno_auth_user: {PUBLIC}")

    with server.client() as client:
        client.connect(protocol=1)
        assert client.connected_info["remote_account"] == "KEYS"
    with server.client() as client:
        client.send_connect(verbose=False, user="bob")
        client.expect_error_and_closed("Authorization Violation")


async def test_nats_py_signs(server: ServerProcess, tmp_path) -> None:
    (tmp_path / "seed").write_bytes(SEED)

    client = await nats.connect(server.url, nkeys_seed=str(tmp_path / "seed"), allow_reconnect=False)
    subscription = await client.subscribe("greetings")
    await client.publish("greetings", b"hi")

    assert (await subscription.next_msg(timeout=60)).data == b"hi"
    await client.close()
