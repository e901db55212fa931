"""Users with keys: a seed alone on both servers, a JWT with its seed on a server that trusts an operator."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import nkeys
import pytest

from jetlake.client.access import Access, connect
from jetlake.client.user_keys import read_jwt
from jetlake.errors import ClientError, ConfigurationError
from tests.compatibility.server_process import start_server_process

SEED = b"SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4"
PUBLIC = nkeys.from_seed(bytearray(SEED)).public_key.decode()


def key_of(prefix: int, text: bytes) -> nkeys.KeyPair:
    """Return the key that a text makes, of an operator, an account or a user."""
    return nkeys.from_seed(bytearray(nkeys.encode_seed(hashlib.sha256(text).digest(), prefix)))


def signed(issuer: nkeys.KeyPair, subject: nkeys.KeyPair, kind: str, **claims: object) -> str:
    """Return a JWT as NATS has them."""
    body = {
        "iat": 1700000000,
        "iss": issuer.public_key.decode(),
        "name": kind,
        "sub": subject.public_key.decode(),
        "nats": {"type": kind, "version": 2, **claims},
    }
    body["jti"] = base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
    parts = [encoded(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ed25519-nkey"}, body)]
    return ".".join([*parts, encoded(issuer.sign(".".join(parts).encode()))])


def encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


async def test_key_alone_is_enough(server_kind: str, tmp_path: Path) -> None:
    (tmp_path / "user.nk").write_bytes(SEED + b"\n")
    server = start_server_process(server_kind, tmp_path, config=f"authorization {{ users: [ {{nkey: {PUBLIC}}} ] }}")
    try:
        connection = await connect(Access(url=server.url, nkey=tmp_path / "user.nk"))

        assert connection.is_connected
        await connection.close()
        with pytest.raises(ClientError, match=r"(?i)authorization violation"):
            await connect(Access(url=server.url))
    finally:
        server.stop()


@pytest.mark.nats_server
async def test_credentials_file_is_enough_for_a_server_that_trusts_an_operator(tmp_path: Path) -> None:
    operator, account = key_of(nkeys.PREFIX_BYTE_OPERATOR, b"operator"), key_of(nkeys.PREFIX_BYTE_ACCOUNT, b"account")
    user = nkeys.from_seed(bytearray(SEED))
    limits = {"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": True, "conn": -1}
    account_jwt = signed(operator, account, "account", limits=limits)
    user_jwt = signed(account, user, "user", subs=-1, data=-1, payload=-1, pub={}, sub={})
    config = (
        f"operator: {signed(operator, operator, 'operator')}\nresolver: MEMORY\n"
        f"resolver_preload: {{ {account.public_key.decode()}: {account_jwt} }}"
    )
    path = tmp_path / "user.creds"
    path.write_text(
        f"-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{SEED.decode()}\n------END USER NKEY SEED------\n"
    )
    server = start_server_process("nats-server", tmp_path, config=config)
    try:
        connection = await connect(Access(url=server.url, credentials=path))

        assert connection.is_connected
        assert read_jwt(path) == user_jwt
        await connection.close()
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("nothing", "holds no seed"),
        (SEED.decode().replace("HLXC", "HLXD"), "its checksum is wrong"),
        (None, "cannot read"),
    ],
)
async def test_file_without_a_good_key_is_told(tmp_path: Path, content: str | None, text: str) -> None:
    path = tmp_path / "user.nk"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConfigurationError, match=text):
        await connect(Access(nkey=path))


async def test_credentials_without_a_jwt_are_told(tmp_path: Path) -> None:
    (tmp_path / "user.creds").write_bytes(SEED)

    with pytest.raises(ConfigurationError, match="holds no user JWT"):
        await connect(Access(credentials=tmp_path / "user.creds"))
