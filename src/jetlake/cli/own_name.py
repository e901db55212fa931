"""`own_name`: how this installation's `jetlake` is called from the current folder.

Lines to paste must reach the `jetlake` that printed them, also if it is in a virtual environment that nobody has
activated.
"""

import os
import shlex
import shutil
import sys
from pathlib import Path

__all__ = ["own_name"]

NAME = "jetlake"


def own_name() -> str:
    """Return `jetlake` if a shell finds this one by it, else the path of its script, or `python -m jetlake`."""
    # A program is in its environment by its path, not by what the path leads to: links lead out of environments.
    script = Path(sys.executable).parent / NAME
    found = shutil.which(NAME)
    if found is not None and Path(os.path.abspath(found)) == script:
        return NAME
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m {NAME}"
    near = os.path.relpath(script)
    return shlex.quote(str(script) if near.startswith("..") else near)
