"""`jetlake crashtest`: real servers are killed, cut off and damaged, and what they lose is counted."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest

from jetlake.crashtest import damage, power
from jetlake.crashtest.load import payload_of
from jetlake.crashtest.verdict import CrashVerdict, compare
from jetlake.errors import MissingDependencyError

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


def run(*words, folder):
    command = [sys.executable, "-m", "jetlake", "crashtest", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)


@pytest.mark.parametrize("test", ["kill", "torn-write", "bit-flip"])
def test_both_servers_are_tested_and_jetlake_keeps_its_promise(tmp_path, test):
    answer = run("--only", test, "--seconds", "1", "--json", folder=tmp_path)

    assert answer.returncode == 0, answer.stdout + answer.stderr
    outcomes = {outcome["server"]: outcome["verdict"] for outcome in json.loads(answer.stdout)["outcomes"]}
    assert set(outcomes) == {"jetlake", "nats-server"}
    for verdict in outcomes.values():
        assert verdict["rounds"] >= 1
        assert verdict["acknowledged"] > 0
    assert outcomes["jetlake"]["wrong"] == 0
    assert outcomes["jetlake"]["failed_starts"] == 0
    if test == "kill":
        assert outcomes["jetlake"]["lost"] == outcomes["jetlake"]["reused"] == 0
    assert list(tmp_path.iterdir()) == []


def test_power_cut_takes_what_was_not_synced(tmp_path):
    try:
        power.require()
    except MissingDependencyError as error:
        pytest.skip(str(error))

    answer = run("--only", "power-cut", "--seconds", "1", "--json", folder=tmp_path)

    outcomes = {outcome["server"]: outcome for outcome in json.loads(answer.stdout)["outcomes"]}
    if outcomes["jetlake"]["skipped"]:
        # A container may be root and still not be allowed to mount.
        pytest.skip(outcomes["jetlake"]["skipped"])
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert outcomes["jetlake"]["verdict"]["acknowledged"] > 0
    assert outcomes["jetlake"]["verdict"]["lost"] == 0
    # It acknowledges before it syncs, as its documentation says; if this ever fails, the cut is no cut.
    assert outcomes["nats-server"]["verdict"]["lost"] > 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root can make power cuts")
def test_power_cut_without_root_says_what_it_needs(tmp_path):
    answer = run("--only", "power-cut", "--seconds", "1", "--no-compare", folder=tmp_path)

    assert "not run: power cut: needs root" in answer.stdout


def test_table_says_what_was_done(tmp_path):
    answer = run("--only", "kill", "--seconds", "1", "--no-compare", "--seed", "7", folder=tmp_path)

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.splitlines()[0].split("\t")[:5] == ["test", "server", "rounds", "acknowledged", "lost"]
    assert "SIGKILL under load" in answer.stdout
    assert "--seed 7" in answer.stdout


def test_wrong_lines_are_refused(tmp_path):
    assert "there is no test 'flood'" in run("--only", "flood", folder=tmp_path).stderr
    assert "is not a folder" in run(folder=tmp_path / "nowhere").stderr


def test_every_kind_of_loss_is_counted():
    acknowledged = {number: number + 1 for number in range(5)}
    whole = {sequence: payload_of(number) for number, sequence in acknowledged.items()}

    assert compare(acknowledged, whole, 6, complaints=0).is_clean
    assert compare(acknowledged, None, 0, complaints=0).streams_gone == 1
    lost = compare(acknowledged, {key: value for key, value in whole.items() if key != 3}, 6, complaints=0)
    assert (lost.lost, lost.wrong, lost.silent) == (1, 0, 1)
    flipped = compare(acknowledged, whole | {2: whole[2][:-1] + b"!"}, 6, complaints=1)
    assert (flipped.lost, flipped.wrong, flipped.silent) == (0, 1, 0)
    moved = compare(acknowledged, whole | {2: payload_of(4)}, 6, complaints=0)
    assert moved.wrong == 1
    assert compare(acknowledged, whole, 5, complaints=0).reused == 1
    assert lost + flipped == CrashVerdict(rounds=2, acknowledged=10, lost=1, wrong=1, silent=1)


def test_damage_is_what_it_says(tmp_path):
    chance = random.Random(1)
    (tmp_path / "small").write_bytes(b"abc")
    content = bytes(range(1, 200)) * 50
    (tmp_path / "large").write_bytes(content + bytes(5000))

    damage.flip_a_bit(tmp_path, chance)
    changed = (tmp_path / "small").read_bytes() + (tmp_path / "large").read_bytes()
    differences = [
        one ^ other for one, other in zip(b"abc" + content + bytes(5000), changed, strict=True) if one != other
    ]
    assert len(differences) == 1
    assert differences[0].bit_count() == 1

    damage.tear_last_write(tmp_path, chance)
    size = (tmp_path / "large").stat().st_size
    assert len(content) - damage.TORN_BYTES_MAX <= size < len(content)
    assert (tmp_path / "small").stat().st_size == 3
