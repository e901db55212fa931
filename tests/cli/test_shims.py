"""Executables under the names of NATS' own tools, in a folder of the user's choice."""

import os
import subprocess

from jetlake.cli import shims


def test_executables_are_written_and_run(tmp_path, capsys):
    folder = tmp_path / "some folder"

    assert shims.main([str(folder)]) == 0

    assert sorted(os.listdir(folder)) == sorted(shims.EXECUTABLES)
    assert f'export PATH="{folder}:$PATH"' in capsys.readouterr().out
    done = subprocess.run([folder / "jsm", "-h"], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("\nUsage:\n  jsm [-s server]")
    done = subprocess.run([folder / "nats-server", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("nats-server: v")


def test_our_own_are_written_anew_and_others_never(tmp_path, capsys):
    assert shims.main([str(tmp_path)]) == 0
    assert shims.main([str(tmp_path)]) == 0
    (tmp_path / "nats").write_text("a real one")

    assert shims.main([str(tmp_path)]) == 1

    assert (tmp_path / "nats").read_text() == "a real one"
    assert "holds nats, which is not ours: choose another folder" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told(tmp_path, capsys):
    (tmp_path / "file").write_text("")

    assert shims.main([str(tmp_path / "file" / "folder")]) == 1

    assert "choose another folder" in capsys.readouterr().err


def test_without_a_folder_the_usage_is_shown(capsys):
    assert shims.main([]) == 2
    assert shims.main(["--help"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("Usage: jetlake shims FOLDER")
    assert shown.err == shown.out
