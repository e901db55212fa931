"""`Server`: one engine with everything around it, for a process and for a Python program alike.

```python
with jetlake.Server() as server:              # a random port on the loopback address
    print(server.url)

async with jetlake.Server(user="ada", password="secret") as server:
    connection = await nats.connect(server.url, user="ada", password="secret")
```

Traffic never holds the GIL, and several servers may run in one process.

Invariant: a server goes from new to running to stopped, once and in this order. What start made (ports file, temporary
store, threads) is gone when `stop` returns.
"""

import atexit
import os
import time
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jetlake._engine import Engine, EngineError, __version__
from jetlake.config import NATS_VERSION, Limits
from jetlake.errors import EngineFailedError, ServerError, StartError, reason_of
from jetlake.server import banner, files, unserved
from jetlake.server.authentication import Authenticator
from jetlake.server.events import EventThread
from jetlake.server.options import Credentials, LogOptions, ServerOptions, default_store_directory
from jetlake.server.signals import signals_blocked

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from jetlake.server.log import Log

LOOPBACK = "127.0.0.1"

GIT_COMMIT = f"jetlake-{__version__}"
"""Shown where nats-server shows its commit, so that a log or an INFO tells which of the two it is."""


class Server:
    """A NATS server inside this program, on a random port of the loopback address unless told otherwise.

    | usage                                          | effect                                             |
    |------------------------------------------------|----------------------------------------------------|
    | `Server()`                                     | random port, no authentication                     |
    | `Server(port=4222)`                            | a fixed port; `StartError` when it is taken        |
    | `Server(token="secret")`                       | clients must present the token                     |
    | `Server(jetstream=True)`                       | stores in a temporary folder, removed at `stop`    |
    | `Server(jetstream=True, store_directory=path)` | stores there, and it stays                         |
    | `Server(limits=Limits(max_payload_bytes=1024))`| refuses larger messages                            |

    The log goes to the logger `jetlake.server` of `logging`; `debug` and `trace` make it say more.
    """

    def __init__(
        self,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        name: str = "",
        user: str = "",
        password: str = "",
        token: str = "",
        jetstream: bool = False,
        store_directory: str | os.PathLike[str] = "",
        limits: Limits | None = None,
        worker_threads: int = 0,
        debug: bool = False,
        trace: bool = False,
    ) -> None:
        # A process has its own log and must not pay for importing `logging`.
        from jetlake.server.python_log import PythonLog

        options = ServerOptions(
            host=host,
            port=port,
            server_name=name,
            credentials=Credentials(user=user, password=password, token=token),
            jetstream=jetstream,
            store_directory=os.fspath(store_directory),
            limits=limits or Limits(),
            worker_threads=worker_threads,
            log=LogOptions(debug=debug, trace=trace),
        )
        self._prepare(options, PythonLog(debug=debug, trace=trace), on_stopped=_do_nothing, temporary_store=True)

    @classmethod
    def from_options(cls, options: ServerOptions, log: "Log", on_stopped: Callable[[], None]) -> Self:
        """Make the server of a process. `on_stopped` is called from another thread when the engine has stopped."""
        server = cls.__new__(cls)
        server._prepare(options, log, on_stopped, temporary_store=False)  # noqa: SLF001 - a second constructor
        return server

    def _prepare(
        self, options: ServerOptions, log: "Log", on_stopped: Callable[[], None], *, temporary_store: bool
    ) -> None:
        self._options = options
        self._log = log
        self._on_stopped = on_stopped
        # Made here, so that options which cannot work are refused before anything starts.
        self._engine_options = options.engine_options(GIT_COMMIT).to_json()
        self._engine: Engine | None = None
        self._events: EventThread | None = None
        self._temporary_store_wanted = temporary_store
        self._temporary_store: TemporaryDirectory[str] | None = None
        self._store_directory = ""
        self._ports_file = ""
        self._failure = ""
        # Two threads may stop the same server; one does it, the other finds it done.
        self._lock = Lock()
        self._state = "new"

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self._options.host

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        return self._started_engine().address[1]

    @property
    def url(self) -> str:
        """Where a client on this machine connects to. Credentials are not part of it."""
        host = LOOPBACK if self.host in files.WILDCARD_HOSTS else self.host
        return f"nats://{banner.join_address(host, self.port)}"

    @property
    def server_id(self) -> str:
        """The id shown in INFO, new for every server."""
        return self._started_engine().server_id

    @property
    def store_directory(self) -> str:
        """The folder JetStream stores in, once started; empty without JetStream."""
        self._started_engine()
        return self._store_directory

    @property
    def running(self) -> bool:
        """True from `start` until it stops, by `stop` or by a failure."""
        return self._state == "running" and not self._failure

    def start(self) -> Self:
        """Start serving. Returns when clients can connect. Raises `StartError`."""
        with self._lock:
            if self._state != "new":
                raise ServerError("a server can be started once, and this one was; make a new Server")
            try:
                self._start()
            except StartError:
                self._state = "stopped"
                self._remove_files()
                raise
            self._state = "running"
        # A program that forgets to stop its server still ends in order.
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Close all connections and stop; harmless when repeated. Raises `EngineFailedError` if it had failed."""
        with self._lock:
            if self._state != "running":
                return
            assert self._engine is not None
            assert self._events is not None
            self._state = "stopped"
            self._log.info("Initiating Shutdown...")
            self._engine.shutdown()
            self._events.join()
            self._remove_files()
            self._log.info("Server Exiting..")
        atexit.unregister(self.stop)
        if self._failure:
            raise EngineFailedError(f"the engine stopped by itself: {self._failure}")

    def leave(self, wait: Callable[[float], bool]) -> None:
        """Go through lame duck mode: return when no client is left, or when `wait` returns True. Then call `stop`."""
        # Most servers never leave this way; `random` need not be loaded for them.
        from jetlake.server.lame_duck import LameDuck

        LameDuck(self._started_engine(), self._options.lame_duck, self._log, wait).run()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except EngineFailedError:
            # The error that is already on its way is the better one to see.
            if error is None:
                raise

    async def __aenter__(self) -> Self:
        import asyncio

        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.__exit__, kind, error, where)

    def __repr__(self) -> str:
        where = self.url if self._state == "running" else self._state
        return f"<jetlake.Server {where}>"

    def _start(self) -> None:
        options = self._options
        self._log_all(banner.version_lines(version=NATS_VERSION, git_commit=GIT_COMMIT))
        self._write_pid_file()
        # Making the engine takes the port; clients that come before `start` wait in the operating system's queue.
        engine = self._make_engine()
        self._log_all(banner.identity_lines(server_name=options.server_name, server_id=engine.server_id))
        for warning in self._warnings():
            self._log.warning(warning)
        if options.jetstream:
            self._prepare_store()
        events = EventThread(engine, self._log, Authenticator(options.credentials), self._note_stopped)
        try:
            with signals_blocked():
                engine.start()
                events.start()
        except EngineError as error:
            raise StartError(f"The engine did not start: {_message_of(error)}") from error
        self._engine, self._events = engine, events
        port = engine.address[1]
        self._log_all(banner.listening_lines(host=options.host, port=port, server_id=engine.server_id))
        self._write_ports_file(port)
        self._log.info(banner.READY_LINE)

    def _make_engine(self) -> Engine:
        try:
            return Engine(self._engine_options)
        except EngineError as error:
            kind, message = error.args
            if kind != "listen":
                raise StartError(str(message)) from error
            address = banner.join_address(self._options.host, self._options.port)
            raise StartError(f'Error listening on port: {address}, "{_as_go_says(message)}"') from error

    def _warnings(self) -> list[str]:
        lines = unserved.warnings(self._options)
        if self._options.credentials.password:
            lines.append("Plaintext passwords detected, use nkeys or bcrypt")
        return lines

    def _prepare_store(self) -> None:
        begun_at = time.monotonic()
        self._log.info("Starting JetStream")
        path = os.path.join(self._choose_store(), banner.STORE_SUBDIRECTORY)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise StartError(
                f'Can not create the store directory "{path}": {reason_of(error)}; choose another with -sd'
            ) from error
        self._store_directory = path
        self._log_all(
            banner.jetstream_lines(
                store_path=path,
                memory_bytes_max=banner.memory_bytes_max(),
                storage_bytes_max=banner.storage_bytes_max(path),
            )
        )
        self._log.info(f"Took {(time.monotonic() - begun_at) * 1000:.3f}ms to start JetStream")

    def _choose_store(self) -> str:
        if self._options.store_directory:
            return self._options.store_directory
        if self._temporary_store_wanted:
            from tempfile import TemporaryDirectory

            self._temporary_store = TemporaryDirectory(prefix="jetlake-")
            return self._temporary_store.name
        self._log.warning("Temporary storage directory used, data could be lost on system reboot")
        return default_store_directory()

    def _write_pid_file(self) -> None:
        if self._options.pid_file:
            try:
                files.write_pid_file(self._options.pid_file, os.getpid())
            except OSError as error:
                raise StartError(
                    f"Could not write pidfile: open {self._options.pid_file}: {reason_of(error)}"
                ) from error

    def _write_ports_file(self, port: int) -> None:
        directory = self._options.ports_file_directory
        if not directory:
            return
        path = files.ports_file_path(directory, self._options.program, os.getpid())
        try:
            files.write_ports_file(path, files.Ports(nats=files.urls_of_listener("nats", self.host, port)))
        except OSError as error:
            # As in nats-server: whoever waits for the file will notice, clients need not suffer.
            self._log.error(f"Error writing ports file ({path}): {reason_of(error)}")
            return
        self._ports_file = path

    def _remove_files(self) -> None:
        if self._ports_file:
            try:
                os.remove(self._ports_file)
            except OSError as error:
                self._log.error(f"Error cleaning up ports file {self._ports_file}: {reason_of(error)}")
        if self._temporary_store is not None:
            self._temporary_store.cleanup()

    def _note_stopped(self, failure: str) -> None:
        self._failure = failure
        self._on_stopped()

    def _log_all(self, lines: list[str]) -> None:
        for line in lines:
            self._log.info(line)

    def _started_engine(self) -> Engine:
        if self._engine is None:
            raise ServerError("this server has not started: use it in a `with` statement, or call start() first")
        return self._engine


def _message_of(error: EngineError) -> str:
    """Return the sentence of an engine error; its arguments are a kind and a message."""
    return str(error.args[-1])


def _as_go_says(message: str) -> str:
    """Return a listen error in the words tests of nats-server wait for: `…: bind: address already in use`."""
    sentence, error_number, _ = message.partition(" (os error")
    if not error_number:
        # The name was not found: nothing was bound.
        return message
    place, colon, reason = sentence.rpartition(": ")
    return f"{place}{colon}bind: {reason[:1].lower()}{reason[1:]}"


def _do_nothing() -> None:
    """A program looks at `Server.running`; only a process is waiting to be told."""
