"""A page whose packages are missing says which command installs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOOK = """
import sys
# As if it were not installed.
sys.modules[{module!r}] = None
from jetlake.dashboard.extras import Extra, install_command
print(install_command(Extra.{extra}))
"""


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [
        ("duckdb", "SQL", "pip install 'jetlake[sql]'"),
        ("deltalake", "LAKE", "pip install 'jetlake[spark]'"),
        ("cbor2", "DEVICES", "pip install 'jetlake[devices]'"),
    ],
)
def test_command_names_the_extra(module: str, extra: str, command: str) -> None:
    script = LOOK.format(module=module, extra=extra)

    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert told.strip() == command
