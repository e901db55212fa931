"""The files of one server: written, moved, removed."""

import os

import pytest

from jetlake.errors import StartError
from jetlake.server.files import Ports
from jetlake.server.options import ServerOptions
from jetlake.server.own_files import OwnFiles
from jetlake.server.python_log import PythonLog

PORTS = Ports(nats=["nats://127.0.0.1:4222"])


@pytest.fixture
def files():
    return OwnFiles(PythonLog())


def test_ports_are_not_looked_for_without_a_ports_file(files):
    files.write_ports(ServerOptions(), pytest.fail)


def test_ports_file_moves_and_goes_away(files, tmp_path):
    folders = [tmp_path / name for name in ("before", "after")]
    for folder in folders:
        folder.mkdir()
    before, after = (ServerOptions(ports_file_directory=str(folder)) for folder in folders)

    files.write_ports(before, lambda: PORTS)
    files.move(before, after, lambda: PORTS)

    assert [len(list(folder.iterdir())) for folder in folders] == [0, 1]
    files.remove()
    files.remove()
    assert list(folders[1].iterdir()) == []


def test_pid_file_that_cannot_be_written_ends_a_start_and_no_reload(files, tmp_path):
    before = ServerOptions(pid_file=str(tmp_path / "pid"))
    wrong = ServerOptions(pid_file=str(tmp_path / "none" / "pid"))
    files.write_pid(before)

    with pytest.raises(StartError, match="Could not write pidfile"):
        files.write_pid(wrong)
    files.move(before, wrong, lambda: PORTS)

    assert (tmp_path / "pid").read_text() == str(os.getpid())
