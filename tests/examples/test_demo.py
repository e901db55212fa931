"""The demo runs and leaves a page behind."""

import runpy
import subprocess
import sys
from html.parser import HTMLParser

from tests.conftest import REPOSITORY

DEMO = REPOSITORY / "examples" / "demo.py"


class Tags(HTMLParser):
    """Counts tags, and notes anything that would be loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.sections = 0
        self.loaded = []

    def handle_starttag(self, tag, attributes):
        self.sections += tag == "section"
        self.loaded += [value for name, value in attributes if name in {"src", "href"}]


def test_demo_shows_every_scene_on_a_page_that_needs_nothing_else(tmp_path):
    answer = subprocess.run(
        [sys.executable, DEMO, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )

    assert answer.returncode == 0, answer.stderr
    assert "The same as a page:" in answer.stdout
    tags = Tags()
    tags.feed((tmp_path / "index.html").read_text())
    assert tags.sections == len(runpy.run_path(str(DEMO))["SCENES"])
    assert tags.loaded == []
