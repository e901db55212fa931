"""Every example of every page works when a reader follows the page from its beginning: shell, Python, tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import jetlake
from tests.compatibility.server_process import start_server_process
from tests.docs import pages
from tests.docs.interpreter import Interpreter
from tests.docs.shell import BLOCK_S_MAX, SHOWN_MAX, Session, promised

RECORDS = ("CHANGELOG.md", "docs/decisions/", "docs/reference/python_api.md")
"""Pages without examples: what was, and signatures that are generated."""

OF_OTHERS = {"docs/guides/secure_a_server.md"}
"""Pages whose blocks are parts of one configuration file; they have a test of their own."""

SHELLS = {"bash", "console", "sh", "shell"}
LANGUAGES = SHELLS | {"python", "sql"}
PAGE_S_MAX = 500
SLOW_BLOCK_S_MAX = 600
SLOW_PAGE_S_MAX = 1800

ON_BOTH_SERVERS = {"docs/guides/key_value.md", "docs/guides/objects.md"}
"""Pages that promise to hold for nats-server too."""

FROM_NATS_SERVER = {"docs/guides/move_from_nats_server.md"}

SPARK_PAGES = {
    "docs/guides/device_tables.md",
    "docs/guides/fleet.md",
    "docs/guides/pipelines.md",
    "docs/guides/spark.md",
    "docs/reference/pipelines.md",
}
"""Each of their blocks needs Spark, some a session of their own."""

EXTRAS = {"jetlake device": "grpc", "jetlake sql": "duckdb", "jetlake.table": "pyarrow", "spark": "pyspark"}
"""What a page that says the former needs."""

PYTEST_INI = """[pytest]
addopts = --strict-markers
filterwarnings = error
asyncio_default_fixture_loop_scope = function
"""

QUERY = "jetlake sql --spark - < query.sql"
"""Queries of pages are about tables that pipelines have written, on Spark."""

PROMISE = re.compile(r"print\(.*  # ([^,\n]+)", re.MULTILINE)
IDENTIFIER = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
NUMBER = re.compile(r"\d[\d.,:TZ+-]*")
COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*jetlake ", re.MULTILINE)


def examples(page):
    """Return the blocks of a page that its reader is meant to use."""
    return [block for block in pages.blocks(page) if block.is_run and (block.note or block.language in LANGUAGES)]


def is_slow(block):
    return block.is_slow or block.page in SPARK_PAGES


def runs():
    """Return the pages to test, each with the kind of server and whether its slow blocks are run."""
    quick = pytest.mark.timeout(PAGE_S_MAX)
    for page in pages.documentation():
        blocks = [block for block in examples(page) if block.language in LANGUAGES]
        if page.startswith(RECORDS) or page in OF_OTHERS or not blocks:
            continue
        kind = "nats-server" if page in FROM_NATS_SERVER else "jetlake"
        if not all(is_slow(block) for block in blocks):
            yield pytest.param(page, kind, False, id=page, marks=quick)
        if page in ON_BOTH_SERVERS:
            marks = (quick, pytest.mark.nats_server)
            yield pytest.param(page, "nats-server", False, id=f"{page}-nats-server", marks=marks)
        if any(is_slow(block) for block in blocks):
            long = pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="starts Spark: make test-long")
            marks = (pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(SLOW_PAGE_S_MAX), long)
            yield pytest.param(page, kind, True, id=f"{page}-slow", marks=marks)


@contextmanager
def running(kind, folder):
    """Run the server that a page presupposes, and give its address."""
    if kind == "nats-server":
        process = start_server_process("nats-server", folder, ["-js", "-sd", str(folder / "nats")])
        try:
            yield process.url
        finally:
            process.stop()
    else:
        with jetlake.Server() as server:
            yield server.url


class Reader:
    """Follows one page, block by block."""

    def __init__(self, folder, *, with_slow):
        self.session = Session(folder)
        self._folder = folder
        self._with_slow = with_slow
        self._interpreter = None
        self._printed = ""
        self._tests = 0

    def follow(self, block):
        where = f"{block.page}:{block.line}"
        limit_s = SLOW_BLOCK_S_MAX if self._with_slow else BLOCK_S_MAX
        if block.file:
            self.session.save(block)
        elif block.note == "output":
            check(where, self._printed, block.text.splitlines())
        elif block.language in SHELLS:
            is_endless = block.note == "background"
            self._printed = self.session.start(block) if is_endless else self.session.run(block, limit_s)
            self._await(promised(block), limit_s)
            check(where, self._printed, promised(block), is_console=True)
        elif block.language == "sql":
            self.session.save(block._replace(note="file query.sql"))
            self._printed = self.session.run(block._replace(language="sh", text=QUERY), limit_s)
        elif block.language == "python" and re.search(r"^(?:async )?def test_", block.text, re.MULTILINE):
            self._run_tests(block)
        elif block.language == "python":
            self._interpreter = self._interpreter or Interpreter(self._folder, self.session.environment)
            self._printed = self._interpreter.run(self.session.localized(block.text), where, limit_s)
            check(where, self._printed, PROMISE.findall(block.text))

    def _await(self, lines, limit_s):
        """Give a program in the background the time to print what the page promises."""
        deadline = time.monotonic() + limit_s
        printed = self._printed
        while missing(self._printed, lines, is_console=True) and time.monotonic() < deadline:
            if (heard := self.session.heard()) is None:
                break
            self._printed = f"{printed}\n{heard}"
            time.sleep(0.05)

    def _run_tests(self, block):
        """Paste a block into a project of its own and run pytest there."""
        self._tests += 1
        folder = self._folder / f"tests-{self._tests}"
        folder.mkdir()
        (folder / "test_example.py").write_text(block.text)
        (folder / "pytest.ini").write_text(PYTEST_INI)
        answer = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "jetlake.testing.plugin", "-p", "pytest_asyncio.plugin"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=BLOCK_S_MAX,
            env=self.session.environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        )
        count = len(re.findall(r"^(?:async )?def test_", block.text, re.MULTILINE))
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert f"{count} passed" in answer.stdout

    def close(self):
        if self._interpreter is not None:
            self._interpreter.close()
        self.session.close()


def check(where, printed, lines, *, is_console=False):
    """Each line must be in what was printed."""
    absent = missing(printed, lines, is_console=is_console)
    assert not absent, f"{where} promises {absent}, printed was:\n{printed[-SHOWN_MAX:]}"


def missing(printed, lines, *, is_console):
    """Return the lines that were not printed; `…` is anything, and numbers on a console are those of another day."""
    shown = canonical(printed, is_console=is_console)
    wanted = [canonical(line, is_console=is_console).strip() for line in lines if line.strip()]
    return [line for line in wanted if not re.search(".*".join(map(re.escape, line.split("…"))), shown)]


def canonical(text, *, is_console):
    # The frame of a table is as wide as its contents.
    text = re.sub(r"[ \t\u2500-\u257f]+", " ", text)
    return NUMBER.sub("0", IDENTIFIER.sub("0", text)) if is_console else text


@pytest.mark.parametrize(("page", "kind", "with_slow"), list(runs()))
def test_every_block_works_in_its_turn(page, kind, with_slow, tmp_path):
    for words, module in EXTRAS.items():
        if words in pages.read(page) and (module != "pyspark" or with_slow):
            pytest.importorskip(module, reason=f"the extra for `{words}` is not installed")
    reader = Reader(tmp_path, with_slow=with_slow)

    with running(kind, tmp_path) as url:
        try:
            reader.session.visit(url)
            is_left_out = False
            for block in examples(page):
                # What a block prints is not there if the block was not run.
                is_left_out = is_left_out if block.note == "output" else is_slow(block) and not with_slow
                if not is_left_out:
                    reader.follow(block)
        finally:
            reader.close()


@pytest.mark.parametrize("page", pages.documentation())
def test_blocks_that_are_not_run_say_why(page):
    for block in pages.blocks(page):
        if not block.is_run:
            assert block.note.partition("not run, ")[2], f"{page}:{block.line}: write `not run, REASON`"


@pytest.mark.parametrize("page", [page for page in pages.documentation() if not page.startswith(RECORDS)])
def test_blocks_with_commands_are_marked_as_such(page):
    for block in pages.blocks(page):
        if block.is_run and block.language in {"", "text"} and block.note != "output":
            assert not COMMAND.search(block.text), f"{page}:{block.line}: write ```sh, or ```console with its output"


def test_readme_has_an_example_of_each_kind():
    blocks = examples("README.md")

    assert any(block.language == "sh" for block in blocks)
    assert any("def test_" in block.text for block in blocks)
    assert any(block.is_slow and "jetlake.spark" in block.text for block in blocks)
