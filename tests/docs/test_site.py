"""`make docs` builds a site with a search and highlighted code, which loads nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.docs.pages import REPOSITORY

LOADED = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(https?://[^\"'> ]+)[^>]*>")
BUILD_S_MAX = 100


@pytest.mark.timeout(BUILD_S_MAX + 20)
def test_site_has_search_and_highlighted_code_and_needs_no_other_machine(tmp_path):
    pytest.importorskip("material", reason="the extra `docs` is not installed: make docs")

    answer = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)],
        cwd=REPOSITORY,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=BUILD_S_MAX,
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr
    index = json.loads((tmp_path / "search" / "search_index.json").read_text())
    assert any("backup" in entry["location"] for entry in index["docs"])
    page = (tmp_path / "guides" / "python_client" / "index.html").read_text()
    assert 'class="language-python highlight"' in page
    loaded = {
        found
        for path in tmp_path.rglob("*.html")
        for found in LOADED.findall(path.read_text())
        if "canonical" not in found
    }
    assert loaded == set()
