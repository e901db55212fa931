"""Signals: those a server process obeys, and `--signal`, which sends one to another server process.

Receiving: the main thread reads them from a `SignalPipe`; so a signal is handled in order, between two instructions
of nobody, and other threads can wake the main thread through the same pipe.

Sending follows nats-server: a command, optionally `=` a process id or a pid file. Without either, the one server
process on this machine is meant; none or several is an error.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from jetlake.errors import ConfigurationError, ServerError, reason_of

OBEYED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

SPOKEN_NAMES: dict[int, str] = {
    signal.SIGINT: "interrupt",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "hangup",
    signal.SIGUSR1: "user defined signal 1",
    signal.SIGUSR2: "user defined signal 2",
}

SIGNAL_OF_COMMAND = {
    "stop": signal.SIGKILL,
    "quit": signal.SIGINT,
    "term": signal.SIGTERM,
    "reopen": signal.SIGUSR1,
    "reload": signal.SIGHUP,
    "ldm": signal.SIGUSR2,
}

PID_MAX = 2**31 - 1
"""The largest number that the operating system takes for a process."""

SHOWN_LENGTH_MAX = 100
"""How much of what should be a pid is read and shown."""

SERVER_PROGRAMS = frozenset({"nats-server", "jetlake-nats-server"})


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Keep signals away from threads started inside: they inherit the mask, the caller gets its own back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, OBEYED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def send(command_and_target: str) -> None:
    """Carry out `--signal <command>[=<pid>|=<pid file>]`. Raises `ConfigurationError` or `ServerError`."""
    command, *targets = command_and_target.split("=")
    if len(targets) > 1:
        raise ConfigurationError(f"invalid signal parameters: {targets[1:]}; write --signal <command>=<pid>")
    target = targets[0] if targets else ""
    pid = _read_target(target) if target else _find_only_server()
    number = SIGNAL_OF_COMMAND.get(command)
    if number is None:
        # Exactly nats-server's words, without ours: its wrappers compare the whole line. The usage lists the commands.
        raise ConfigurationError(f'unknown signal "{command}"')
    try:
        os.kill(pid, number)
    except OSError as error:
        raise ServerError(f'signal "{command}" {pid}: {reason_of(error)}; check the pid') from error


def _read_target(target: str) -> int:
    text = target
    if os.path.isfile(target):
        try:
            with open(target, encoding="ascii", errors="replace") as file:
                text = file.read(SHOWN_LENGTH_MAX).strip()
        except OSError as error:
            raise ServerError(f"open {target}: {reason_of(error)}; give the pid itself") from error
    pid = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(PID_MAX)) else 0
    # 0 and negative numbers would mean whole groups of processes to the operating system.
    if not 0 < pid <= PID_MAX:
        raise ConfigurationError(
            f"invalid pid: {text[:SHOWN_LENGTH_MAX]}; give a positive number or the path of a pid file"
        )
    return pid


def _find_only_server() -> int:
    pids = [pid for pid in _server_pids() if pid != os.getpid()]
    if not pids:
        raise ServerError("no nats-server processes running; start one, or name another with --signal <command>=<pid>")
    if len(pids) > 1:
        listed = "\n".join(map(str, pids))
        raise ServerError(f"multiple nats-server processes running:\n{listed}\nname one with --signal <command>=<pid>")
    return pids[0]


def _server_pids() -> list[int]:
    try:
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    except OSError as error:
        # Only Linux tells without a helper program.
        raise ServerError("unable to resolve pid, try providing one: --signal <command>=<pid>") from error
    return [pid for pid in pids if is_server(_command_line(pid))]


def _command_line(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        # It ended in the meantime, or belongs to another user.
        return []


def is_server(command_line: list[str]) -> bool:
    """Tell whether this command line runs a server: nats-server itself, or one of our two scripts."""
    names = [os.path.basename(word) for word in command_line]
    if names and names[0].startswith("python"):
        names = names[1:]
    return bool(names) and (names[0] in SERVER_PROGRAMS or names[:2] == ["jetlake", "server"])
