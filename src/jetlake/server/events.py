"""The thread that receives from the engine: log lines, clients that log in, requests to the server, and the end.

Requests to the API of streams go to JetStream, answers of services that decide about clients to the gate, all others to
the system account.

The engine hands events over in batches and waits without the GIL. The thread lives from start to `Stopped`, the
last event there is. Should this code itself break, that is a bug, and a server whose ear is gone must not go on as
if nothing had happened: the engine is shut down and the server counts as failed.
"""

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, cast

from jetlake._engine import (
    AuthenticationRequest,
    ConnectionEvent,
    Engine,
    LogLine,
    Request,
    Stopped,
)
from jetlake.server.authentication.gate import Gate
from jetlake.server.log import LEVELS, Level, Log
from jetlake.server.system.desk import Desk

if TYPE_CHECKING:
    from jetlake.server.jetstream import JetStream

BATCH_COUNT_MAX = 256
"""Enough to drain a burst of log lines in a few calls, few enough that a login after them is not kept waiting."""

WAIT_MS = 1_000
"""How long one call may wait for an event; nothing depends on it, the engine answers as soon as it has something."""


class EventThread:
    """Runs until the engine has stopped, then calls `on_stopped` once with what broke (empty = a wanted stop)."""

    def __init__(
        self,
        engine: Engine,
        log: Log,
        gate: Gate,
        desk: Desk,
        jetstream: "JetStream | None",
        on_stopped: Callable[[str], None],
    ) -> None:
        self._engine = engine
        self._log = log
        self._gate = gate
        self._desk = desk
        self._jetstream = jetstream
        self._on_stopped = on_stopped
        # A daemon, because Python waits for other threads before it calls what would stop this one.
        self._thread = Thread(target=self._run, name="jetlake-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self) -> None:
        """Wait for the end of this thread, and of those that decide about logins."""
        if self._thread.ident is not None:
            self._thread.join()
        self._gate.join()

    def _run(self) -> None:
        try:
            failure = self._listen()
        except Exception:  # noqa: BLE001 - whatever it was, it is our bug and ends this server
            import traceback

            failure = f"the event thread broke; this is a bug, please report it: {traceback.format_exc()}"
            self._engine.shutdown()
        self._gate.close()
        self._on_stopped(failure)

    def _listen(self) -> str:
        while True:
            wait_ms = min(WAIT_MS, self._desk.tick())
            for event in self._engine.next_events(BATCH_COUNT_MAX, wait_ms):
                if isinstance(event, LogLine):
                    assert event.level in LEVELS, event.level
                    self._log.write(cast("Level", event.level), event.text)
                elif isinstance(event, AuthenticationRequest):
                    self._gate.receive(event)
                elif isinstance(event, Request):
                    self._receive(event)
                elif isinstance(event, ConnectionEvent):
                    self._desk.note(event)
                elif isinstance(event, Stopped):
                    return event.failure
                else:
                    assert self._jetstream is not None, "only streams have archives and consumers"
                    self._jetstream.note(event)

    def _receive(self, request: Request) -> None:
        if self._gate.hears(request.service):
            self._gate.hear(request.subject, request.payload)
        elif self._jetstream is not None and self._jetstream.serves(request.service):
            self._jetstream.receive(request)
        else:
            self._desk.receive(request)
