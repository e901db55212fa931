"""`Server`: one engine with everything around it, for a process and for a Python program alike.

```python
with jetlake.Server() as server:              # a random port on the loopback address
    print(server.url)

async with jetlake.Server(user="ada", password="secret") as server:
    connection = await jetlake.connect(server)   # or nats.connect(server.url, user="ada", password="secret")
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
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from jetlake._engine import Engine, EngineError, __version__
from jetlake.config import NATS_VERSION, Limits
from jetlake.errors import ConfigurationError, EngineFailedError, ServerError, StartError
from jetlake.server import banner, early_port, files, unserved
from jetlake.server.access_control import AccessControl
from jetlake.server.authentication.passwords import is_bcrypt
from jetlake.server.engine_errors import message_of, start_error
from jetlake.server.events import EventThread
from jetlake.server.listeners import LOOPBACK, Listeners
from jetlake.server.options import (
    AccessOptions,
    Credentials,
    JetStreamOptions,
    LogOptions,
    ServerOptions,
)
from jetlake.server.own_files import OwnFiles
from jetlake.server.signals import signals_blocked
from jetlake.server.store_folder import StoreFolder
from jetlake.server.system.account import SystemAccount

if TYPE_CHECKING:
    from jetlake.monitoring.facts import ServerFacts
    from jetlake.monitoring.jsz import AccountUsage
    from jetlake.monitoring.monitor import Monitor
    from jetlake.server.children import Children
    from jetlake.server.choria import Choria
    from jetlake.server.jetstream import JetStream
    from jetlake.server.log import Log

GIT_COMMIT = f"jetlake-{__version__}"
"""Shown where nats-server shows its commit, so that a log or an INFO tells which of the two it is."""


class Server:
    """A NATS server inside this program, by default on a random port of the loopback address.

    | usage                                          | effect                                             |
    |------------------------------------------------|----------------------------------------------------|
    | `Server()`                                     | random port, JetStream in a temporary folder,      |
    |                                                | which `stop` removes                               |
    | `Server(store_directory=path)`                 | JetStream stores there, and it stays               |
    | `Server(jetstream=False)`                      | no streams                                         |
    | `Server(port=4222)`                            | a fixed port; `StartError` when it is taken        |
    | `Server(token="secret")`                       | clients must present the token                     |
    | `Server(limits=Limits(max_payload_bytes=1024))`| refuses larger messages                            |
    | `Server(monitor_port=0)`                       | pages such as /varz at `monitor_url`               |
    | `Server(clock="manual")`                       | time goes on only by `advance`, for tests          |
    | `Server(config="server.conf")`                 | what a nats-server's file says, or its text        |

    A configuration decides everything but the address, which stays this machine's and random unless `host` and `port`
    say otherwise; it cannot be mixed with the arguments it decides about.
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
        jetstream: bool | None = None,
        store_directory: str | os.PathLike[str] = "",
        limits: Limits | None = None,
        worker_threads: int = 0,
        monitor_port: int | None = None,
        debug: bool = False,
        trace: bool = False,
        clock: Literal["system", "manual"] = "system",
        config: str | os.PathLike[str] = "",
    ) -> None:
        # A process has its own log and must not pay for importing `logging`.
        from jetlake.server.python_log import PythonLog

        digest = ""
        _check_login(user, password, token)
        store = os.fspath(store_directory)
        if store and jetstream is False:
            raise ConfigurationError(f"store_directory is {store!r} although jetstream is False: give one of them")
        options = ServerOptions(
            server_name=name,
            access=AccessOptions(credentials=Credentials(user=user, password=password, token=token)),
            # A configuration decides by itself.
            jetstream=JetStreamOptions(enabled=not config if jetstream is None else jetstream, store_directory=store),
            limits=limits or Limits(),
            log=LogOptions(debug=debug, trace=trace),
        )
        if config:
            if options != ServerOptions():
                raise ConfigurationError("config decides about users, limits, JetStream and log: put them there")
            from jetlake.server.configuration.load import load

            configuration = load(config)
            options, digest = configuration.options, configuration.digest
        if clock not in ("system", "manual"):
            raise ConfigurationError(f"clock can not be {clock!r}: take 'system', or 'manual' for tests")
        options = msgspec.structs.replace(
            options, host=host, port=port, worker_threads=worker_threads, manual_clock=clock == "manual"
        )
        options = options.with_default_host(host)
        if monitor_port is not None:
            monitoring = msgspec.structs.replace(options.monitoring, http_port=monitor_port)
            options = msgspec.structs.replace(options, monitoring=monitoring)
        log = PythonLog(debug=options.log.debug, trace=options.log.trace)
        self._prepare(options, log, on_stopped=_do_nothing, temporary_store=True)
        self._config_digest = digest

    @classmethod
    def from_options(
        cls, options: ServerOptions, log: "Log", on_stopped: Callable[[], None], notice: str = "", digest: str = ""
    ) -> Self:
        """Make the server of a process. `on_stopped` is called from another thread when the engine has stopped.

        `notice` is a line for the log that says where the options came from, `digest` that of the file they came from.
        """
        server = cls.__new__(cls)
        server._prepare(options, log, on_stopped, temporary_store=False)  # noqa: SLF001 - a second constructor
        server._notice = notice  # noqa: SLF001
        server._config_digest = digest  # noqa: SLF001
        return server

    def _prepare(
        self, options: ServerOptions, log: "Log", on_stopped: Callable[[], None], *, temporary_store: bool
    ) -> None:
        self._notice = ""
        self._options = options
        self._log = log
        self._on_stopped = on_stopped
        # Made here, so that options which cannot work are refused before anything starts.
        self._engine_options = options.engine_options(GIT_COMMIT).to_json()
        self._access = AccessControl(options, log, self._reload_engine)
        self._engine: Engine | None = None
        self._events: EventThread | None = None
        self._system: SystemAccount | None = None
        self._jetstream: JetStream | None = None
        self._reload_again: Callable[[], str] = _refuse_reload
        self._monitor: Monitor | None = None
        self._submission: Children | None = None
        self._dashboard: Children | None = None
        self._choria: Choria | None = None
        self._config_loaded_unix_ns = time.time_ns()
        self._config_digest = ""
        self._leaving = False
        self._store_folder = StoreFolder(options.jetstream, log, temporary=temporary_store)
        self._files = OwnFiles(log)
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
        return self._listeners().port

    @property
    def url(self) -> str:
        """Where a client on this machine connects to. Credentials are not part of it."""
        return self._listeners().url()

    @property
    def websocket_url(self) -> str:
        """Where a WebSocket client on this machine connects to; empty if the configuration has no `websocket` block."""
        return self._listeners().websocket_url

    @property
    def leaf_url(self) -> str:
        """Where a leaf node on this machine connects to; empty if the configuration does not listen for leaf nodes."""
        return self._listeners().leaf_url

    @property
    def monitor_url(self) -> str:
        """Where the pages are, without a slash at the end; empty when none are served."""
        self._started_engine()
        return self._monitor.url if self._monitor else ""

    @property
    def server_id(self) -> str:
        """The id shown in INFO, new for every server."""
        return self._started_engine().server_id

    @property
    def store_directory(self) -> str:
        """The folder JetStream stores in, once started; empty without JetStream."""
        self._started_engine()
        return self._store_folder.directory

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
            except BaseException:
                # Whatever it was, nothing of the attempt is left.
                self._state = "stopped"
                self._abandon()
                raise
            self._state = "running"
        # A program that forgets to stop its server still ends in order.
        atexit.register(self.stop)
        return self

    def advance(self, seconds: float) -> None:
        """Let time go on at once, for a server with `clock="manual"`: what is due by then happens now.

        Acknowledgements that are overdue, back-off, pauses, expiry of messages and requests, schedules, heartbeats and
        inactivity all go by this clock. Raises `ConfigurationError` when the clock goes by itself, or the time is
        negative.
        """
        if not self._options.manual_clock:
            raise ConfigurationError(
                "this server goes by the time of day, which cannot be advanced: "
                'start it with jetlake.Server(clock="manual")'
            )
        if not seconds >= 0:
            raise ConfigurationError(f"a clock cannot be advanced by {seconds} seconds: give 0 or more")
        self._started_engine().advance(round(seconds * 1_000_000_000))

    def login(self) -> dict[str, str]:
        """Return what clients must present, as options of `jetlake.connect`; empty if nothing, or if it is not known.

        Known are the `user` and `password` or the `token` that all clients share; a password that a configuration has
        as a bcrypt hash is not.
        """
        credentials = self._options.access.credentials
        if credentials.token:
            return {} if is_bcrypt(credentials.token) else {"token": credentials.token}
        if credentials.user and not is_bcrypt(credentials.password):
            return {"user": credentials.user, "password": credentials.password}
        return {}

    def stop(self) -> None:
        """Close all connections and stop; harmless when repeated. Raises `EngineFailedError` if it had failed."""
        with self._lock:
            if self._state != "running":
                return
            assert self._engine is not None
            assert self._events is not None
            assert self._system is not None
            self._state = "stopped"
            self._log.info("Initiating Shutdown...")
            self._access.close()
            # First, so that it can still be acknowledged what it has under way.
            if self._submission is not None:
                self._submission.stop()
            if self._dashboard is not None:
                self._dashboard.stop()
            if self._choria is not None and not self._failure:
                self._choria.stop()
            self._stop_monitor()
            self._system.announce("SHUTDOWN")
            self._system.desk.close()
            if self._jetstream is not None:
                self._jetstream.close()
            self._engine.shutdown()
            self._events.join()
            self._remove_files()
            self._log.info("Server Exiting..")
        # Without the lock: it may be waiting for it, with a request to reload.
        self._system.desk.join()
        atexit.unregister(self.stop)
        if self._failure:
            raise EngineFailedError(f"the engine stopped by itself: {self._failure}")

    def reload(self, options: ServerOptions, replace_log: Callable[[LogOptions], None], digest: str = "") -> list[str]:
        """Serve by other options from now on, and return one line for each change.

        Raises `ConfigurationError` when something changed that cannot change while a server runs, or the new options
        cannot work, and `OSError` when `replace_log` does; then nothing has changed at all.
        """
        # Most servers are never reloaded.
        from jetlake.server.reload import plan_reload

        with self._lock:
            engine = self._started_engine()
            if self._state != "running":
                raise ServerError("a server that has stopped cannot be reloaded; make a new Server")
            before = self._options
            lines = plan_reload(before, options)

            def put_in_force(completed: ServerOptions) -> None:
                engine_options = completed.engine_options(GIT_COMMIT).to_json()
                if options.log != before.log:
                    replace_log(options.log)
                try:
                    engine.reload(engine_options)
                except EngineError as error:
                    if options.log != before.log:
                        replace_log(before.log)
                    raise ConfigurationError(message_of(error)) from error
                self._options = options

            lines += self._access.reload(options, put_in_force)
            self._config_loaded_unix_ns = time.time_ns()
            self._config_digest = digest
            self._files.move(before, options, self._ports)
            self._renew_certificate()
        return lines

    def leave(self, wait: Callable[[float], bool]) -> None:
        """Go through lame duck mode: return when no client is left, or when `wait` returns True. Then call `stop`."""
        # Most servers never leave this way; `random` need not be loaded for them.
        from jetlake.server.lame_duck import LameDuck

        self._leaving = True
        if self._choria is not None:
            # Adapters deliver what they hold while they can still connect.
            self._choria.stop()
        if self._system is not None:
            self._system.announce("LAMEDUCK")
        LameDuck(self._started_engine(), self._options.lame_duck, self._log, wait).run()

    def reload_by(self, reload: Callable[[], str]) -> None:
        """Let the system account ask for a reload. `reload` returns why it failed, and nothing when it did not."""
        self._reload_again = reload

    def facts(self) -> "ServerFacts":
        """Return what may be shown of this server: for monitoring, and for the system account."""
        from jetlake.server.monitoring.facts import Running, facts_of

        engine = self._started_engine()
        running = Running(
            server_id=engine.server_id,
            git_commit=GIT_COMMIT,
            port=engine.address[1],
            websocket_port=self._listeners().websocket_port,
            leaf_port=self._listeners().leaf_port,
            config_loaded_unix_ns=self._config_loaded_unix_ns,
            config_digest=self._config_digest,
            monitor_port=self._monitor.port if self._monitor else 0,
            accepts_clients=not (self._leaving or self._failure),
            store_directory=self._store_folder.directory,
            memory_bytes_max=self._store_folder.memory_bytes_max,
            storage_bytes_max=self._store_folder.storage_bytes_max,
        )
        return facts_of(self._access.options(), running, self._access.shown())

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
        return f"<jetlake.Server {self.url if self._state == 'running' else self._state}>"

    def _start(self) -> None:
        options = self._options
        self._log_all(banner.version_lines(version=NATS_VERSION, git_commit=GIT_COMMIT))
        self._files.write_pid(options)
        # Making the engine takes the port; clients that come before `start` wait in the operating system's queue.
        engine = self._engine = self._make_engine()
        self._log_all(banner.identity_lines(server_name=options.server_name, server_id=engine.server_id))
        for warning in unserved.warnings(options):
            self._log.warning(warning)
        if self._access.has_plain_passwords:
            self._log.warning("Plaintext passwords detected, use nkeys or bcrypt")
        if self._notice:
            self._log.info(self._notice)
        self._access.open()
        if options.jetstream.enabled:
            self._store_folder.open()
            self._jetstream = self._open_jetstream(engine)
        if options.choria is not None:
            # Few servers are brokers; the others do not wait for it.
            from jetlake.server.choria import Choria

            self._choria = Choria(options.choria, engine, self._log, options.server_name)
            self._choria.make_streams(self._jetstream)
        self._open_monitor(engine)
        gate = self._access.make_gate(engine, self._note_broken)
        system = SystemAccount(
            engine,
            access=lambda: self._access.options().access,
            facts=self.facts,
            # Who reloads is said later.
            reload=lambda: self._reload_again(),  # noqa: PLW0108
            warn=self._log.warning,
            usages=self._usages,
            claims=self._access.requests(),
        )
        self._access.serve(engine, system, self._jetstream)
        events = EventThread(engine, self._log, gate, system.desk, self._jetstream, self._note_stopped)
        # Before the first client can ask anything.
        self._events, self._system = events, system
        try:
            with signals_blocked():
                engine.start()
                events.start()
        except EngineError as error:
            raise StartError(f"The engine did not start: {message_of(error)}") from error
        if self._monitor is not None:
            with signals_blocked():
                self._monitor.start()
        self._listeners().tell(self._log)
        self._files.write_ports(options, self._ports)
        self._log.info(banner.READY_LINE)
        self._start_submission()
        self._start_dashboard()
        if self._choria is not None:
            self._choria.start(self.url)

    def _start_submission(self) -> None:
        options = self._options.submission
        if options is None:
            return
        # Only servers with a spool pay for loading what starts processes.
        import msgspec

        from jetlake.server.children import Child, Children
        from jetlake.server.options.submission import MODULE

        settings = msgspec.to_builtins(msgspec.structs.replace(options, url=options.url or self._url_of_children()))
        self._log.info(f"Starting the sender of the spool {options.spool}")
        self._submission = Children([Child(name="Sender", module=MODULE, settings=settings)], self._log)
        self._submission.start()

    def _start_dashboard(self) -> None:
        options = self._options.dashboard
        if options is None:
            return
        import msgspec

        from jetlake.server.children import Child, Children
        from jetlake.server.options.dashboard import WORDS

        url = options.url or self._url_of_children()
        settings = msgspec.to_builtins(msgspec.structs.replace(options, url=url, monitor_url=self.monitor_url))
        self._log.info(f"Starting the dashboard on {options.address}")
        self._dashboard = Children([Child(name="dashboard", words=WORDS, settings=settings)], self._log)
        self._dashboard.start()

    def _url_of_children(self) -> str:
        """Where processes beside this one reach it."""
        return self._listeners().url("nats" if self._options.tls is None else "tls")

    def _make_engine(self) -> Engine:
        try:
            return Engine(self._engine_options, early_port.hand_over(self._options.host, self._options.port))
        except EngineError as error:
            raise start_error(error, self._options) from error

    def _open_jetstream(self, engine: Engine) -> "JetStream":
        # Only servers with streams pay for loading what manages them.
        from jetlake.server.jetstream import JetStream

        jetstream = JetStream(engine, options=self._access.options, folder=self._store_folder, log=self._log)
        jetstream.open()
        self._access.know(jetstream.catalog.accounts)
        jetstream.update()
        return jetstream

    def _usages(self) -> "list[AccountUsage]":
        return [] if self._jetstream is None else self._jetstream.usages()

    def _open_monitor(self, engine: Engine) -> None:
        monitoring = self._options.monitoring
        if monitoring.http_port is None and monitoring.https_port is None:
            return
        # Only servers with pages pay for loading them.
        from jetlake.server.monitoring.port import open_monitor

        self._monitor = open_monitor(self._options, engine, self.facts, self._log.warning, self._usages)
        self._log.info(f"Starting {self._monitor.scheme} monitor on {self._monitor.address}")

    def _stop_monitor(self) -> None:
        if self._monitor is not None:
            self._monitor.stop()

    def _renew_certificate(self) -> None:
        tls = self._options.tls
        if self._monitor is not None and tls is not None:
            try:
                self._monitor.renew_certificate(tls.certificate_file, tls.key_file)
            except OSError as error:
                self._log.error(f"The monitoring pages keep their certificate: {error}")

    def _ports(self) -> files.Ports:
        return self._listeners().ports(self._monitor.urls() if self._monitor else [])

    def _abandon(self) -> None:
        """Undo everything that a failed start had begun."""
        self._access.close()
        self._stop_monitor()
        if self._system is not None:
            self._system.desk.close()
        if self._jetstream is not None:
            self._jetstream.close()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.shutdown()
        if self._events is not None:
            self._events.join()
        self._remove_files()

    def _remove_files(self) -> None:
        self._files.remove()
        self._store_folder.remove()

    def _note_broken(self, failure: str) -> None:
        """A thread other than the one that receives from the engine has a bug: no login would be handled."""
        self._failure = f"a login thread broke; this is a bug, please report it: {failure}"
        self._started_engine().shutdown()

    def _note_stopped(self, failure: str) -> None:
        self._failure = self._failure or failure
        self._on_stopped()

    def _log_all(self, lines: list[str]) -> None:
        for line in lines:
            self._log.info(line)

    def _reload_engine(self, options: ServerOptions) -> None:
        self._started_engine().reload(options.engine_options(GIT_COMMIT).to_json())

    def _listeners(self) -> Listeners:
        return Listeners(self._started_engine(), self._options)

    def _started_engine(self) -> Engine:
        if self._engine is None:
            raise ServerError("this server has not started: use it in a `with` statement, or call start() first")
        return self._engine


def _check_login(user: str, password: str, token: str) -> None:
    """Refuse credentials that cannot be meant. Raises `ConfigurationError`."""
    if token and (user or password):
        raise ConfigurationError("a server asks for a token or for user and password, not for both: give one of them")
    if user and not password:
        raise ConfigurationError(f"user {user!r} has no password: give password= too")
    if password and not user:
        raise ConfigurationError("a password is given without its user: give user= too")


def _refuse_reload() -> str:
    return "can only reload config when a file is provided using -c or --config"


def _do_nothing() -> None:
    """A program checks `Server.running`; only a process waits for a notification."""
