"""Runs the Python blocks of a page one after the other in one process, as a notebook would: names stay, `await` works.

The process reads one JSON text per line with the code of a block, and writes one with what it printed and the error,
if there was one. Standard output belongs to this exchange; what libraries write there goes to standard error.

Invariant: each block that is read is answered by exactly one line.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
import os
import selectors
import subprocess
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any, TextIO

CLOSE_S_MAX = 60.0
"""How long the process may take to end: a Spark session stops its Java first."""


class Interpreter:
    """One process that runs blocks; `close` ends it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._log = folder / "interpreter.log"
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).resolve())],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def run(self, text: str, name: str, seconds_max: float) -> str:
        """Run a block and return what it printed; `name` is what tracebacks call it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"text": text, "name": name}).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._answer(name, seconds_max)
        assert answer["error"] is None, f"{name} failed:\n{answer['printed']}\n{answer['error']}"
        return str(answer["printed"])

    def _answer(self, name: str, seconds_max: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        gathered = b""
        deadline = time.monotonic() + seconds_max
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not gathered.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self._process.kill()
                    raise AssertionError(f"{name} does not end:\n{self._log.read_text()[-3000:]}")
                read = os.read(self._process.stdout.fileno(), 1 << 16)
                assert read, f"{name} ended its process:\n{self._log.read_text()[-3000:]}"
                gathered += read
        return dict(json.loads(gathered))

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(CLOSE_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def _run_block(text: str, name: str, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
    code = compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = types.FunctionType(code, names)()
    if asyncio.iscoroutine(result):
        loop.run_until_complete(result)


def _serve(requests: TextIO, answers: TextIO) -> None:
    # Dataclasses and decorators look their module up by its name.
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        for line in requests:
            request = json.loads(line)
            printed, error = io.StringIO(), None
            with contextlib.redirect_stdout(printed):
                try:
                    _run_block(request["text"], request["name"], module.__dict__, loop)
                except Exception:  # noqa: BLE001 -- whatever an example raises is its result
                    error = traceback.format_exc()
            answers.write(json.dumps({"printed": printed.getvalue(), "error": error}) + "\n")
            answers.flush()


if __name__ == "__main__":
    with os.fdopen(os.dup(1), "w") as own_answers:
        os.dup2(2, 1)
        _serve(sys.stdin, own_answers)
