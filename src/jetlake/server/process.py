"""A server as a process: its log, its signals, its exit code.

| signal             | effect                                                             |
|--------------------|--------------------------------------------------------------------|
| SIGINT             | shutdown, exit code 0                                              |
| SIGTERM            | the same; ignored while the server is leaving in lame duck mode    |
| SIGUSR1            | the log file is opened anew                                        |
| SIGUSR2            | lame duck mode, then exit code 0                                   |
| SIGHUP             | refused with an error line: there is no configuration file         |

The exit code is 0 exactly when the end was wanted: a failed start and a failed engine are 1.
"""

import signal
import sys
import time
from threading import Event, Thread

from jetlake.errors import ConfigurationError, EngineFailedError, StartError, reason_of
from jetlake.server.log import Log, open_log
from jetlake.server.options import ServerOptions
from jetlake.server.server import Server
from jetlake.server.signals import SPOKEN_NAMES, WAKE, SignalPipe


def run(options: ServerOptions) -> int:
    """Serve until a signal or a failure ends it, and return the exit code."""
    try:
        log = open_log(options.log)
    except OSError as error:
        now = time.strftime("%Y/%m/%d %H:%M:%S")
        sys.stderr.write(f"{now} error opening file: open {options.log.file}: {reason_of(error)}\n")
        return 1
    with SignalPipe() as signals:
        try:
            server = Server.from_options(options, log, on_stopped=signals.wake).start()
        except (ConfigurationError, StartError) as error:
            log.fatal(str(error))
            return 1
        Process(server, log, signals).serve()
        try:
            server.stop()
        except EngineFailedError as error:
            log.fatal(str(error))
            return 1
    log.close()
    return 0


class Process:
    """What the main thread does while the engine serves."""

    def __init__(self, server: Server, log: Log, signals: SignalPipe) -> None:
        self._server = server
        self._log = log
        self._signals = signals
        self._hurry = Event()
        self._departure: Thread | None = None

    def serve(self) -> None:
        """Obey signals until it is time to stop."""
        while self._obey(self._signals.next()):
            pass
        if self._departure is not None:
            self._hurry.set()
            self._departure.join()

    def _obey(self, number: int) -> bool:
        """Return whether to go on."""
        if number == WAKE:
            # The engine has stopped by itself, or the last client has been seen off.
            return False
        self._log.info(f'Trapped "{SPOKEN_NAMES[number]}" signal')
        match number:
            case signal.SIGINT:
                return False
            case signal.SIGTERM:
                return self._departure is not None
            case signal.SIGUSR1:
                self._reopen_log()
            case signal.SIGUSR2:
                self._depart()
            case signal.SIGHUP:
                self._log.error(
                    "Failed to reload server configuration: "
                    "can only reload config when a file is provided using -c or --config"
                )
            case _:
                raise AssertionError(f"signal {number} is not one that SignalPipe delivers")
        return True

    def _reopen_log(self) -> None:
        try:
            reopened = self._log.reopen()
        except OSError as error:
            # The lines keep going to the file that is open.
            self._log.error(f"Unable to re-open the log file: {reason_of(error)}; check its folder")
            return
        self._log.info("File log re-opened" if reopened else "File log re-open ignored, not a file logger")

    def _depart(self) -> None:
        if self._departure is None:
            self._departure = Thread(target=self._leave, name="jetlake-lame-duck")
            self._departure.start()

    def _leave(self) -> None:
        try:
            self._server.leave(self._hurry.wait)
        finally:
            self._signals.wake()
