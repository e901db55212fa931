"""The server's log in nats-server's format, to stderr or to a file.

```text
[4711] 2026/11/15 18:15:55.743852 [INF] Server is ready
```

Test suites and operators' tools parse these lines, so the format is part of the product. A line is one `write` call:
lines of several threads never mix. Writing never fails the server: a full disk or a closed stderr loses lines, no more.

Invariant of `FileLog`: a file is rotated after the line that made it larger than the limit, so no line is ever split
between two files.
"""

import os
import time
from abc import ABC, abstractmethod
from threading import Lock
from typing import Literal, get_args

from jetlake.errors import reason_of
from jetlake.server.options import LogOptions

Level = Literal["info", "warning", "error", "fatal", "debug", "trace"]
LEVELS: frozenset[str] = frozenset(get_args(Level))

LABELS: dict[Level, str] = {
    "info": "INF",
    "warning": "WRN",
    "error": "ERR",
    "fatal": "FTL",
    "debug": "DBG",
    "trace": "TRC",
}

COLOURS: dict[Level, str] = {
    "info": "32",
    "warning": "0;93",
    "error": "31",
    "fatal": "31",
    "debug": "36",
    "trace": "33",
}

ESCAPES = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    **{code: f"\\u{code:04x}" for code in (0x2028, 0x2029)},
    **{ord(character): name for character, name in (("\r", "\\r"), ("\n", "\\n"), ("\t", "\\t"))},
}
"""What a client says may stand in a line: it must neither end the line nor speak to the terminal that shows it."""

STDERR = 2
FILE_MODE = 0o640
"""Trace lines show payloads: the group may read them, the world may not."""


class Log(ABC):
    """Where lines go. `debug` and `trace` lines are dropped unless they were asked for."""

    def __init__(self, *, debug: bool = False, trace: bool = False) -> None:
        self._dropped = {level for level, wanted in (("debug", debug), ("trace", trace)) if not wanted}

    def write(self, level: Level, text: str) -> None:
        if level not in self._dropped:
            self._write(level, text)

    def info(self, text: str) -> None:
        self.write("info", text)

    def warning(self, text: str) -> None:
        self.write("warning", text)

    def error(self, text: str) -> None:
        self.write("error", text)

    def fatal(self, text: str) -> None:
        self.write("fatal", text)

    def reopen(self) -> bool:
        """Reopen the file, after something else moved it away. False = there is no file."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Give back what the log holds; it takes no more lines."""

    @abstractmethod
    def _write(self, level: Level, text: str) -> None: ...


class StreamLog(Log):
    """Writes to a file descriptor that is already open: stderr. Coloured on a terminal."""

    def __init__(self, options: LogOptions, descriptor: int = STDERR) -> None:
        super().__init__(debug=options.debug, trace=options.trace)
        self._descriptor = descriptor
        self._options = options
        self._coloured = os.isatty(descriptor)

    def close(self) -> None:
        """Leave the descriptor open: it is not ours."""

    def _write(self, level: Level, text: str) -> None:
        try:
            os.write(self._descriptor, format_line(level, text, self._options, coloured=self._coloured))
        except OSError:
            # Nobody is left to read the log, so there is nowhere to report the failure.
            return


class FileLog(Log):
    """Appends to a file, rotates it at a size, and reopens it on request."""

    def __init__(self, options: LogOptions) -> None:
        super().__init__(debug=options.debug, trace=options.trace)
        self._options = options
        # The descriptor changes hands in `reopen` and in rotation; lines of other threads wait for that.
        self._lock = Lock()
        self._descriptor = _open_for_append(options.file)
        self._size_bytes = os.fstat(self._descriptor).st_size
        self._size_limit_bytes = options.size_limit_bytes

    def reopen(self) -> bool:
        with self._lock:
            self._open_anew()
        return True

    def close(self) -> None:
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, level: Level, text: str) -> None:
        with self._lock:
            self._append(level, text)
            if 0 < self._size_limit_bytes < self._size_bytes:
                self._rotate()

    def _append(self, level: Level, text: str) -> None:
        try:
            self._size_bytes += os.write(self._descriptor, format_line(level, text, self._options))
        except OSError:
            # A full disk must not stop the server; the next line tries again.
            return

    def _rotate(self) -> None:
        now_ns = time.time_ns()
        stamp = time.strftime("%Y.%m.%d.%H.%M.%S", self._time_of(now_ns // 1_000_000_000))
        backup = f"{self._options.file}.{stamp}.{now_ns % 1_000_000_000:09d}"
        try:
            os.rename(self._options.file, backup)
            self._open_anew()
        except OSError as error:
            # Trying again at every line would double the log; trying again at twice the size does not.
            self._size_limit_bytes *= 2
            self._append("error", f"Unable to rotate the log file to {backup!r}: {reason_of(error)}; check the folder")
            return
        self._append("info", f'Rotated log, backup saved as "{backup}"')
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        """Keep `files_max` files, the current one included; 0 = all."""
        if not self._options.files_max:
            return
        try:
            for backup in self._backups()[: -(self._options.files_max - 1) or None]:
                os.remove(backup)
        except OSError as error:
            self._append("error", f"Unable to remove old log files: {reason_of(error)}; check the folder")

    def _backups(self) -> list[str]:
        """Return the files this one was rotated to, oldest first: the time in their names puts them in order."""
        folder, name = os.path.split(self._options.file)
        rests = (entry.removeprefix(f"{name}.") for entry in os.listdir(folder or ".") if entry.startswith(f"{name}."))
        return [f"{self._options.file}.{rest}" for rest in sorted(rests) if rest.replace(".", "").isdecimal()]

    def _open_anew(self) -> None:
        descriptor = _open_for_append(self._options.file)
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._size_bytes = os.fstat(descriptor).st_size

    def _time_of(self, seconds: int) -> time.struct_time:
        return time.gmtime(seconds) if self._options.utc else time.localtime(seconds)


class ProcessLog(Log):
    """The log of a process that reads its configuration again: other options make it another log in the same place."""

    def __init__(self, options: LogOptions) -> None:
        # What is dropped is for the log inside to say.
        super().__init__(debug=True, trace=True)
        self._inner = open_log(options)

    def replace(self, options: LogOptions) -> None:
        """Go on by other options. Raises `OSError`, and goes on as before, when the new file cannot be opened."""
        before, self._inner = self._inner, open_log(options)
        before.close()

    def reopen(self) -> bool:
        return self._inner.reopen()

    def close(self) -> None:
        self._inner.close()

    def _write(self, level: Level, text: str) -> None:
        self._inner.write(level, text)


def open_log(options: LogOptions) -> Log:
    """Return the log these options ask for. Raises `OSError` when the file cannot be opened."""
    return FileLog(options) if options.file else StreamLog(options)


def format_line(level: Level, text: str, options: LogOptions, *, coloured: bool = False) -> bytes:
    """Return one line of the log as bytes, the newline included."""
    stamp = ""
    if options.timestamps:
        now_ns = time.time_ns()
        seconds, rest_ns = divmod(now_ns, 1_000_000_000)
        clock = time.gmtime(seconds) if options.utc else time.localtime(seconds)
        stamp = f"{time.strftime('%Y/%m/%d %H:%M:%S', clock)}.{rest_ns // 1000:06d} "
    label = LABELS[level]
    if coloured:
        label = f"\x1b[{COLOURS[level]}m{label}\x1b[0m"
    return f"[{os.getpid()}] {stamp}[{label}] {printable(text)}\n".encode(errors="replace")


def printable(text: str) -> str:
    """Return it with every control character written out."""
    return text.translate(ESCAPES)


def _open_for_append(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
