"""`Reader`: somebody who sits before a document with a shell and types what it prints.

The shell has our executables first on its PATH and the address of the server in `NATS_URL`; the working folder is
empty. A command that never ends is interrupted once it has printed as many lines as the document shows.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.seeds.masks import differences
from tests.seeds.transcript import Step

COMMAND_S_MAX = 60.0
"""How long one command may take, on a machine that is busy with other tests."""

ENDLESS = ("nats-sub ",)
_SHOWN_FILE = re.compile(r"^cat (\w+\.json)$")


class Reader:
    """Runs commands one after the other in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        executables = folder / "executables"
        subprocess.run([sys.executable, "-m", "jetlake.cli.shims", str(executables)], check=True, capture_output=True)
        self.work = folder / "work"
        self.work.mkdir()
        self.environment = {**os.environ, "PATH": f"{executables}:{os.environ['PATH']}", "NATS_URL": url}

    def run(self, command: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command as it stands."""
        return subprocess.run(
            ["bash", "-c", command],
            check=False,
            input=typed,
            env=self.environment,
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_S_MAX,
        )

    def follow(self, step: Step) -> str:
        """Do one step; what differs from the document is returned, nothing if it agrees."""
        shown = _SHOWN_FILE.match(step.command)
        if shown is not None:
            # Whoever reads this has just edited the file until it reads so.
            (self.work / shown[1]).write_text("\n".join(step.output) + "\n", encoding="utf-8")
        if step.command.startswith(ENDLESS):
            return differences(step.output, self._run_endless(step))
        done = self.run(step.command, step.typed)
        if step.output:
            return differences(step.output, done.stdout)
        return "" if done.returncode == 0 else f"exit code {done.returncode}:\n{done.stdout}"

    def _run_endless(self, step: Step) -> str:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {step.command}"],
            env=self.environment,
            cwd=self.work,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        # A line that never comes must not keep the test for ever.
        guard = threading.Timer(COMMAND_S_MAX, process.kill)
        guard.start()
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in step.output]
            process.send_signal(signal.SIGINT)
            process.wait(COMMAND_S_MAX)
        finally:
            guard.cancel()
            process.kill()
            process.wait()
            process.stdout.close()
        return "".join(lines)
