"""`jetlake sub` against both servers."""

import asyncio
import json
import os
import signal
import subprocess
import sys

import nats
import pytest

import jetlake
from jetlake.shared.subjects import matches


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_messages_are_printed_as_they_come(done, sending):
    sending("sub.live.#", b"payload", {"A": "b"})

    text = done("sub", "sub.live.*", "--count", "1")

    head, header, _, payload, _ = text.splitlines()
    assert head.startswith('[#1] Received on "sub.live.')
    assert (header, payload) == ("A: b", "payload")


@pytest.mark.parametrize(
    ("flag", "printed"), [("--raw", "payload\n"), ("--subjects-only", "sub.manner\n"), ("--json", None)]
)
def test_manner_of_printing_can_be_chosen(done, sending, flag, printed):
    sending("sub.manner", b"payload")

    text = done("sub", "sub.manner", flag, "--count", "1")

    assert text == printed if printed else lines(text) == [{"subject": "sub.manner", "data": "payload"}]


def test_headers_only_prints_no_payload(done, sending):
    sending("sub.headers", b"payload", {"A": "b"})

    text = done("sub", "sub.headers", "--headers-only", "--count", "1")

    assert "A: b" in text
    assert "payload" not in text


def test_payloads_can_go_through_a_command_and_into_files(done, sending, tmp_path):
    sending("sub.translate", b"payload")

    text = done("sub", "sub.translate", "--raw", "--translate", "tr a-z A-Z", "--count", "1")
    done("sub", "sub.translate", "--dump", str(tmp_path / "dump"), "--count", "1")

    assert text == "PAYLOAD\n\n" or text == "PAYLOAD\n"
    assert (tmp_path / "dump" / "1").read_bytes() == b"payload"


def test_silence_ends_it(done):
    assert done("sub", "sub.silence", "--wait", "100ms") == ""


def test_ignored_subjects_are_not_printed(done, sending):
    sending("sub.ignore.a", b"x")
    sending("sub.ignore.b.c", b"x")

    text = done("sub", "sub.ignore.>", "--ignore-subject", "sub.ignore.b.*", "--subjects-only", "--count", "3")

    assert text == "sub.ignore.a\n" * 3


def test_subjects_can_be_counted_instead(done, sending):
    sending("sub.report.a", b"x")

    text = done("sub", "sub.report.>", "--report-subjects", "--count", "3")

    assert text == "subject\tmessages\nsub.report.a\t3\n"


def test_queue_group_shares_the_messages(done, sending, url):
    sending("sub.queue", b"x")

    assert done("sub", "sub.queue", "--queue", "workers", "--count", "2", "--raw") == "x\nx\n"


@pytest.fixture
def stored(done):
    """A stream with five messages of three subjects."""
    done("stream", "add", "SUB", "--subjects", "sub.stored.>")
    if json.loads(done("stream", "info", "SUB", "--json"))["state"]["messages"] == 0:
        done("pub", "sub.stored.a", "{{Count}}", "--count", "3", "-J")
        done("pub", "sub.stored.b", "4", "-J")
        done("pub", "sub.stored.c", "5", "-J")


@pytest.mark.parametrize(
    ("words", "payloads"),
    [
        (("--all",), "1\n2\n3\n4\n5\n"),
        (("--last",), "5\n"),
        (("--last-per-subject",), "3\n4\n5\n"),
        (("--start-sequence", "4"), "4\n5\n"),
        (("--since", "1h"), "1\n2\n3\n4\n5\n"),
        (("--new",), ""),
    ],
)
def test_streams_are_read_from_where_it_was_wanted(done, stored, words, payloads):
    assert done("sub", "sub.stored.>", "--raw", "--terminate-at-end", *words) == payloads


def test_stream_can_be_named_and_filtered(done, stored):
    text = done("sub", "sub.stored.b", "sub.stored.c", "--stream", "SUB", "--terminate-at-end", "--json")

    assert [(line["stream"], line["sequence"], line["data"]) for line in lines(text)] == [
        ("SUB", 4, "4"),
        ("SUB", 5, "5"),
    ]


def test_reading_leaves_no_consumer_behind(done, stored, read):
    done("sub", "sub.stored.>", "--all", "--raw", "--count", "1")

    assert read("consumer", "ls", "SUB") == []


def test_consumer_that_is_there_can_be_used_and_takes_no_more_than_is_wanted(done, stored, read):
    done("consumer", "add", "SUB", "worker")

    text = done("sub", "--stream", "SUB", "--durable", "worker", "--raw", "--count", "2")

    info = read("consumer", "info", "SUB", "worker")
    done("consumer", "rm", "SUB", "worker", "--force")
    assert text == "1\n2\n"
    assert (info["num_pending"], info["num_ack_pending"]) == (3, 0)


def test_subject_of_no_stream_is_refused(cli):
    answer = cli("sub", "sub.nowhere", "--all")

    assert answer.exit_code == 1
    assert "streams with 'sub.nowhere': none" in answer.stderr


def test_nothing_to_listen_to_is_wrong_usage(cli):
    assert cli("sub").exit_code == 2


@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a", "a.b", False),
        ("a.b", "a", False),
    ],
)
def test_patterns_are_those_of_nats(pattern, subject, fits):
    assert matches(pattern, subject) is fits


def start(url, *words):
    return subprocess.Popen(
        [sys.executable, "-m", "jetlake", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NATS_URL": url},
    )


def test_ctrl_c_ends_it_without_a_trace(url, sending):
    sending("sub.interrupt", b"x")
    process = start(url, "sub", "sub.interrupt", "--raw")
    assert process.stdout.readline() == "x\n"

    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)

    assert (process.returncode, errors) == (130, "")


def test_listener_outlives_a_restart_of_its_server():
    with jetlake.Server() as server:
        port = server.port
        process = start(server.url, "sub", "sub.again", "--raw")
        try:
            publish_until(server.url, "sub.again", b"before", process.stdout)
            server.stop()
            with jetlake.Server(port=port) as again:
                heard = publish_until(again.url, "sub.again", b"after", process.stdout)
        finally:
            process.kill()
            process.communicate()

    assert heard == "after\n"


def test_rates_are_printed_instead_of_messages(done, sending):
    sending("sub.drawn", b"payload")

    text = done("sub", "sub.drawn", "--graph", "--count", "3")

    last = text.splitlines()[-1].split("\t")
    assert last[1] == "3"
    assert last[2].endswith("/s")
    assert "payload" not in text


def test_graph_and_report_exclude_each_other(cli):
    answer = cli("sub", "x", "--graph", "--report-subjects")

    assert answer.exit_code == 2
    assert "exclude each other" in answer.stderr


def publish_until(url, subject, payload, lines):
    """Publish again and again until a line says so."""

    def heard():
        return next(line for line in lines if line == f"{payload.decode()}\n")

    async def publish():
        connection = await nats.connect(url)
        waiting = asyncio.create_task(asyncio.to_thread(heard))
        while not waiting.done():
            await connection.publish(subject, payload)
            await asyncio.wait([waiting], timeout=0.05)
        await connection.close()
        return waiting.result()

    return asyncio.run(asyncio.wait_for(publish(), 30))


def test_pipe_that_is_closed_ends_it_quietly(process, url):
    answer = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m jetlake errors ls | head -1"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert (answer.stdout, answer.stderr) == ("error\tHTTP\tname\ttext\n", "")
