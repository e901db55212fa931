"""`jetlake simulate fleet` against both servers: everything it says it did is in the streams."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.adapters.fleet import Stored

WAIT_S_MAX = 60.0
WORDS = ("--nodes", "50", "--seconds", "300", "--seed", "5", "--speed", "0", "--start", "2026-01-01T00:00:00Z")


@pytest.fixture
def stored(url):
    opened = Stored(url)
    for name, subject in (("LIFE", "choria.lifecycle.>"), ("MACHINE", "choria.machine.>"), ("REG", "choria.discovery")):
        opened.create(name, subject)
    yield opened
    for name in ("LIFE", "MACHINE", "REG"):
        opened.streams.ask(f"STREAM.DELETE.{name}")
    opened.close()


def test_what_the_account_counts_is_in_the_streams(done, stored, tmp_path):
    text = done("simulate", "fleet", *WORDS, "--truth", str(tmp_path / "truth.json"))

    truth = json.loads((tmp_path / "truth.json").read_text())
    counts = truth["counts"]
    assert f"Published {truth['published']:,} events of 50 nodes" in text
    machine = sum(count for kind, count in counts.items() if kind.startswith(("transition", "watcher")))
    wait_for(stored, [counts["registration"], machine, truth["events"] - machine - counts["registration"]])


def wait_for(stored: Stored, wanted: list[int]) -> None:
    """Nodes do not wait for an acknowledgement, so the last events may still be on their way to the disk."""
    deadline = time.monotonic() + WAIT_S_MAX
    while (found := [stored.count(name) for name in ("REG", "MACHINE", "LIFE")]) != wanted:
        assert time.monotonic() < deadline, f"{found} instead of {wanted}"
        time.sleep(0.05)


def test_the_same_line_publishes_the_same(read, stored):
    first = read("simulate", "fleet", *WORDS)
    machine = sum(count for kind, count in first["counts"].items() if kind.startswith(("transition", "watcher")))
    registered = first["counts"]["registration"]
    wanted = [registered, machine, first["published"] - machine - registered]
    wait_for(stored, wanted)
    second = read("simulate", "fleet", *WORDS)
    wait_for(stored, [2 * count for count in wanted])

    assert first["counts"] == second["counts"]
    assert first["complete"] is True
    one, other = stored.message("LIFE", 1), stored.message("LIFE", stored.count("LIFE") // 2 + 1)
    assert one["data"] == other["data"]


def test_an_interrupted_simulation_writes_no_account(url, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "jetlake", "simulate", "fleet", "--seconds", "600", "--truth", str(tmp_path / "t.json")],
        env=os.environ | {"NATS_URL": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    opened = Stored(url)
    opened.create("UNTIL", "choria.lifecycle.>")
    try:
        while opened.count("UNTIL") == 0:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=WAIT_S_MAX)
    finally:
        process.kill()
        opened.streams.ask("STREAM.DELETE.UNTIL")
        opened.close()

    assert process.returncode == 0
    assert "is not written" in output
    assert not (tmp_path / "t.json").exists()


def test_wrong_options_are_refused(cli):
    assert cli("simulate", "fleet", "--nodes", "0").exit_code == 2
    assert cli("simulate", "fleet", "--late", "3").exit_code == 2
    assert cli("simulate", "fleet", "--start", "yesterday").exit_code in (1, 2)
