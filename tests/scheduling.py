"""Divides the tests among the processes of xdist: file by file, and some folders as a whole or in parts.

Invariant: the tests of one file run in one process, so that what they share is started once. The folders named here
share over many files what takes long: all tests of Spark one Java, half of those of the dashboard a browser, those of
the style the syntax trees of all modules.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from xdist.scheduler import LoadFileScheduling

PARTS_OF_FOLDERS = {"tests/spark/": 1, "tests/dashboard/": 2, "tests/style/": 1}
"""Folders that share something, and how many processes do so at most: a part that is too long ends alone."""

SLOW_FILES = (
    "tests/docs/test_examples.py",
    "tests/compatibility/test_leafnode_outages.py",
    "tests/cli/test_demo.py",
    "tests/seeds/test_jetstream_technical_preview.py",
    "tests/compatibility/test_differential_consumers.py",
    "tests/storage/test_uploads.py",
    "tests/seeds/test_choria_streams_governor.py",
    "tests/management/test_fairness.py",
    "tests/storage/test_remote_killed.py",
    "tests/kv/test_cluster.py",
    "tests/agents/machines/test_host.py",
    "tests/crashtest/test_crashtest.py",
    "tests/compatibility/test_consumer_memory.py",
    "tests/benchmarks/test_consumer_measure.py",
    "tests/clients/test_go_client.py",
)
"""Few tests that take long, longest first; xdist alone goes by the number of tests, and would end with these."""


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
