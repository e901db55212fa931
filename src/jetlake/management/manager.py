"""`Manager`: takes requests to the API from the thread that hears the engine, and answers them in a thread of its own.

A decision waits for the disk; logins and log lines must not wait with it. So the thread that hears the engine only
queues. Accounts take turns, each with a queue of its own in the order of arrival: whoever floods the server with
requests keeps nobody waiting but himself. A queue that overflows is dropped as a whole, as on nats-server: whoever sent
that much has stopped waiting for the first of it.

Consumers that are made one right after the other share one sync: their answers are held back until it is done.

Invariant: requests of one account are answered in the order in which they came, one at a time; none is looked at while
an answer to another kind is held back. What waits is bounded, in number and in bytes. No thread is started before
somebody asks or a consumer pauses; it ends only with `close`.
"""

import time
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING

from jetlake._engine import EngineError
from jetlake.management import replies
from jetlake.management.account_info import AccountEndpoints
from jetlake.management.advisories import Advisories
from jetlake.management.archives import ArchiveEndpoints
from jetlake.management.catalog import Catalog
from jetlake.management.consumers import ConsumerEndpoints
from jetlake.management.dispatch import API_PREFIX, Answer, Dispatcher
from jetlake.management.error_codes import ApiError
from jetlake.management.forks import ForkEndpoint
from jetlake.management.messages import MessageEndpoints
from jetlake.management.preview.endpoints import Today
from jetlake.management.preview.templates import Templates
from jetlake.management.protocols import ArchiveEvent, ConsumerEvent, ManagedEngine, Request
from jetlake.management.scans import ScanEndpoints
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams import StreamEndpoints
from jetlake.management.subject_rights import SubjectRights
from jetlake.management.why import WhyEndpoints

if TYPE_CHECKING:
    from jetlake.management.preview.dispatch import PreviewDispatcher

REQUESTS_OF_ACCOUNT_MAX = 10_000
"""Requests of one account that wait: nats-server's own bound."""

BYTES_OF_ACCOUNT_MAX = 64 * 1024 * 1024
"""Their bodies: a request may be as large as a message, and ten thousand of those would not fit."""

CLOSE_S_MAX = 10.0
"""How long `join` waits for what is being answered."""

REPORT_INTERVAL_S = 1.0
"""One line for all that was dropped within so long: a flood of requests must not become a flood of lines."""

HELD_MAX = 64
"""Answers that share a sync: the first one waits for the work of all."""

WAIT_S_MAX = 3_600.0
"""How long the thread waits at most: clocks are set, and a pause may end earlier than it seemed."""


