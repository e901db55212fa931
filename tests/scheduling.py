"""Divides the tests among the processes of xdist: file by file, and some folders as a whole.

Invariant: the tests of one file run in one process, so that what they share is started once. The folders named here
share what takes long to start over many files: all tests of Spark one Java, all tests of the dashboard one browser.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

SHARED_FOLDERS = ("tests/dashboard/", "tests/spark/")


class FolderScheduling(LoadFileScheduling):
    """Hands out files; the shared folders have the most tests of all, and so are handed out first."""

    def _split_scope(self, nodeid: str) -> str:
        return next((folder for folder in SHARED_FOLDERS if nodeid.startswith(folder)), super()._split_scope(nodeid))
