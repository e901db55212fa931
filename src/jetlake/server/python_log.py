"""The log of a server inside a Python program: every line goes to the logger `jetlake.server`.

It stands apart from `log` because a server process must start without importing `logging`.
"""

import logging

from jetlake.server.log import Level, Log, printable

LOGGER_NAME = "jetlake.server"

TRACE = 5
"""Below DEBUG: trace shows every protocol line."""

LEVEL_NUMBERS: dict[Level, int] = {
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "fatal": logging.CRITICAL,
    "debug": logging.DEBUG,
    "trace": TRACE,
}


class PythonLog(Log):
    """Forwards to `logging`, which then decides what is shown."""

    def __init__(self, *, debug: bool = False, trace: bool = False) -> None:
        super().__init__(debug=debug, trace=trace)
        self._logger = logging.getLogger(LOGGER_NAME)
        # A program that has not set up logging is not to find our warnings among its output.
        if not self._logger.handlers:
            self._logger.addHandler(logging.NullHandler())

    def close(self) -> None:
        """Do nothing: the logger belongs to the program."""

    def _write(self, level: Level, text: str) -> None:
        self._logger.log(LEVEL_NUMBERS[level], "%s", printable(text))