class _Queue:
    """What waits of one account."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.byte_count = 0


class Manager:
    """The API of one server. `settings` are replaced by `update`."""

    def __init__(
        self,
        engine: ManagedEngine,
        catalog: Catalog,
        settings: ManagementSettings,
        warn: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._warn = warn
        self._clock = clock
        self._advisories = Advisories(engine, self._settings_in_force)
        self.accounts = AccountEndpoints(catalog, self._settings_in_force)
        rights = SubjectRights(engine, self._settings_in_force)
        streams = StreamEndpoints(catalog, self._advisories, rights, self._settings_in_force)
        self._consumers = ConsumerEndpoints(engine, catalog, self._advisories, rights, self._settings_in_force)
        self._archives = ArchiveEndpoints(
            engine, catalog, self.accounts, self._advisories, rights, self._settings_in_force, warn
        )
        forks = ForkEndpoint(catalog, self._advisories, rights, self._settings_in_force)
        why = WhyEndpoints(engine, catalog)
        messages = MessageEndpoints(catalog)
        self._today = Today(
            catalog=catalog,
            streams=streams,
            consumers=self._consumers,
            messages=messages,
            accounts=self.accounts,
            settings=self._settings_in_force,
        )
        self.templates = Templates(engine, self._today, warn)
        self._preview: PreviewDispatcher | None = None
        scans = ScanEndpoints(engine, catalog)
        self._dispatcher = Dispatcher(
            catalog,
            streams,
            self._consumers,
            messages,
            self.accounts,
            self._archives,
            forks,
            why,
            scans,
            self._preview_dispatcher,
            self._settings_in_force,
            warn,
        )
        self._thread: Thread | None = None
        self._changed = Condition()
        # The account whose turn it is stands first.
        self._queues: dict[str, _Queue] = {}
        # Bounded by the engine: at most two for each snapshot and each restore, and one for each consumer.
        self._events: deque[ArchiveEvent | ConsumerEvent] = deque()
        # Answers that wait for a sync, by what asked for them.
        self._held: dict[tuple[str, ...] | None, tuple[Request, Answer, tuple[str, str, str]]] = {}
        self._closed = False
        self._dropped = 0
        self._reported_at = clock() - REPORT_INTERVAL_S

    def update(self, settings: ManagementSettings) -> None:
        """Answer by other settings from now on."""
        self._settings = settings
        if self._consumers.are_pausing:
            # Consumers that were opened pause, and it is told when they go on.
            self._start()

    def receive(self, request: Request) -> None:
        """Queue a request. The server's own messages are none: a reply must not become a command.

        Only the thread that hears the engine calls this.
        """
        if request.connection_id == 0 and request.service not in self.templates.services:
            return
        with self._changed:
            if self._closed:
                return
            queue = self._queues.setdefault(request.account, _Queue())
            queue.requests.append(request)
            queue.byte_count += len(request.payload)
            if len(queue.requests) > REQUESTS_OF_ACCOUNT_MAX or queue.byte_count > BYTES_OF_ACCOUNT_MAX:
                self._dropped += len(queue.requests)
                del self._queues[request.account]
            self._changed.notify()
        self._start()

    def note(self, event: ArchiveEvent | ConsumerEvent) -> None:
        """Queue what the engine says about a snapshot, a restore, or a consumer that nobody uses.

        Only the thread that hears the engine calls this.
        """
        with self._changed:
            if self._closed:
                return
            self._events.append(event)
            self._changed.notify()
        self._start()

    def _start(self) -> None:
        with self._changed:
            if self._thread is None and not self._closed:
                # A daemon, because Python waits for other threads before it calls what would stop this one.
                self._thread = Thread(target=self._run, name="jetlake-management", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Take nothing more, and forget what waits. What is being answered still is."""
        with self._changed:
            self._closed = True
            self._queues.clear()
            self._events.clear()
            self._changed.notify()

    def join(self) -> None:
        """Wait until the thread has ended, if there is one."""
        if self._thread is not None:
            self._thread.join(CLOSE_S_MAX)

    def answer(self, request: Request) -> None:
        """Answer one request."""
        self._take_up(request)
        self._settle()

    def _take_up(self, request: Request) -> None:
        """Answer a request; the answer is held back while a consumer it made is not durable."""
        key = _created_by(request)
        if self._held and (key is None or key in self._held):
            # What comes next must find everything settled.
            self._settle()
        if request.service in self.templates.services:
            self.templates.serve(request.account, request.subject)
            return
        answer = self._dispatcher.answer(request)
        if answer is None:
            return
        if answer.created is None:
            self._give(request, answer)
            return
        self._held[key] = (request, answer, answer.created)
        if key is None:
            self._settle()

    def _settle(self) -> None:
        """Make durable the consumers of answers that are held back, those of one stream with one sync, and answer."""
        held, self._held = list(self._held.values()), {}
        names: dict[tuple[str, str], list[str]] = {}
        for _, _, (account, stream, name) in held:
            names.setdefault((account, stream), []).append(name)
        failures: dict[tuple[str, str], ApiError] = {}
        for (account, stream), created in names.items():
            try:
                self._consumers.commit(account, stream, created)
            except ApiError as error:
                failures[account, stream] = error
        for request, answer, (account, stream, _) in held:
            failure = failures.get((account, stream))
            if failure is not None:
                body = replies.failure(answer.kind, failure)
                answer = Answer(subject=answer.subject, body=body, is_error=True)  # noqa: PLW2901 - it is another one
            self._give(request, answer)

    def _give(self, request: Request, answer: Answer) -> None:
        if answer.is_of_api and request.account in self._settings.accounts:
            self.accounts.note(request.account, is_error=answer.is_error)
        if request.reply:
            self._send(request, answer)
        if answer.is_of_api:
            self._advisories.tell_answer(request, answer.subject, answer.body)
        if answer.then is not None:
            answer.then()

    def _preview_dispatcher(self) -> "PreviewDispatcher":
        """Most servers are never asked in an old dialect, and do not wait for what reads it."""
        if self._preview is None:
            from jetlake.management.preview.dispatch import PreviewDispatcher

            self._preview = PreviewDispatcher(self._today, self.templates, self._warn)
        return self._preview

    def _settings_in_force(self) -> ManagementSettings:
        return self._settings

    def _send(self, request: Request, answer: Answer) -> None:
        asked = answer.asked_of_engine
        try:
            if asked is not None:
                self._engine.publish(request.account, answer.subject, asked, request.reply, answer.header)
            else:
                self._engine.publish(request.account, request.reply, answer.body, header=answer.header)
        except EngineError:
            # A reply subject one cannot publish to; its sender will notice.
            return

    def _run(self) -> None:
        while True:
            with self._changed:
                if not (self._closed or self._queues or self._events or self._held or self._is_report_due()):
                    self._changed.wait(self._wait_s())
                if self._closed:
                    return
                event = self._events.popleft() if self._events else None
                request = self._take()
            try:
                if self._is_report_due():
                    self._report_dropped()
                if self._consumers.pause_wait_s() == 0:
                    self._consumers.tell_ended_pauses()
                if event is not None:
                    self._deal_with(event)
                if request is not None:
                    self._take_up(request)
                if self._held and (len(self._held) >= HELD_MAX or not self._queues):
                    self._settle()
            except BaseException:  # noqa: BLE001 - whatever it was, an engine's panic included; the next may fare better
                import traceback

                self._warn(f"JetStream API: a bug, please report it: {traceback.format_exc()}")

    def _wait_s(self) -> float | None:
        """Return how long nothing is to be done unless somebody asks; None = for ever."""
        pause_s = self._consumers.pause_wait_s()
        waits = ([REPORT_INTERVAL_S] if self._dropped else []) + ([] if pause_s is None else [pause_s, WAIT_S_MAX])
        return min(waits, default=None)

    def _deal_with(self, event: ArchiveEvent | ConsumerEvent) -> None:
        self._settle()
        if isinstance(event, ConsumerEvent):
            self._consumers.note(event)
        else:
            self._archives.note(event)

    def _take(self) -> Request | None:
        """Return the next request of the account whose turn it is, and put that account behind the others."""
        if not self._queues:
            return None
        account = next(iter(self._queues))
        queue = self._queues.pop(account)
        request = queue.requests.popleft()
        queue.byte_count -= len(request.payload)
        if queue.requests:
            self._queues[account] = queue
        return request

    def _is_report_due(self) -> bool:
        return self._dropped > 0 and self._clock() >= self._reported_at + REPORT_INTERVAL_S

    def _report_dropped(self) -> None:
        with self._changed:
            dropped, self._dropped = self._dropped, 0
        self._reported_at = self._clock()
        self._warn(f"JetStream API limit reached, dropping {dropped} requests")
        self._advisories.tell_limit_reached(dropped)


def _created_by(request: Request) -> tuple[str, ...] | None:
    """Return account, stream and name of the consumer a request wants to make; None = it does not say them so."""
    for prefix in _CREATE_PREFIXES:
        if request.subject.startswith(prefix):
            names = request.subject.removeprefix(prefix).split(".")
            return (request.account, *names[:2]) if len(names) > 1 else None
    return None


_CREATE_PREFIXES = (f"{API_PREFIX}CONSUMER.CREATE.", f"{API_PREFIX}CONSUMER.DURABLE.CREATE.")
