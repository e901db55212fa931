"""The post about Choria Streams: its key-value commands, on one server and on a cluster of three."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import jetlake
from jetlake import kv
from tests.cluster import start_cluster
from tests.seeds.runner import Reader
from tests.seeds.transcript import Step, read_document

DOCUMENT = "choria_streams.md"

COMMANDS = [
    "choria kv add CFG --history 5 --replicas 3",
    "choria kv put CFG auth.username bob",
    "choria kv put CFG auth.password tooManySecrets",
    "choria kv get CFG auth.username",
    'echo "${AUTH_USERNAME:?}"',
    "AUTH_USERNAME=$(choria kv get CFG auth.username --raw)",
    'echo "${AUTH_USERNAME:?}"',
]
"""Every command of the part about key-value stores."""

IN_ONE_SHELL = slice(4, 7)
"""Commands that share a variable, so that they are typed into the same shell."""


def steps_of_document() -> list[Step]:
    steps = [step for step in read_document(DOCUMENT) if step.command in COMMANDS]
    assert [step.command for step in steps] == COMMANDS
    return steps


def reader_with_choria(folder: Path, url: str) -> Reader:
    """A reader who has an executable `choria`."""
    reader = Reader(folder, url)
    executable = folder / "executables" / "choria"
    if not executable.exists():
        executable.write_text(f'#!/bin/sh\nexec {sys.executable} -m jetlake.cli.choria "$@"\n')
        executable.chmod(0o755)
    return reader


def follow_all(reader: Reader) -> None:
    steps = steps_of_document()
    for step in steps[: IN_ONE_SHELL.start]:
        assert reader.follow(step) == "", f"line {step.line}: {step.command}"
    unset, assigned, shown = steps[IN_ONE_SHELL]

    # The document was typed into zsh, which says it a little differently than bash.
    assert unset.output == ("zsh: AUTH_USERNAME: parameter not set",)
    failed = reader.run(unset.command)
    assert failed.returncode != 0
    assert "AUTH_USERNAME: parameter null or not set" in failed.stdout
    done = reader.run(f"{assigned.command}\n{shown.command}")
    assert done.stdout == "\n".join(shown.output) + "\n" == "bob\n"


async def values(url: str) -> dict[str, bytes | None]:
    async with kv.connect(url) as buckets:
        return {entry.key: entry.value for entry in await (await buckets.open("CFG")).entries()}


async def replicas(url: str) -> int:
    async with kv.connect(url) as buckets:
        return (await buckets.status("CFG")).config.replicas


def test_every_command_is_run_as_printed(tmp_path):
    with jetlake.Server(jetstream=True) as server:
        follow_all(reader_with_choria(tmp_path, server.url))

        assert asyncio.run(values(server.url)) == {"auth.username": b"bob", "auth.password": b"tooManySecrets"}


@pytest.mark.timeout(180)
def test_every_command_is_run_as_printed_on_a_cluster_that_loses_a_server(tmp_path):
    with start_cluster(tmp_path / "cluster") as cluster:
        reader = reader_with_choria(tmp_path, cluster.url)
        follow_all(reader)
        assert asyncio.run(replicas(cluster.url)) == 3

        cluster.kill(cluster.leader_of("KV_CFG"))

        assert reader.run("choria kv get CFG auth.username --raw").stdout == "bob"
        assert reader.run("choria kv put CFG auth.username alice").stdout == "alice\n"
        assert asyncio.run(values(cluster.url))["auth.username"] == b"alice"
