"""The folder of JetStream."""

import os

import pytest

from jetlake.errors import StartError
from jetlake.server.options import JetStreamOptions
from jetlake.server.python_log import PythonLog
from jetlake.server.store_folder import StoreFolder


def test_temporary_folder_is_gone_after_the_end():
    folder = StoreFolder(JetStreamOptions(enabled=True), PythonLog(), temporary=True)

    folder.open()
    directory = folder.directory
    folder.remove()

    assert not os.path.exists(directory)


def test_named_folder_stays(tmp_path):
    options = JetStreamOptions(enabled=True, store_directory=str(tmp_path), max_memory_bytes=5, max_storage_bytes=0)
    folder = StoreFolder(options, PythonLog(), temporary=True)

    folder.open()
    folder.remove()

    assert folder.directory.startswith(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 1
    assert (folder.memory_bytes_max, folder.storage_bytes_max) == (5, 0)


def test_folder_that_cannot_be_made_ends_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    folder = StoreFolder(
        JetStreamOptions(enabled=True, store_directory=str(tmp_path / "file")), PythonLog(), temporary=False
    )

    with pytest.raises(StartError, match="storage directory is not a directory"):
        folder.open()
