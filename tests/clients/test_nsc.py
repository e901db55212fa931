"""NATS' own tool for operators, nsc: it configures either server, and pushes, pulls, compares and removes accounts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import nats
import pytest

from tests.clients.client_script import CACHE, SOURCES, prepare, require_tool
from tests.compatibility.server_process import ServerProcess, start_server_process

COMMAND_S_MAX = 60.0
PACKAGE = "github.com/nats-io/nsc/v2"

# Building nsc takes minutes from nothing.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("JETLAKE_LONG"), reason="builds nsc: make test-long"),
    pytest.mark.timeout(900),
]

Nsc = Callable[..., str]


@pytest.fixture(scope="module")
def program() -> Path:
    go = require_tool("go", "apt-get install golang")
    built = CACHE / "nsc" / "nsc"
    built.parent.mkdir(parents=True, exist_ok=True)
    prepare([go, "build", "-o", str(built), PACKAGE], SOURCES / "nsc")
    return built


@pytest.fixture
def nsc(program: Path, tmp_path: Path) -> Nsc:
    """Run nsc in a home of its own, and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NATS_", "NSC_", "XDG_"))}
    own = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "c"), "XDG_DATA_HOME": str(tmp_path / "d")}
    environment = {**kept, **own, "NKEYS_PATH": str(tmp_path / "keys"), "NSC_NO_GIT_IGNORE": "true"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(program), *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S_MAX,
            env=environment,
            cwd=tmp_path,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"nsc {' '.join(words)} ended with {done.returncode}:\n{printed}"
        return printed

    run("add", "operator", "--name", "harbour", "--sys", "--generate-signing-key")
    run("add", "account", "shop")
    run("edit", "account", "shop", "--js-disk-storage", "10M", "--js-streams", "2")
    run("add", "user", "--account", "shop", "ada")
    return run


@pytest.fixture
def server(nsc: Nsc, server_kind: str, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server with the configuration that nsc makes, which nsc knows the address of."""
    nsc("generate", "config", "--nats-resolver", "--sys-account", "SYS", "--config-file", str(tmp_path / "made.conf"))
    config = (tmp_path / "made.conf").read_text().replace("allow_delete: false", "allow_delete: true")
    folder = tmp_path / "server"
    folder.mkdir()
    process = start_server_process(server_kind, folder, ["-js", "-sd", str(folder / "store")], config)
    nsc("edit", "operator", "--account-jwt-server-url", process.url)
    yield process
    process.stop()


def credentials(tmp_path: Path) -> str:
    return str(tmp_path / "keys" / "creds" / "harbour" / "shop" / "ada.creds")


async def test_account_that_nsc_pushes_can_be_used(nsc: Nsc, server: ServerProcess, tmp_path: Path) -> None:
    printed = nsc("push", "--all")

    assert 'pushed "shop"' in printed
    client = await nats.connect(server.url, user_credentials=credentials(tmp_path), allow_reconnect=False)
    information = await client.jetstream().account_info()
    assert (information.limits.max_storage, information.limits.max_streams) == (10_000_000, 2)
    await client.close()


def test_nsc_pulls_and_compares_what_it_pushed(nsc: Nsc, server: ServerProcess) -> None:
    nsc("push", "--all")

    assert 'stored account "shop"' in nsc("pull", "--all")
    assert "named shop exists" in nsc("push", "--diff")


async def test_user_that_nsc_revokes_is_sent_away(nsc: Nsc, server: ServerProcess, tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def note() -> None:
        gone.set()

    nsc("push", "--all")
    client = await nats.connect(
        server.url, user_credentials=credentials(tmp_path), allow_reconnect=False, closed_cb=note
    )

    nsc("revocations", "add-user", "--account", "shop", "--name", "ada")
    nsc("push", "--account", "shop")

    await asyncio.wait_for(gone.wait(), COMMAND_S_MAX)
    assert not client.is_connected


def test_nsc_removes_an_account(nsc: Nsc, server: ServerProcess) -> None:
    nsc("push", "--all")

    assert "deleted 1 accounts" in nsc("push", "--account-removal", "shop")
    assert len(list((server.folder / "jwt").glob("*.jwt"))) == 1
