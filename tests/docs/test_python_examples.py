"""The Python blocks of README and of pages without tests of their own run, and print what their comments say."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import jetlake
from tests.docs import pages

PAGES = ("README.md", "docs/guides/backup_and_restore.md", "docs/guides/quick_start.md", "docs/index.md")
PROMISE = re.compile(r"print\(.*  # ([^,\n]+)", re.MULTILINE)
SPARK_S_MAX = 300

BLOCKS = [
    pytest.param(block, id=f"{page}:{block.line}")
    for page in PAGES
    for block in pages.blocks(page)
    if block.language == "python" and block.is_run
]
PLAIN = [each for each in BLOCKS if "def test_" not in each.values[0].text and "spark" not in each.values[0].text]
TESTS = [each for each in BLOCKS if "def test_" in each.values[0].text]
SPARK = [each for each in BLOCKS if "jetlake.spark" in each.values[0].text]


def test_readme_has_an_example_of_each_kind():
    for kind in (PLAIN, TESTS, SPARK):
        assert any(each.values[0].page == "README.md" for each in kind)


@pytest.mark.parametrize("block", PLAIN)
def test_every_example_prints_what_it_says(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "jetlake.table" in block.text:
        pytest.importorskip("pyarrow", reason="the extra `arrow` is not installed")

    exec(compile(block.text, f"{block.page}:{block.line}", "exec"), {"__name__": "__main__"})

    printed = capsys.readouterr().out
    assert [wanted for wanted in PROMISE.findall(block.text) if wanted not in printed] == []


@pytest.mark.parametrize("block", TESTS)
def test_every_example_of_a_test_passes_when_pasted(block, tmp_path):
    (tmp_path / "test_example.py").write_text(block.text)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")

    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "jetlake.testing.plugin"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=55,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "1 passed" in answer.stdout


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("JETLAKE_LONG") != "1", reason="starts a Spark of its own: make test-long")
@pytest.mark.timeout(SPARK_S_MAX + 30)
@pytest.mark.parametrize("block", SPARK)
def test_every_example_for_spark_shows_the_orders(block, tmp_path):
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    with jetlake.Server() as server, jetlake.connect_sync(server) as client:
        orders = client.streams.create("ORDERS", subjects=["orders.>"])
        orders.publish("orders.eu", {"id": 1})
        orders.publish("orders.eu", {"id": 2})
        assert "nats://127.0.0.1:4222" in block.text
        program = block.text.replace("nats://127.0.0.1:4222", server.url)

        answer = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=SPARK_S_MAX,
        )

    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]
    assert re.search(r"\|orders\.eu\| +2\|", answer.stdout)
