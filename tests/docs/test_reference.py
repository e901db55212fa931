"""The generated pages of the reference are up to date, and complete."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from jetlake.cli.commands import COMMANDS
from tests.docs.pages import REPOSITORY
from tests.docs.reference import configuration_keys, pages, python_api, stale
from tests.server.configuration.test_reference import keys_asked_for


def test_generated_pages_are_up_to_date():
    assert [path.name for path in stale()] == [], "run `make reference`, and commit what it writes"


def test_pages_do_not_depend_on_the_terminal():
    environment = os.environ | {"COLUMNS": "40", "TERM": "dumb", "NO_COLOR": "1", "LANG": "C"}

    answer = subprocess.run(
        [sys.executable, "-m", "tests.docs.reference"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_command_has_a_section():
    text = next(text for path, text in pages().items() if path.name == "commands.md")

    assert [each.name for each in COMMANDS if not each.hidden and f"## `jetlake {each.name}`" not in text] == []


def test_every_key_that_is_read_is_listed():
    text = next(text for path, text in pages().items() if path.name == "configuration_keys.md")

    assert [key for key in sorted(keys_asked_for()) if f"`{key}`" not in text] == []
    assert len(configuration_keys.keys()) > 100


def test_every_export_of_the_package_has_a_signature():
    text = python_api.page()

    missing = [
        f"{module}.{name}"
        for module in python_api.MODULES
        for name in python_api.exported(module)
        if not name.startswith("__") and f"### `{module}.{name}`\n\n```python" not in text
    ]

    assert missing == []


def test_no_default_is_shown_in_nanoseconds():
    text = next(text for path, text in pages().items() if path.name == "commands.md")

    wrong = [line for line in text.splitlines() if re.search(r"Default: `\d{8,}`", line)]

    assert wrong == [], 'give these options a `show_default`, as in show_default="30s"'
