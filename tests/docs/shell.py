"""Runs the shell blocks of a page as a reader would: in their order, in one folder, against a real server.

A program that does not end by itself is started and left running until the end of the page: the line of a block with
the note `background`, and every line whose comment says `until Ctrl-C`. Ports that pages name are replaced by free
ones, hosts such as broker.example.net by the loopback address, and `NATS_URL` leads the blocks that follow to the
server that was started last. What a block exports is there for the next. Lines that install packages are left out:
they change the machine.

A block of the language `console` has commands behind `$ ` and what they print on a terminal.

Invariant: when a session is closed, every process it started has ended.
"""

from __future__ import annotations

import errno
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tests.docs.pages import Block

READY_S_MAX = 60.0
"""How long a server may take to say that it is ready, on a machine that is busy with other tests."""

SETTLE_S_MAX = 3.0
"""How long to wait for the first word of a program that is not a server: some say nothing before they have to."""

BLOCK_S_MAX = 120.0
"""How long one block may take on a machine that is busy with other tests; the slowest starts a dozen processes."""

SHOWN_MAX = 3_000
"""Characters of what a failed block printed, its last ones: a live view on a terminal prints megabytes."""

STOPPED = {0, 130, -signal.SIGINT}
"""How a program may end after Ctrl-C."""

PORTS = ("4222", "4333", "7422", "8080", "8222", "9100", "9101")
"""Ports that pages use: of servers, for leaf nodes and browsers, of monitoring, of the device service and gateway."""

_ADDRESS = re.compile(
    r"(?:ready at nats://|Listening for client connections on |^  NATS +nats://)([\w.]+:\d+)", re.MULTILINE
)
_SERVER = re.compile(r"(?:^|[\s/])jetlake (?P<kind>server|dev|device bundle)\b")
# Their first word says that they listen, and what follows needs them.
_SPEAKING = re.compile(r"(?:^|[\s/])jetlake (?:reply|submission run)\b")
_ENDLESS = re.compile(r"^(?P<line>.*?)\s+#.*\buntil Ctrl-C\b")
_VARIABLES = "variables.sh"
_INSTALLS = re.compile(r"^\s*(?:pip install|make|git clone|cd )\b")
_HOST = re.compile(r"\b[\w-]+(?:\.[\w-]+)*\.example(?:\.\w+)?(?=:\d)")
_PORT = re.compile(rf"\b(?:{'|'.join(PORTS)})\b")
_PROMPT = "$ "
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class _Running(NamedTuple):
    """A program in the background."""

    process: subprocess.Popen[bytes]
    log: Path
    line: str


