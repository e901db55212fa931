"""Divides the tests among the processes of xdist: file by file, and some folders as a whole.

Invariant: the tests of one file run in one process, so that what they share is started once. The folders named here
share what takes long to start over many files: all tests of Spark one Java, all tests of the dashboard one browser.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling

SHARED_FOLDERS = ("tests/dashboard/", "tests/spark/")

SLOW_FILES = ("tests/docs/test_examples.py",)
"""What takes longest of all others; xdist alone goes by the number of tests, and would end with these."""


class FolderScheduling(LoadFileScheduling):
    """Hands out the shared folders first, then the slow files, then those with the most tests."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in SHARED_FOLDERS if nodeid.startswith(folder)), super()._split_scope(nodeid))

    def _assign_work_unit(self, node: Any) -> None:
        first = next((scope for scope in (*SHARED_FOLDERS, *SLOW_FILES) if scope in self.workqueue), None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
