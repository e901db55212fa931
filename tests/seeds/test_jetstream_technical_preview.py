"""The first announcement of JetStream, of December 2019: the server, `jsm`, and the small tools."""

import signal
import subprocess

import pytest

import jetlake
from tests.seeds.masks import masked
from tests.seeds.runner import COMMAND_S_MAX, Reader
from tests.seeds.transcript import Step, read_document

DOCUMENT = "jetstream_technical_preview.md"

NOT_RUN = {
    "git checkout jetstream": "there is no branch: the server is the one that is installed",
    "cd nats-server/jetstream/jsm": "there are no sources of that tool: `jetlake shims` writes one",
    "go build": "it is not written in Go",
    "go install": "it is not written in Go",
}
"""Commands that are printed and that no reader of ours needs, with the reason."""

SERVERS = ["nats-server -js", "nats-server -js -sd /tmp/test"]

COMMANDS = [
    "jsm -h",
    "jsm add",
    "jsm info",
    "jsm ls",
    "jsm info derek",
    "nats-pub foo hello",
    "nats-req bar world",
    "jsm info derek",
    "nats-bench -np 20 -ns 0 -ms 128 -n 1000000 foo",
    "jsm info derek",
    "jsm rm derek",
    "jsm add",
    "jsm add",
    "nats-pub 1 hello",
    "nats-pub 2 hello",
    "nats-pub 3 hello",
    "nats-pub 4 hello",
    "nats-pub 5 hello",
    "jsm info wc",
    "jsm add-obs",
    "jsm info-obs wc p1",
    r"nats-req \$JS.RN.wc.p1 1",
    "jsm info-obs wc p1",
    r"nats-req \$JS.RN.wc.p1 1",
    "jsm info-obs wc p1",
    "next wc p1",
    "jsm add-obs",
    "nats-sub d.p2",
    'nats-pub foo "hello jetsream"',
    "nats-sub d.p2",
]
"""Every other command that is printed."""

ACK_WAIT_S = 30
"""How long an observable waits for an acknowledgement; the author took ten minutes between two of his commands."""


def test_every_command_that_is_printed_is_listed():
    printed = [step.command for step in read_document(DOCUMENT)]

    assert sorted(printed) == sorted([*NOT_RUN, *SERVERS, *COMMANDS])
    assert [command for command in printed if command in COMMANDS] == COMMANDS


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_every_command_is_run_as_printed(tmp_path):
    steps = [step for step in read_document(DOCUMENT) if step.command in COMMANDS]
    with jetlake.Server(jetstream=True, clock="manual") as server:
        reader = Reader(tmp_path, server.url)
        asked_before = 0
        for step in steps:
            if step.command == r"nats-req \$JS.RN.wc.p1 1":
                # What was not acknowledged comes again when the second request is made.
                server.advance(asked_before * (ACK_WAIT_S + 1))
                asked_before += 1
            assert reader.follow(step) == "", f"line {step.line}: {step.command}"


@pytest.mark.parametrize("command", SERVERS)
def test_a_server_starts_as_printed(command, tmp_path):
    step = next(step for step in read_document(DOCUMENT) if step.command == command)

    log = started_log(step, tmp_path)

    lines = iter(masked(log.splitlines()))
    missing = [line for line in masked(step.output) if line not in lines]
    assert not missing, f"not printed in this order:\n{missing}\n\nwe print:\n{log}"


def started_log(step: Step, folder) -> str:
    """Start the server as printed, but on a port and in a folder of our own; return what it says until it is ready."""
    reader = Reader(folder, "")
    reader.environment["TMPDIR"] = str(folder)
    command = step.command.replace("/tmp/test", str(folder / "test"))
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command} -a 127.0.0.1 -p -1"],
        env=reader.environment,
        cwd=reader.work,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = []
    try:
        for line in process.stderr:
            lines.append(line)
            if line.rstrip().endswith("Server is ready"):
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=COMMAND_S_MAX)
    finally:
        process.kill()
        process.wait()
    return "".join(lines)
