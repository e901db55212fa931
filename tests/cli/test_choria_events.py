"""Events of nodes in the original's words: `jetlake events`, and the commands of Choria, on both servers."""

import os
import re
import subprocess
import sys
import threading

import pytest

from jetlake.choria.events import encode, lifecycle_body, transition_body, watcher_body

WAIT_S_MAX = 60.0
MACHINE = {"identity": "web1.example.net", "machine": "deploy", "version": "1", "machine_id": "m"}

STARTUP = lifecycle_body("startup", identity="web1.example.net", component="server", version="0.23.0")
GOVERNOR = lifecycle_body(
    "governor", identity="web2", component="CLI", governor="PUPPET", sequence=7, event_type="enter"
)
TRANSITION = transition_body(**MACHINE, transition="run", from_state="WAIT", to_state="RUN")


def check(status, name="load"):
    return watcher_body(
        "nagios",
        **MACHINE,
        name=name,
        status=status,
        output="load",
        perfdata=[{"label": "l", "value": 1.5, "unit": "s"}],
    )


def start(url, *words):
    """Start a command that never ends, and make sure that the test ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jetlake", *words],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"NATS_URL": url, "PYTHONUNBUFFERED": "1"},
    )
    guard = threading.Timer(WAIT_S_MAX, process.kill)
    guard.start()
    return process, guard


def lines_of(url, count, *words):
    process, guard = start(url, *words)
    try:
        return [process.stdout.readline().rstrip("\n") for _ in range(count)]
    finally:
        guard.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def test_lifecycle_events_raw_and_as_cloud_events(url, sending):
    sending("choria.lifecycle.event.startup.server", encode(STARTUP))
    sending("choria.lifecycle.event.governor.CLI", encode(GOVERNOR, raw=True))

    found = set(lines_of(url, 40, "events", "--lifecycle"))

    texts = {re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in found}
    assert texts == {
        "[startup] web1.example.net: server version 0.23.0",
        "[governor] web2: obtained slot 7 on PUPPET",
    }


def test_machine_events_and_checks(url, sending, done):
    sending("choria.machine.transition", encode(TRANSITION))
    sending("choria.machine.watcher.nagios.state", encode(check("CRITICAL")))

    text = done("events", "--machines", "--filter", "transition", "--count", "1")
    assert "web1.example.net deploy transitioned via event run: WAIT => RUN" in text
    text = done("events", "--checks", "--count", "1")
    assert "web1.example.net deploy#load CRITICAL: load" in text


def test_tool_event_prints_as_the_original(url, sending):
    sending("choria.lifecycle.event.startup.server", encode(STARTUP))
    sending("choria.lifecycle.event.governor.CLI", encode(GOVERNOR, raw=True))

    first, *others = lines_of(url, 5, "choria", "tool", "event", "--component", "server")

    assert first == f"Waiting for events from topic choria.lifecycle.event.> on {url}"
    for line in others:
        assert re.fullmatch(r"\d\d:\d\d:\d\d \[startup\] web1\.example\.net: server version 0\.23\.0", line)


def test_tool_event_prints_events_as_they_are_sent_if_asked_for(url, sending):
    sending("choria.lifecycle.event.startup.server", encode(STARTUP))

    _, line = lines_of(url, 2, "choria", "tool", "event", "--type", "startup", "--debug")

    assert line == encode(STARTUP).decode()


def test_machine_watch_prints_as_the_original(url, sending):
    sending("choria.machine.transition", encode(TRANSITION))
    sending("choria.machine.watcher.nagios.state", encode(check("OK")))

    transitions = lines_of(url, 3, "choria", "machine", "watch", "--transitions")
    watchers = lines_of(url, 3, "choria", "machine", "watch", "--watchers", "--type", "nagios", "--machine", "depl")

    for line in transitions:
        assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] web1.example.net deploy transitioned via event run: WAIT => RUN", line)
    for line in watchers:
        assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] web1.example.net deploy#load OK: load", line)


def test_scout_watch_leaves_out_what_is_fine_if_asked_for(url, sending):
    sending("choria.machine.watcher.nagios.state", encode(check("OK")))
    sending("choria.machine.watcher.nagios.state", encode(check("CRITICAL", "disk")))

    found = lines_of(url, 3, "choria", "scout", "watch", "--no-ok", "--perf", "--ignore-machine-transition", "deploy")

    for line in found:
        assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] web1.example.net deploy#disk CRITICAL: load \| l=1.5s", line)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["tool", "event", "--type", "birth"], "invalid choice"),
        (["server", "run"], "name the configuration of the node"),
        (["nothing"], "unknown command"),
    ],
)
def test_a_wrong_line_is_refused(process, words, reason):
    ended = process("choria", *words)

    assert ended.returncode == 1
    assert reason in ended.stderr


def test_server_run_is_the_agent_of_a_node(url, tmp_path):
    (tmp_path / "server.conf").write_text("identity = web9\n")
    listener, guard = start(url, "choria", "tool", "event")
    listener.stdout.readline()
    node = subprocess.Popen(
        [sys.executable, "-m", "jetlake", "choria", "server", "run", "--config", str(tmp_path / "server.conf")],
        env=os.environ | {"NATS_URL": url},
        stderr=subprocess.DEVNULL,
    )
    try:
        assert "[startup] web9: server version" in listener.stdout.readline()
        node.terminate()
        assert node.wait(WAIT_S_MAX) == 0
        assert "[shutdown] web9: server" in listener.stdout.readline()
    finally:
        guard.cancel()
        for process in (node, listener):
            process.kill()
            process.wait()
        listener.stdout.close()
