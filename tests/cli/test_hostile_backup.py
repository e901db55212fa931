"""Folders that look like backups: what is read of them ends, and what is written there goes nowhere else."""

import os
import stat
from pathlib import Path

import pytest

DESCRIPTION = '{"config": {"name": "HOSTILE", "subjects": ["hostile"]}, "state": {}}'


def make(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to an endless device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["pipe", "link to an endless device", "folder"])
@pytest.mark.parametrize("name", ["backup.json", "stream.tar.s2"])
def test_what_is_no_file_is_not_read(cli, read, tmp_path, name, kind):
    (tmp_path / "backup.json").write_text(DESCRIPTION)
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name, kind)

    answer = cli("stream", "restore", str(tmp_path))

    assert answer.exit_code == 1
    assert name in answer.stderr
    assert "HOSTILE" not in read("stream", "ls", "--names")


@pytest.mark.parametrize("stream", ["../../etc", "/etc/passwd", "A\nPUB b 0", "A.>", "A B", ""])
def test_name_in_a_backup_does_not_lead_elsewhere(cli, read, tmp_path, stream):
    description = DESCRIPTION.replace('"HOSTILE"', str([stream])[1:-1].replace("'", '"'))
    (tmp_path / "backup.json").write_text(description)
    (tmp_path / "stream.tar.s2").write_bytes(b"x" * 100)

    answer = cli("stream", "restore", str(tmp_path))

    assert answer.exit_code == 1
    assert "Traceback" not in answer.output
    assert stream not in read("stream", "ls", "--names")


@pytest.mark.parametrize("name", [".stream.tar.s2.partial", ".backup.json.partial"])
def test_backup_does_not_write_through_a_link(done, tmp_path, name):
    done("stream", "add", f"LINKED{len(name)}", "--subjects", f"linked{len(name)}", "--defaults")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / name).symlink_to(victim)

    done("stream", "backup", f"LINKED{len(name)}", str(folder))

    assert victim.read_text() == "precious"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
