"""Divides the tests among the processes of xdist: file by file, and some folders as a whole or in parts.

Invariant: the tests of one file run in one process, so that what they share is started once. The folders named here
share what takes long to start over many files: all tests of Spark one Java, half of those of the dashboard a browser.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from xdist.scheduler import LoadFileScheduling

PARTS_OF_FOLDERS = {"tests/dashboard/": 2, "tests/spark/": 1}
"""Folders that share something, and how many processes do so at most: a part that is too long ends alone."""

SLOW_FILES = ("tests/docs/test_examples.py", "tests/compatibility/test_leafnode_outages.py", "tests/cli/test_demo.py")
"""What takes longest of all others; xdist alone goes by the number of tests, and would end with these."""


class FolderScheduling(LoadFileScheduling):
    """Hands out the shared folders first, then the slow files, then those with the most tests."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        for folder, parts in PARTS_OF_FOLDERS.items():
            if nodeid.startswith(folder):
                return f"{folder}{crc32(file.encode()) % parts}"
        return str(file)

    def _assign_work_unit(self, node: Any) -> None:
        shared = (f"{folder}{part}" for folder, parts in PARTS_OF_FOLDERS.items() for part in range(parts))
        first = next((scope for scope in (*shared, *SLOW_FILES) if scope in self.workqueue), None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
