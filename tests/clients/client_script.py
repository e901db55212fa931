"""Prepares a client's script and runs it against a server that is restarted in the middle."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compatibility.server_process import ServerProcess

SOURCES = Path(__file__).parent
CACHE = SOURCES.parent.parent / "build" / "clients"

# Fetching and building takes seconds, from nothing on a slow line and a busy machine some minutes.
PREPARE_SECONDS_MAX = 840
SCRIPT_SECONDS_MAX = 60

READY_TO_RECONNECT = "ready to reconnect"


def require_tool(name: str, command_to_install: str) -> str:
    """Return the tool's path. A missing tool is a skip, but a failure where CI is set: there it must be present."""
    path = shutil.which(name)
    if path is not None:
        return path
    message = f"no {name} on PATH; install it with `{command_to_install}` and run the tests again"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def prepare(command: list[str], folder: Path) -> None:
    """Run a command that fetches or builds, and show its output when it fails."""
    completed = subprocess.run(
        command, check=False, cwd=folder, timeout=PREPARE_SECONDS_MAX, capture_output=True, text=True
    )
    assert completed.returncode == 0, f"{' '.join(command)} failed:\n{completed.stdout}{completed.stderr}"


def run_script(
    command: list[str], folder: Path, start_server: Callable[..., ServerProcess], url: str = ""
) -> list[str]:
    """Run the script against a server, restart the server when the script asks for it, return the printed lines.

    The script is told the URL of the server, unless another one is given.
    """
    server = start_server()
    process = subprocess.Popen(
        [*command, url or server.url], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    # Ends the script, and with it the reading below, when it hangs.
    watchdog = threading.Timer(SCRIPT_SECONDS_MAX, process.kill)
    watchdog.start()
    lines = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if lines[-1] == READY_TO_RECONNECT:
                server.stop()
                server = start_server(port=server.port)
        assert process.wait() == 0, "\n".join(lines)
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    return lines
