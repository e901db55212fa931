"""Commands whose output has no reader, or loses it: what changes something goes on to its end, what only reads ends."""

import json
import os
import signal
import subprocess
import sys

import pytest

COMMAND_S_MAX = 60.0


@pytest.fixture
def unread(url):
    """Run a command whose reader has gone before it began, and return its exit code and what it said elsewhere."""

    def run(*words, both=False):
        reader, writer = os.pipe()
        os.close(reader)
        process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", *words],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=writer if both else subprocess.PIPE,
            text=True,
            env=os.environ | {"NATS_URL": url},
        )
        os.close(writer)
        try:
            _, said = process.communicate(timeout=COMMAND_S_MAX)
        finally:
            process.kill()
            process.wait()
        return process.returncode, said

    return run


@pytest.fixture
def stream(done, request):
    """A stream with three messages."""
    name = request.node.originalname.upper()[-40:]
    done("stream", "add", name, "--subjects", f"{name}.>")
    done("pub", f"{name}.x", "{{Count}}", "--count", "3", "-J")
    yield name
    done("stream", "rm", name, "--force")


@pytest.mark.parametrize("both", [False, True])
def test_change_that_is_shown_first_is_made_when_nobody_reads_it(unread, stream, read, both):
    answer = unread("stream", "edit", stream, "--description", "new", "--force", both=both)

    assert (answer[0], read("stream", "info", stream)["config"]["description"]) == (0, "new"), answer


def test_messages_are_all_published_when_nobody_reads_of_it(unread, stream, read):
    answer = unread("pub", f"{stream}.x", "y", "--count", "5", "--sleep", "100ms", "-J")

    assert answer == (0, "")
    assert read("stream", "info", stream)["state"]["messages"] == 8


@pytest.mark.parametrize("words", [("stream", "ls"), ("stream", "info"), ("dead", "list")])
def test_what_was_done_decides_about_the_exit_code_when_nobody_reads_it(unread, stream, words):
    name = () if words[1] == "ls" else (stream,)

    assert unread(*words, *name) == (0, "")


def test_refusal_has_its_exit_code_when_nobody_reads(unread):
    code, said = unread("stream", "rm", "NONE", "--force")

    assert (code, "No stream NONE" in said) == (1, True), said


def test_message_that_nobody_sees_is_not_acknowledged(unread, stream, done, read):
    done("consumer", "add", stream, "worker")

    unread("consumer", "next", stream, "worker", "--count", "3")

    assert read("consumer", "info", stream, "worker")["ack_floor"]["stream_seq"] == 0


@pytest.mark.parametrize("words", [("sub", "unread.>"), ("stream", "graph"), ("events",)])
def test_what_only_reads_ends_with_its_reader(unread, stream, words):
    name = (stream,) if words[0] == "stream" else ()

    assert unread(*words, *name) == (0, "")


def test_work_that_is_interrupted_ends_before_its_connection_is_closed(url):
    process = subprocess.Popen(
        [sys.executable, "-c", WORK],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NATS_URL": url},
    )
    assert process.stdout.readline() == "began\n"

    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=COMMAND_S_MAX)

    assert (process.returncode, errors) == (130, "")
    assert json.loads(printed)["is_closed"] is False


WORK = """
import asyncio, json, sys
import typer
from jetlake.cli.run import run

async def work(api):
    try:
        print("began", flush=True)
        await asyncio.sleep(60)
    finally:
        await api.flush()
        print(json.dumps({"is_closed": api.connection.is_closed}), flush=True)

try:
    run(work, reconnect=True)
except typer.Exit as end:
    sys.exit(end.exit_code)
"""
