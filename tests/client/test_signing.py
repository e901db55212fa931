"""Users with keys: a seed alone on both servers, a JWT with its seed on a server that trusts an operator."""

from __future__ import annotations

from pathlib import Path

import nkeys
import pytest

from jetlake.client.access import Access, connect
from jetlake.client.user_keys import read_jwt
from jetlake.errors import ClientError, ConfigurationError
from tests.compatibility.server_process import start_server_process
from tests.operator import trusted, write_credentials

SEED = b"SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4"
PUBLIC = nkeys.from_seed(bytearray(SEED)).public_key.decode()


async def test_key_alone_is_enough(server_kind: str, tmp_path: Path) -> None:
    (tmp_path / "user.nk").write_bytes(SEED + b"\n")
    server = start_server_process(server_kind, tmp_path, config=f"authorization {{ users: [ {{nkey: {PUBLIC}}} ] }}")
    try:
        connection = await connect(Access(url=server.url, nkey=tmp_path / "user.nk"))

        assert connection.is_connected
        await connection.close()
        with pytest.raises(ClientError, match=r"rejected the login\. Use --user and --password"):
            await connect(Access(url=server.url))
    finally:
        server.stop()


@pytest.mark.nats_server
async def test_credentials_file_is_enough_for_a_server_that_trusts_an_operator(tmp_path: Path) -> None:
    user = trusted(SEED)
    path = write_credentials(tmp_path / "user.creds", user)
    server = start_server_process("nats-server", tmp_path, config=user.config)
    try:
        connection = await connect(Access(url=server.url, credentials=path))

        assert connection.is_connected
        assert read_jwt(path) == user.user_jwt
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
