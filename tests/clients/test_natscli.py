"""NATS' own command line, natscli: what people type every day does the same on both servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.client_script import CACHE, SOURCES, prepare, require_tool
from tests.compatibility import fixtures

COMMAND_S_MAX = 60.0
PACKAGE = "github.com/nats-io/natscli/nats"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

IS_BUILT_IF_MISSING = bool(os.environ.get("JETLAKE_LONG") or os.environ.get("CI"))
"""Building it takes three minutes of a core, once; a first run of all tests does not wait for that."""

Nats = Callable[..., str]


@pytest.fixture(scope="module")
def program() -> Path:
    go = require_tool("go", "apt-get install golang")
    built = CACHE / "natscli" / "nats"
    if not (built.exists() or IS_BUILT_IF_MISSING):
        pytest.skip("natscli is not built: make test-long builds it, and from then on every run tests with it")
    built.parent.mkdir(parents=True, exist_ok=True)
    prepare([go, "build", "-o", str(built), PACKAGE], SOURCES / "natscli")
    return built


url = fixtures.url


def environment(url: str, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NATS_")}
    return kept | {"NATS_URL": url, "XDG_CONFIG_HOME": str(folder), "HOME": str(folder), "NO_COLOR": "1"}


@pytest.fixture
def nats(program: Path, url: str, tmp_path: Path) -> Nats:
    """Run natscli at the server and return what it prints."""

    def run(*words: str, stdin: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [str(program), *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S_MAX,
            env=environment(url, tmp_path),
            cwd=tmp_path,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == code, f"nats {' '.join(words)} ended with {done.returncode}:\n{printed}"
        return done.stdout if code == 0 else printed

    return run


@pytest.fixture
def jetlake(url: str, tmp_path: Path) -> Callable[..., Any]:
    """Run our own command line at the server and return its JSON."""

    def run(*words: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "jetlake", *words, "--json"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S_MAX,
            env=environment(url, tmp_path),
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_streams_are_made_changed_filled_read_and_deleted(nats: Nats) -> None:
    nats("stream", "add", "S", "--subjects", "s.>", "--max-age", "1d", "--max-msgs", "100", "--defaults")
    nats("stream", "edit", "S", "--max-msgs", "50", "--force")
    nats("pub", "s.a", "message {{Count}}", "--count", "5", "--jetstream")

    info = json.loads(nats("stream", "info", "S", "--json"))
    assert (info["config"]["max_msgs"], info["state"]["messages"]) == (50, 5)
    assert "S" in nats("stream", "ls", "--names").split()
    assert "message 2" in nats("stream", "get", "S", "2")
    assert "message 5" in nats("stream", "get", "S", "--last-for", "s.a")
    assert json.loads(nats("stream", "subjects", "S", "--json")) == {"s.a": 5}
    nats("stream", "rmm", "S", "2", "--force")
    assert json.loads(nats("stream", "info", "S", "--json"))["state"]["num_deleted"] == 1
    assert "S" in nats("stream", "report")
    nats("stream", "copy", "S", "S2", "--subjects", "s2")
    nats("stream", "purge", "S", "--force")
    nats("stream", "seal", "S2", "--force")
    for name in ("S", "S2"):
        nats("stream", "rm", name, "--force")
    assert "S" not in nats("stream", "ls", "--names").split()


def test_consumers_are_made_changed_used_and_deleted(nats: Nats) -> None:
    nats("stream", "add", "C", "--subjects", "c.>", "--defaults")
    nats("pub", "c.a", "{{Count}}", "--count", "5", "--jetstream")
    nats("consumer", "add", "C", "worker", "--pull", "--ack", "explicit", "--max-pending", "10", "--defaults")

    assert nats("consumer", "next", "C", "worker", "--raw").strip() == "1"
    nats("consumer", "edit", "C", "worker", "--max-pending", "20", "--force")
    info = json.loads(nats("consumer", "info", "C", "worker", "--json"))
    assert (info["config"]["max_ack_pending"], info["ack_floor"]["stream_seq"], info["num_pending"]) == (20, 1, 4)
    assert nats("consumer", "ls", "C", "--names").split() == ["worker"]
    nats("consumer", "pause", "C", "worker", "2100-01-01 00:00:00", "--force")
    assert json.loads(nats("consumer", "info", "C", "worker", "--json"))["paused"] is True
    nats("consumer", "resume", "C", "worker", "--force")
    nats("consumer", "reset", "C", "worker", "--sequence", "4", "--force")
    assert nats("consumer", "next", "C", "worker", "--raw").strip() == "4"
    assert "worker" in nats("consumer", "report", "C")
    nats("consumer", "rm", "C", "worker", "--force")
    nats("stream", "rm", "C", "--force")


def test_keys_are_put_read_watched_and_deleted(nats: Nats) -> None:
    nats("kv", "add", "K", "--history", "5", "--ttl", "1h")
    for value in ("one", "two"):
        nats("kv", "put", "K", "key", value)

    assert nats("kv", "get", "K", "key", "--raw").strip() == "two"
    assert "one" in nats("kv", "history", "K", "key")
    nats("kv", "create", "K", "new", "value")
    assert "wrong last sequence" in nats("kv", "create", "K", "new", "value", code=1)
    nats("kv", "update", "K", "new", "better", "3")
    nats("kv", "revert", "K", "key", "1", "--force")
    assert nats("kv", "get", "K", "key", "--raw").strip() == "one"
    assert set(nats("kv", "ls", "K").split()) >= {"key", "new"}
    nats("kv", "del", "K", "key", "--force")
    nats("kv", "purge", "K", "new", "--force")
    assert "not found" in nats("kv", "get", "K", "key", code=1)
    assert "K" in nats("kv", "info", "K")
    nats("kv", "compact", "K", "--force")
    nats("kv", "del", "K", "--force")


def test_objects_are_stored_and_fetched(nats: Nats, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    (tmp_path / "file").write_bytes(content)

    nats("object", "add", "O")
    nats("object", "put", "O", "file", "--name", "thing", "--no-progress", "--force")
    nats("object", "get", "O", "thing", "--output", "back", "--no-progress", "--force")

    assert (tmp_path / "back").read_bytes() == content
    assert "thing" in nats("object", "ls", "O")
    assert "thing" in nats("object", "info", "O", "thing")
    nats("object", "del", "O", "thing", "--force")
    nats("object", "seal", "O", "--force")
    nats("object", "del", "O", "--force")


def test_messages_are_published_heard_asked_and_answered(nats: Nats, program: Path, url: str, tmp_path: Path) -> None:
    replier = subprocess.Popen(
        [str(program), "reply", "question", "--echo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(url, tmp_path),
    )
    try:
        assert replier.stdout is not None
        assert "Listening on" in replier.stdout.readline()

        assert nats("request", "question", "hello", "--raw").strip() == "hello"
    finally:
        replier.kill()
        replier.communicate()
    nats("stream", "add", "M", "--subjects", "m.>", "--defaults")
    nats("pub", "m.a", "{{Count}}", "--count", "3", "--jetstream")
    heard = nats("sub", "m.>", "--all", "--count", "3", "--raw")
    assert heard.split() == ["1", "2", "3"]
    nats("rtt", "3")
    assert "Account Information" in nats("account", "info")
    nats("stream", "rm", "M", "--force")


def test_benchmark_stores_and_takes_messages(nats: Nats) -> None:
    options = ("--msgs", "2000", "--no-progress", "--stream", "B")

    assert "msgs/sec" in nats("bench", "js", "pub", "async", "bench", "--create", "--purge", *options)
    assert "msgs/sec" in nats("bench", "js", "pub", "sync", "bench", "--msgs", "100", "--no-progress", "--stream", "B")
    assert "msgs/sec" in nats("bench", "js", "fetch", *options)
    nats("consumer", "add", "B", "other", "--pull", "--defaults")
    assert "msgs/sec" in nats("bench", "js", "consume", "--consumer", "other", *options)
    assert "msgs/sec" in nats("bench", "js", "ordered", *options)
    nats("stream", "rm", "B", "--force")


@pytest.fixture
def digest(nats: Nats, jetlake: Callable[..., Any]) -> Iterator[str]:
    """That of a stream BACK of twenty messages."""
    nats("stream", "add", "BACK", "--subjects", "back", "--defaults")
    nats("pub", "back", "{{Count}}", "--count", "20", "--jetstream", "-H", "A:b")
    yield jetlake("stream", "verify", "BACK")["digest"]
    if "BACK" in nats("stream", "ls", "--names").split():
        nats("stream", "rm", "BACK", "--force")


def test_backup_of_ours_is_restored_by_natscli(
    nats: Nats, jetlake: Callable[..., Any], digest: str, tmp_path: Path
) -> None:
    jetlake("stream", "backup", "BACK", str(tmp_path / "ours"))
    nats("stream", "rm", "BACK", "--force")

    nats("stream", "restore", str(tmp_path / "ours"), "--no-progress")

    assert jetlake("stream", "verify", "BACK")["digest"] == digest


def test_backup_of_natscli_is_restored_by_us(
    nats: Nats,
    jetlake: Callable[..., Any],
    digest: str,
    tmp_path: Path,
    server_kind: str,
    request: pytest.FixtureRequest,
) -> None:
    nats("stream", "backup", "BACK", str(tmp_path / "theirs"), "--no-progress")
    nats("stream", "rm", "BACK", "--force")

    assert jetlake("stream", "restore", str(tmp_path / "theirs"))["state"]["messages"] == 20
    assert jetlake("stream", "verify", "BACK")["digest"] == digest


def test_contexts_are_shared(nats: Nats, jetlake: Callable[..., Any], url: str) -> None:
    nats("context", "add", "shared", "--server", url, "--description", "made by natscli", "--select")

    assert jetlake("context", "ls") == [{"name": "shared", "url": url, "selected": True}]
    assert "shared" in nats("context", "ls")