class Session:
    """One reader with a folder; `close` ends what was started in the background."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._background: list[_Running] = []
        self._ports = {port: str(_free_port()) for port in PORTS}
        programs = Path(sys.executable).parent
        self.environment = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            # No context of whoever runs the tests may lead elsewhere, and nothing of theirs is changed.
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "JETLAKE_DEVICES": f"127.0.0.1:{self._ports['9100']}",
            "NATS_URL": "",
            "NO_COLOR": "1",
            "COLUMNS": "160",
            "TERM": "xterm",
        }

    def visit(self, url: str) -> None:
        """Have the blocks that follow speak to this server."""
        self.environment["NATS_URL"] = url
        self._ports["4222"] = url.rpartition(":")[2]

    def localized(self, text: str) -> str:
        """Return the text of a block with the host and the ports that this session uses."""
        return _PORT.sub(lambda found: self._ports[found[0]], _HOST.sub("127.0.0.1", text))

    def save(self, block: Block) -> None:
        """Write a block to the file that its reader would save it to."""
        file = self._folder / block.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.localized(block.text))

    def start(self, block: Block) -> str:
        """Start the program of a block, wait until it is ready, and return what it printed so far."""
        (line,) = [each.partition(" #")[0] for each in _commands(block) if each]
        return self._start(line, f"{block.page}:{block.line}")

    def run(self, block: Block, seconds_max: float = BLOCK_S_MAX) -> str:
        """Run a block to its end, its first failure included, and return what it printed."""
        printed = ""
        lines: list[str] = []
        where = f"{block.page}:{block.line}"
        is_terminal = block.language == "console"
        for line in _commands(block):
            if endless := _ENDLESS.match(line):
                printed += self._run(lines, where, seconds_max, is_terminal=is_terminal)
                printed += self._start(endless["line"], where)
                lines = []
            else:
                lines.append(line)
        return printed + self._run(lines, where, seconds_max, is_terminal=is_terminal)

    def heard(self) -> str | None:
        """Return what the program that was started last has printed by now; None if there is none."""
        return self._background[-1].log.read_text() if self._background else None

    def close(self) -> None:
        """Interrupt what runs in the background; it must end as a program does after Ctrl-C."""
        for running in reversed(self._background):
            if running.process.poll() is None:
                os.killpg(running.process.pid, signal.SIGINT)
                try:
                    running.process.wait(READY_S_MAX)
                except subprocess.TimeoutExpired:
                    os.killpg(running.process.pid, signal.SIGKILL)
                    running.process.wait()
        wrong = [each for each in self._background if each.process.returncode not in STOPPED]
        assert not wrong, "\n".join(
            f"{each.line}: {each.process.returncode}:\n{each.log.read_text()}" for each in wrong
        )

    def _start(self, line: str, where: str) -> str:
        server = _SERVER.search(line)
        line = self._with_free_ports(self.localized(line), server["kind"] if server else "")
        log = self._folder / f"background-{len(self._background)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", "\n".join((*self._recall(), line))],
                cwd=self._folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._background.append(_Running(process, log, line))
        limit_s = READY_S_MAX if server or _SPEAKING.search(line) else SETTLE_S_MAX
        deadline = time.monotonic() + limit_s
        while not (_ADDRESS.search(log.read_text()) if server else log.stat().st_size):
            assert process.poll() is None, f"{where} ended early:\n{log.read_text()}"
            if time.monotonic() > deadline:
                assert not server, f"{where} is not ready:\n{log.read_text()}"
                break
            time.sleep(0.02)
        if address := _ADDRESS.search(log.read_text()):
            self.visit(f"nats://{address[1]}")
        return log.read_text()

    def _with_free_ports(self, line: str, kind: str) -> str:
        """Return the line of a server with flags for ports that it would choose itself; these may be taken."""
        if kind == "server" and " -t" not in line:
            return line + " -a 127.0.0.1" + ("" if " -p " in line else " -p -1")
        if kind == "dev" and " --port " not in line:
            return f"{line} --port {_free_port()}"
        if kind == "device bundle":
            service, gateway = (f"127.0.0.1:{self._ports[port]}" for port in ("9100", "9101"))
            return f"{line} --port {_free_port()} --grpc {service} --http {gateway}"
        return line

    def _run(self, lines: list[str], where: str, seconds_max: float, *, is_terminal: bool) -> str:
        if not any(line.strip() for line in lines):
            return ""
        script = "\n".join((*self._recall(), "set -euo pipefail", *lines, f"export -p > {_VARIABLES}"))
        ours, theirs = pty.openpty() if is_terminal else os.pipe()
        gathered = bytearray()
        reading = threading.Thread(target=_gather, args=(ours, gathered), daemon=True)
        process = subprocess.Popen(
            ["bash", "-c", self.localized(script)],
            cwd=self._folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        reading.start()
        try:
            process.wait(seconds_max)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{where} does not end:\n{gathered.decode(errors='replace')[-SHOWN_MAX:]}") from None
        finally:
            if process.poll() is None:
                # A server that a block starts in the foreground goes on when its shell is killed: the group must end.
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        reading.join(SETTLE_S_MAX)
        os.close(ours)
        printed = _ESCAPE.sub("", gathered.decode(errors="replace")).replace("\r\n", "\n")
        assert process.returncode == 0, f"{where} ended with {process.returncode}:\n{printed[-SHOWN_MAX:]}"
        return printed

    def _recall(self) -> list[str]:
        """Return the lines that bring back what earlier blocks have exported; the server may be another one by now."""
        address = f"export NATS_URL={self.environment['NATS_URL']}"
        return [f"source ./{_VARIABLES}", address] if (self._folder / _VARIABLES).exists() else [address]


def promised(block: Block) -> list[str]:
    """Return the lines that a console block shows as printed."""
    is_console = block.language == "console"
    return [line for line in block.text.splitlines() if is_console and line.strip() and not line.startswith(_PROMPT)]


def _commands(block: Block) -> list[str]:
    """Return the lines to run; comments behind a command stay, bash passes over them."""
    lines = block.text.splitlines()
    if block.language == "console":
        lines = [line.removeprefix(_PROMPT) for line in lines if line.startswith(_PROMPT)]
    return [line for line in lines if not _INSTALLS.match(line) and not line.startswith("# ")]


def _gather(descriptor: int, into: bytearray) -> None:
    try:
        while read := os.read(descriptor, 1 << 16):
            into += read
    except OSError as error:
        # A terminal that nobody writes to any more; a pipe says the same by an empty read.
        if error.errno not in (errno.EIO, errno.EBADF):
            raise


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
