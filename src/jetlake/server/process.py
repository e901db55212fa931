"""A server as a process: its log, its signals, its exit code.

| signal             | effect                                                             |
|--------------------|--------------------------------------------------------------------|
| SIGINT             | shutdown, exit code 0                                              |
| SIGTERM            | the same; ignored while the server is leaving in lame duck mode    |
| SIGUSR1            | the log file is reopened                                           |
| SIGUSR2            | lame duck mode, then exit code 0                                   |
| SIGHUP             | the configuration file is read again; without one, an error line   |

The exit code is 0 exactly when the end was wanted: a failed start and a failed engine are 1.
"""

import signal
import sys
import time
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

from jetlake.errors import ConfigurationError, EngineFailedError, JetlakeError, StartError, reason_of
from jetlake.server.log import ProcessLog
from jetlake.server.options import ServerOptions
from jetlake.server.server import Server
from jetlake.server.signals import OBEYED, SPOKEN_NAMES
from jetlake.shared.signal_pipe import WAKE, SignalPipe

if TYPE_CHECKING:
    from jetlake.server.configuration.source import ConfigurationSource

RELOAD_FAILED = "Failed to reload server configuration"


def run(options: ServerOptions, source: "ConfigurationSource | None" = None, digest: str = "") -> int:
    """Serve until a signal or a failure ends it, and return the exit code. `source` is where the options came from."""
    try:
        log = ProcessLog(options.log)
    except OSError as error:
        now = time.strftime("%Y/%m/%d %H:%M:%S")
        sys.stderr.write(f"{now} error opening file: open {options.log.file}: {reason_of(error)}\n")
        return 1
    with SignalPipe(OBEYED) as signals:
        try:
            notice = f"Using configuration file: {source.path} ({digest})" if source else ""
            server = Server.from_options(options, log, signals.wake, notice, digest).start()
        except (ConfigurationError, StartError) as error:
            log.fatal(str(error))
            return 1
        Process(server, log, signals, source).serve()
        try:
            server.stop()
        except EngineFailedError as error:
            log.fatal(str(error))
            return 1
    log.close()
    return 0


class Process:
    """What the main thread does while the engine serves."""

    def __init__(
        self, server: Server, log: ProcessLog, signals: SignalPipe, source: "ConfigurationSource | None"
    ) -> None:
        self._server = server
        self._source = source
        self._log = log
        self._signals = signals
        self._hurry = Event()
        self._departure: Thread | None = None
        self._reloading = Lock()
        server.reload_by(self._reload)

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
                self._reload()
            case _:
                raise AssertionError(f"signal {number} is not one that SignalPipe delivers")
        return True

    def _reload(self) -> str:
        """Read the configuration again, and return why that failed, nothing when it did not.

        A signal and a request of the system account may come together: the last to read the file is the last to apply.
        """
        with self._reloading:
            return self._reload_alone()

    def _reload_alone(self) -> str:
        try:
            if self._source is None:
                raise ConfigurationError("can only reload config when a file is provided using -c or --config")
            configuration = self._source.load()
            lines = self._server.reload(configuration.options, self._log.replace, configuration.digest)
        except (JetlakeError, OSError) as error:
            # Everything goes on as it was; each mistake has a line of its own.
            reason = f"open {error.filename}: {reason_of(error)}" if isinstance(error, OSError) else str(error)
            for line in reason.splitlines():
                self._log.error(f"{RELOAD_FAILED}: {line}")
            return reason
        for line in lines:
            self._log.info(line)
        self._log.info(f"Reloaded server configuration ({configuration.digest})")
        return ""

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
