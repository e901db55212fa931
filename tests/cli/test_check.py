"""`jetlake check` on copies of a kept store that were damaged: exit code, table and JSON."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from jetlake.cli.app import create

FIXTURE = Path(__file__).parents[1] / "fixtures" / "stores" / "version_1"
SEALED, OPEN = "0000000001.segment", "0000000002.segment"
RECORDS_START = 4096
STRAY_POSITION = 1000

ANCHOR_OF_FORMAT_9 = bytes.fromhex("4a45544c414b455409000000010000000000000000000000000000008754746b12ff6277")
"""A whole file with an empty body, as a later version might write it."""


@pytest.fixture
def store(tmp_path):
    return Path(shutil.copytree(FIXTURE, tmp_path / "ORDERS"))


def flip(path, position):
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def run(*arguments):
    return CliRunner().invoke(create(), ["check", *map(str, arguments)])


def findings_of(folder):
    answer = run(folder, "--json")
    reports = json.loads(answer.stdout)
    assert reports["exit_code"] == answer.exit_code
    return answer.exit_code, [finding["kind"] for store in reports["stores"] for finding in store["report"]["findings"]]


def test_a_whole_store_is_all_good(store):
    answer = run(store)

    assert answer.exit_code == 0
    assert f"{store}: all good" in answer.stdout
    assert "17" in answer.stdout


def test_nothing_is_changed_by_looking(store):
    flip(store / "anchor.1", 20)
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in store.iterdir()}

    run(store)

    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in store.iterdir()} == before


def test_a_damaged_message_is_a_loss_and_named(store):
    flip(store / SEALED, RECORDS_START + 40)

    answer = run(store)

    assert answer.exit_code == 3
    assert "something is lost" in answer.stdout
    assert "message 1 is lost" in answer.stdout
    assert f"{SEALED}: " in answer.stdout
    assert "put the segment back from a backup" in answer.stdout


@pytest.mark.parametrize(
    ("name", "position", "kind"),
    [("anchor.1", 20, "healed"), (OPEN, 10, "healed"), (SEALED, -40, "footer_rebuilt"), (OPEN, -1, "tail_cut")],
)
def test_what_opening_heals_ends_with_one(store, name, position, kind):
    flip(store / name, position)

    assert findings_of(store) == (1, [kind])
    assert "opening the store" in run(store).stdout


def test_a_stray_byte_is_harmless_and_ends_with_one(store):
    flip(store / SEALED, STRAY_POSITION)

    answer = run(store)

    assert answer.exit_code == 1
    assert "whole, with harmless findings" in answer.stdout
    assert f"byte {STRAY_POSITION} should be zero" in answer.stdout


@pytest.mark.parametrize("name", [SEALED, OPEN])
def test_a_missing_segment_is_a_loss(store, name):
    (store / name).unlink()

    assert findings_of(store) == (3, ["segment_missing"])


def test_a_lost_anchor_is_made_again_by_opening(store):
    (store / "anchor.1").unlink()
    (store / "anchor.2").unlink()

    assert findings_of(store) == (1, ["anchor_lost"])


def test_a_tree_is_walked_in_order_and_the_worst_store_decides(store, tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "deeper" / "APPLES")
    flip(store / SEALED, RECORDS_START + 40)

    answer = run(tmp_path, "--json")

    stores = json.loads(answer.stdout)["stores"]
    assert answer.exit_code == 3
    assert [Path(checked["folder"]).name for checked in stores] == ["ORDERS", "APPLES"]
    assert [len(checked["report"]["findings"]) > 0 for checked in stores] == [True, False]


def test_files_put_aside_and_unfinished_ones_are_listed(store):
    (store / "0000000002.tail-9000.aside").write_bytes(b"x")
    (store / "anchor.1.new").write_bytes(b"x")

    answer = run(store)

    assert answer.exit_code == 0
    assert "0000000002.tail-9000.aside" in answer.stdout
    assert "anchor.1.new" in answer.stdout


@pytest.mark.parametrize("kind", ["empty", "missing", "logs"])
def test_a_folder_without_a_store_is_an_error(tmp_path, kind):
    if kind == "logs":
        (tmp_path / "server.log.1").write_text("not ours")
    folder = tmp_path / "nowhere" if kind == "missing" else tmp_path

    answer = run(folder)

    assert answer.exit_code == 2
    assert answer.stderr.startswith("jetlake check: ")
    assert str(folder) in answer.stderr


def test_a_store_of_a_later_version_is_refused_with_its_number(store):
    for copy in ("anchor.1", "anchor.2"):
        (store / copy).write_bytes(ANCHOR_OF_FORMAT_9)

    answer = run(store)

    assert answer.exit_code == 2
    assert "has format 9" in answer.stdout


def test_a_pipe_gets_plain_lines_and_a_terminal_colours(store):
    flip(store / SEALED, RECORDS_START + 40)
    command = [sys.executable, "-m", "jetlake", "check", str(store)]

    piped = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    shown = run_on_terminal(command)

    assert piped.returncode == 3
    assert "\x1b" not in piped.stdout
    assert any("message 1 is lost" in line and "backup" in line for line in piped.stdout.splitlines())
    assert "\x1b[" in shown
    assert "╭" in shown


def run_on_terminal(command):
    """Return what a program writes to a terminal."""
    primary, secondary = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, stdout=secondary, stderr=secondary, env=environment)
    os.close(secondary)
    shown = b""
    try:
        while piece := os.read(primary, 65536):
            shown += piece
    except OSError:
        pass  # Linux says so when the other side has closed.
    finally:
        os.close(primary)
        process.wait(timeout=60)
    return shown.decode()
