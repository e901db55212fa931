"""`jetlake agent states|transition|watch|validate|graph`, and Choria's words for them, on both servers."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetlake.cli.choria import main as choria
from tests.agents.machines.running import manifest, write

NODES = ("web1", "web2")
QUIET = "  - {name: quiet, type: timer, state_match: [A], fail_transition: go, properties: {timer: 10h}}"

_numbers = itertools.count(1)


@pytest.fixture
def collective() -> str:
    """One of its own for each test: they share a server."""
    return f"cli{next(_numbers)}"


@pytest.fixture
def agents(url: str, collective: str, tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two nodes; both have `deploy`, the first one has `backup` too."""
    started = []
    for node in NODES:
        for name in ("deploy", "backup") if node == NODES[0] else ("deploy",):
            write(tmp_path / node / name, manifest(QUIET, name=name))
        (tmp_path / f"{node}.yaml").write_text(
            f"identity: {node}\ncollectives: [{collective}]\nlifecycle: {{enabled: false}}\n"
            f"machines: {{store: {tmp_path / node}}}\n"
        )
        started.append(
            subprocess.Popen(
                [sys.executable, "-m", "jetlake", "agent", "run", "-c", str(tmp_path / f"{node}.yaml")],
                stderr=subprocess.DEVNULL,
                env=os.environ | {"NATS_URL": url},
            )
        )
    yield started
    for process in started:
        process.send_signal(signal.SIGTERM)
    for process in started:
        assert process.wait(60) == 0


def until_all_answer(cli, collective):
    deadline = time.monotonic() + 40
    while True:
        result = cli("agent", "states", "--collective", collective, "--wait", "500ms", "--json")
        found = json.loads(result.stdout) if result.exit_code == 0 else []
        if len(found) == 3:
            return found
        assert time.monotonic() < deadline, result.output


def test_machines_of_running_agents_are_seen_and_moved(cli, done, agents, collective):
    found = until_all_answer(cli, collective)
    assert [(each["identity"], each["name"], each["state"]) for each in found] == [
        ("web1", "backup", "A"),
        ("web1", "deploy", "A"),
        ("web2", "deploy", "A"),
    ]
    of = ("--collective", collective)

    table = done("agent", "states", "--identity", "web1", "--machine", "deploy", "--wait", "30s", *of)
    assert table == "Node\tMachine\tVersion\tState\tTransitions\nweb1\tdeploy\t1.0.0\tA\tgo\n"

    assert done("agent", "transition", "deploy", "go", "--nodes", "2", "--wait", "30s", *of) == (
        "web1 deploy: go fired, now in B\nweb2 deploy: go fired, now in B\n"
    )
    refused = cli("agent", "transition", "deploy", "go", "--identity", "web2", "--wait", "30s", *of)
    assert refused.exit_code == 1
    assert "web2 deploy: transition go is not valid while in B state" in refused.stderr
    (answer,) = json.loads(done("agent", "transition", "backup", "go", "--nodes", "1", "--wait", "30s", *of, "--json"))
    assert answer["machines"][0]["available_transitions"] == ["back"]
    absent = cli("agent", "transition", "nothing", "go", "--wait", "500ms", *of)
    assert absent.exit_code == 1
    assert "no node has a machine 'nothing'" in absent.stderr


def test_no_agent_is_told(cli, collective):
    result = cli("agent", "states", "--collective", collective, "--wait", "200ms")

    assert result.exit_code == 1
    assert f"no machine answered on {collective}.machines.states" in result.stderr


def test_events_are_watched(cli, agents, url, collective):
    until_all_answer(cli, collective)
    watching = subprocess.Popen(
        [sys.executable, "-m", "jetlake", "agent", "watch", "--transitions", "--machine", "backup", "--count", "1"],
        stdout=subprocess.PIPE,
        env=os.environ | {"NATS_URL": url},
    )
    # Nobody knows when it listens, so there are events until it has seen one.
    for event in itertools.cycle(("go", "back")):
        cli("agent", "transition", "backup", event, "--collective", collective, "--identity", "web1")
        try:
            watching.wait(1)
            break
        except subprocess.TimeoutExpired:
            continue
    line = watching.communicate(timeout=60)[0].decode()

    assert " web1 backup transitioned via event " in line
    assert watching.returncode == 0


def test_manifests_are_checked(cli, done, tmp_path):
    right = write(tmp_path / "right", manifest(QUIET, name="right", initial="A"))
    wrong = write(tmp_path / "wrong", manifest(QUIET.replace("go", "gone"), name="wrong") + "colour: blue\n")

    assert done("agent", "validate", str(right)).endswith(f"{right} has a valid machine.yaml\n")
    result = cli("agent", "validate", str(right), str(wrong), "--json")
    assert result.exit_code == 1
    problems = [each for each in json.loads(result.stdout) if each["folder"] == str(wrong)]
    assert [(each["severity"], each["line"]) for each in problems] == [("warning", 7), ("error", 6)]
    assert "invalid fail_transition gone specified in watcher quiet; did you mean go?" in problems[1]["text"]
    missing = cli("agent", "validate", str(tmp_path / "nowhere"))
    assert missing.exit_code == 1
    assert "no such file or directory" in missing.stderr


def test_a_machine_is_drawn(done, cli, tmp_path):
    folder = write(tmp_path / "m", manifest(QUIET))

    assert done("agent", "graph", str(folder)).startswith("<svg ")
    assert done("agent", "graph", str(folder), "-o", str(tmp_path / "m.svg")) == f"Wrote {tmp_path / 'm.svg'}\n"
    assert (tmp_path / "m.svg").read_text().endswith("</svg>\n")
    assert done("agent", "graph", str(folder / "machine.yaml"), "--dot").startswith("digraph fsm {")
    assert cli("agent", "graph", str(tmp_path)).exit_code == 1


def test_a_machine_on_the_line_that_cannot_run_is_refused_at_once(cli, tmp_path):
    folder = write(tmp_path / "m", "name: m\n")

    result = cli("agent", "run", "--offline", str(folder))

    assert result.exit_code == 1
    assert "version is required" in result.stderr
    assert cli("agent", "run").exit_code == 2


def test_the_words_of_choria(capsys, tmp_path):
    right = write(tmp_path / "right", manifest(QUIET))
    wrong = write(tmp_path / "wrong", "name: wrong\n")

    assert choria(["machine", "validate", str(right)]) == 0
    assert capsys.readouterr().out == f"{right} is has a valid machine.yaml\n"
    assert choria(["machine", "validate", str(wrong)]) == 1
    captured = capsys.readouterr()
    assert "version is required" in captured.out
    assert captured.err == "FATA[0000] Could not run Choria: validation failed\n"
    assert choria(["machine", "graph", str(right)]) == 0
    assert capsys.readouterr().out.startswith("digraph fsm {")


def test_choria_runs_a_machine_without_a_server(tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: work, type: exec, interval: 0.5s, state_match: [A], success_transition: go, "
            'properties: {command: \'touch {{ lookup "facts.file" "x" }}.{{ lookup "data.ending" "x" }}\'}}'
        ),
    )
    (tmp_path / "facts.json").write_text('{"file": "made"}')
    (tmp_path / "data.json").write_text('{"ending": "txt"}')

    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "jetlake", "choria", "machine", "run", str(folder)),
            *("--facts", str(tmp_path / "facts.json"), "--data", str(tmp_path / "data.json")),
        ],
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 40
    while not (folder / "made.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    _, log = process.communicate(timeout=60)

    assert (folder / "made.txt").exists(), log
    assert process.returncode == 0
