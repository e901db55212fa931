"""The shell blocks of README and guides work when they are pasted in the order of the page."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import jetlake
from tests.compatibility.server_process import start_server_process
from tests.docs import pages
from tests.docs.shell import Session

PAGES = (
    "README.md",
    "docs/guides/backup_and_restore.md",
    "docs/guides/kafka.md",
    "docs/guides/key_value.md",
    "docs/guides/move_from_nats_server.md",
    "docs/guides/objects.md",
    "docs/guides/quick_start.md",
    "docs/guides/run_a_server.md",
    "docs/guides/sql.md",
    "docs/guides/templates.md",
    "docs/guides/upgrade.md",
)
SHELLS = {"sh", "shell", "bash"}
PAGE_S_MAX = 300

FROM_NATS_SERVER = {"docs/guides/move_from_nats_server.md"}


@contextmanager
def running(page, folder):
    """Run the server that a page presupposes, and give its address."""
    if page in FROM_NATS_SERVER:
        process = start_server_process("nats-server", folder, ["-js", "-sd", str(folder / "nats")])
        try:
            yield process.url
        finally:
            process.stop()
    else:
        with jetlake.Server() as server:
            yield server.url


@pytest.mark.timeout(PAGE_S_MAX)
@pytest.mark.parametrize("page", PAGES)
def test_every_block_works_in_its_turn(page, tmp_path):
    if "jetlake sql" in pages.read(page):
        pytest.importorskip("duckdb", reason="the extra `sql` is not installed")
    blocks = [block for block in pages.blocks(page) if block.is_run]
    session = Session(tmp_path)
    printed, ran = "", 0

    with running(page, tmp_path) as url:
        try:
            session.visit(url)
            for block in blocks:
                if block.note == "background":
                    session.start(block)
                elif block.note == "output":
                    missing = [line for line in block.text.splitlines() if line.strip() not in printed]
                    assert not missing, f"{page}:{block.line} promises {missing}, printed was:\n{printed}"
                elif block.language in SHELLS:
                    printed = session.run(block)
                    ran += 1
        finally:
            session.close()

    assert ran, f"{page} has no block that is run; take it out of PAGES"


@pytest.mark.parametrize("page", pages.documentation())
def test_blocks_that_are_not_run_say_why(page):
    for block in pages.blocks(page):
        if not block.is_run:
            assert block.note.partition("not run, ")[2], f"{page}:{block.line}: write `not run, REASON`"
