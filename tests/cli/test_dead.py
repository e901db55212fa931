"""`jetlake dead` against a real server."""

import asyncio
import json
import time
import tracemalloc

import nats
import pytest
from typer.testing import CliRunner

import jetlake
from jetlake.cli.app import create

WAIT_S_MAX = 60.0


@pytest.fixture
def letters(tmp_path):
    """A server where a worker has given up two messages of JOBS."""

    async def fill(url):
        connection = await nats.connect(url)
        js = connection.jetstream()
        await js.add_stream(name="DEAD", subjects=["dead.>"])
        await js.add_stream(name="JOBS", subjects=["jobs.>"], metadata={"jetlake.dead_letters": "DEAD"})
        for subject in ("jobs.a", "jobs.b"):
            await js.publish(subject, subject.encode())
        worker = await js.pull_subscribe("jobs.>", "worker")
        for message in await worker.fetch(2, timeout=WAIT_S_MAX):
            await connection.publish(message.reply, b"+TERM no such customer")
        deadline = time.monotonic() + WAIT_S_MAX
        while (await js.stream_info("DEAD")).state.messages < 2:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        await connection.close()

    with jetlake.Server(jetstream=True, store_directory=tmp_path) as server:
        asyncio.run(fill(server.url))
        yield server


def run(*arguments):
    return CliRunner().invoke(create(), ["dead", *arguments])


def test_list_names_what_was_given_up_by_whom_and_why(letters):
    answer = run("list", "DEAD", "--server", letters.url)

    assert answer.exit_code == 0, answer.output
    lines = [line.split("\t") for line in answer.output.splitlines()]
    assert lines[0] == ["letter", "time", "from", "consumer", "subject", "deliveries", "reason"]
    assert [[line[0], *line[2:]] for line in lines[1:]] == [
        ["1", "JOBS@1", "worker", "jobs.a", "1", "no such customer"],
        ["2", "JOBS@2", "worker", "jobs.b", "1", "no such customer"],
    ]


def test_list_can_be_narrowed_and_read_by_programs(letters):
    answer = run("list", "DEAD", "--json", "--consumer", "nobody", "--server", letters.url)

    assert json.loads(answer.output) == []


def test_show_prints_headers_and_payload(letters):
    answer = run("show", "DEAD", "2", "--server", letters.url)

    assert answer.exit_code == 0, answer.output
    assert "header Jetlake-Dead-Subject: jobs.b" in answer.output
    assert answer.output.rstrip().endswith("jobs.b")


def test_unknown_letter_is_refused_with_what_to_do(letters):
    answer = run("show", "DEAD", "77", "--server", letters.url)

    assert answer.exit_code == 1
    assert "jetlake dead list" in answer.output


def test_redrive_sends_messages_again_and_leaves_nothing(letters):
    answer = run("redrive", "DEAD", "--all", "--json", "--server", letters.url)

    assert answer.exit_code == 0, answer.output
    assert [(result["letter"], result["sequence"]) for result in json.loads(answer.output)] == [(1, 3), (2, 4)]
    assert json.loads(run("list", "DEAD", "--json", "--server", letters.url).output) == []


@pytest.mark.parametrize("words", [("redrive", "--all"), ("list", "--json")])
def test_letters_are_not_all_in_memory_at_once(letters, words):
    large, count = 400_000, 30

    async def fill():
        connection = await nats.connect(letters.url)
        js = connection.jetstream()
        for _ in range(count):
            await js.publish("jobs.large", b"x" * large)
        worker = await js.pull_subscribe("jobs.large", "another")
        for _ in range(count):
            for message in await worker.fetch(1, timeout=WAIT_S_MAX):
                await connection.publish(message.reply, b"+TERM too large")
        deadline = time.monotonic() + WAIT_S_MAX
        while (await js.stream_info("DEAD")).state.messages < 2 + count:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        await connection.close()

    asyncio.run(fill())
    tracemalloc.start()
    try:
        answer = run(words[0], "DEAD", *words[1:], "--server", letters.url)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert answer.exit_code == 0, answer.output
    assert most < large * count / 2


def test_redrive_wants_letters_or_all_of_them(letters):
    assert run("redrive", "DEAD", "--server", letters.url).exit_code == 2
    assert run("redrive", "DEAD", "1", "--all", "--server", letters.url).exit_code == 2
