"""`jetlake object`, at both kinds of server."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.cli.conftest import asked_until

_numbers = itertools.count(1)


@pytest.fixture
def store(done) -> str:
    name = f"S{next(_numbers)}"
    done("object", "add", name)
    return name


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "report.pdf"
    path.write_bytes(os.urandom(1_500_000))
    return path


def test_a_store_is_made_with_all_flags_and_shown(done, read):
    name = f"S{next(_numbers)}"
    flags = ["--ttl", "1h", "--max-bucket-size", "10MiB", "--description", "files", "--compress", "--metadata", "a=b"]

    assert done("object", "add", name, *flags).startswith(f"Created object store {name}\n")
    config = read("object", "status", name)["config"]
    assert (config["ttl_s"], config["max_bytes"], config["compression"]) == (3600, 10 << 20, True)
    assert name in done("object", "ls", "--names").splitlines()
    assert name in [each["store"] for each in read("object", "ls")]
    assert done("object", "rm", name, "-f") == f"Deleted object store {name}\n"


def test_a_file_goes_in_and_comes_out(done, read, cli, process, store, file, tmp_path):
    assert done("object", "put", store, str(file), "--description", "d", "-H", "Colour:green").startswith(
        f"Stored report.pdf in {store}: 1.4 MiB, SHA-256="
    )
    refused = cli("object", "put", store, str(file))
    assert (refused.exit_code, "give --force to replace it" in refused.stderr) == (1, True)
    done("object", "put", store, str(file), "--force", "--chunk-size", "100KiB")
    assert read("object", "info", store, "report.pdf")["chunks"] == 15

    copy = tmp_path / "copy.pdf"
    assert done("object", "get", store, "report.pdf", "--output", str(copy)).startswith(f"Wrote {copy}: 1.4 MiB")
    assert copy.read_bytes() == file.read_bytes()
    assert cli("object", "get", store, "report.pdf", "--output", str(copy)).exit_code == 1
    assert cli("object", "get", store, "report.pdf", "-O", "-").stdout_bytes == file.read_bytes()


def test_standard_input_needs_a_name(done, cli, store):
    assert cli("object", "put", store, "-", stdin="x").exit_code == 2
    done("object", "put", store, "-", "--name", "typed", "--metadata", "k=v", stdin="hello")

    assert cli("object", "get", store, "typed", "-O", "-").stdout == "hello"
    assert "k: v" in done("object", "info", store, "typed")


def test_objects_are_listed_changed_linked_and_deleted(done, read, cli, store, file):
    done("object", "put", store, str(file))

    assert done("object", "ls", store).splitlines()[1].split("\t")[:3] == ["report.pdf", "1500000", "object"]
    assert (
        done("object", "link", store, "latest", f"{store}/report.pdf")
        == f"Linked latest of {store} to {store}/report.pdf\n"
    )
    assert cli("object", "get", store, "latest", "-O", "-").stdout_bytes == file.read_bytes()
    done("object", "link", store, "all", store)
    assert sorted(read("object", "ls", store, "--names")) == ["all", "latest", "report.pdf"]
    assert (
        done("object", "edit", store, "report.pdf", "--name", "r.pdf", "--description", "new")
        == f"Changed r.pdf of {store}\n"
    )
    assert read("object", "info", store, "r.pdf")["description"] == "new"
    assert done("object", "del", store, "r.pdf", "-f") == f"Deleted r.pdf of {store}, 1.4 MiB\n"
    gone = cli("object", "get", store, "r.pdf")
    assert (gone.exit_code, f"`jetlake object ls {store}` lists all objects" in gone.stderr) == (1, True)
    assert "deleted" in done("object", "ls", store, "--deleted")
    lines = [line.split("\t")[1:3] for line in done("object", "watch", store, "--snapshot").splitlines()]
    assert ["DEL", "r.pdf"] in lines
    assert ["PUT", "latest"] in lines
    infos = [
        json.loads(line) for line in done("object", "watch", store, "--no-deletes", "--snapshot", "--json").splitlines()
    ]
    assert {info["name"] for info in infos} == {"latest", "all"}


def test_a_store_is_saved_restored_and_sealed(done, cli, store, file, tmp_path):
    done("object", "put", store, str(file))
    folder = str(tmp_path / "saved")
    done("object", "backup", store, folder)
    done("object", "rm", store, "-f")

    assert f"Restored object store {store}" in done("object", "restore", folder)
    assert done("object", "seal", store, "-f") == f"Sealed object store {store}\n"
    assert cli("object", "put", store, str(file), "--name", "more").exit_code == 1
    assert cli("object", "get", store, "report.pdf", "-O", "-").stdout_bytes == file.read_bytes()


def test_mistakes_are_told(cli, store, tmp_path):
    for words, reason in (
        (("put", store, str(tmp_path / "none")), "it is not a file"),
        (("get", store, "none"), "does not exist"),
        (("info", "NONE", "x"), "object store NONE does not exist"),
        (("add", "a.b"), "invalid object store name"),
        (("put", store, __file__, "-H", "x"), "write Name:Value"),
    ):
        refused = cli("object", *words)
        assert refused.exit_code == 1, words
        assert reason in refused.stderr, words


CHUNK_BYTES = 64 * 1024
COMMAND_S_MAX = 60.0


@pytest.mark.parametrize("output", ["pipe", "file"])
def test_what_is_stored_of_an_interrupted_upload_is_removed(url, store, read, output, tmp_path):
    with (
        (tmp_path / "output").open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-m", "jetlake", "object", "put", store, "-", "--name", "big", "--chunk-size", "64KiB"],
            stdin=subprocess.PIPE,
            stdout=file if output == "file" else subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=os.environ | {"NATS_URL": url},
        ) as process,
        fed(process),
    ):
        asked_until(lambda: messages_of(read, store), lambda count: count > 5)

        process.send_signal(signal.SIGINT)
        code, errors = process.wait(COMMAND_S_MAX), process.stderr.read()

    assert (code, errors) == (130, b"")
    assert messages_of(read, store) == 0


@contextlib.contextmanager
def fed(process):
    """Write to the standard input of a process for as long as it runs."""

    def feed():
        with contextlib.suppress(OSError, ValueError):
            while not stopped.wait(0.02):
                process.stdin.write(bytes(CHUNK_BYTES))

    stopped = threading.Event()
    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        process.kill()
        stopped.set()
        feeder.join()


def messages_of(read, store):
    return read("stream", "state", f"OBJ_{store}")["messages"]
