"""`Manager`: accepts API requests from the thread that receives from the engine, and answers them in its own threads.

A decision waits for the disk; logins and log lines must not wait with it. So the thread that receives from the engine
only queues, in the lane of the account (`lanes`). A client that floods the server with requests, or sends a slow one,
delays no other account, and in its own only requests that change something.

Consumers created one right after the other share one sync: their answers are held back until it is done.

Invariant: requests of one account that change something are answered in the order in which they came, one at a time;
none is handled while an answer to another kind is held back. One that only reads may overtake those of other
connections.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake._engine import EngineError
from jetlake.management.archives.endpoints import ArchiveEndpoints
from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.context import ApiContext
from jetlake.management.dispatch import Dispatcher
from jetlake.management.endpoints.account import AccountEndpoints
from jetlake.management.endpoints.consumers import ConsumerEndpoints
from jetlake.management.endpoints.forks import ForkEndpoint
from jetlake.management.endpoints.messages import MessageEndpoints
from jetlake.management.endpoints.scans import ScanEndpoints
from jetlake.management.endpoints.streams import StreamEndpoints
from jetlake.management.endpoints.why import WhyEndpoints
from jetlake.management.engine.protocols import ConsumerEvent, ManagedEngine, Request
from jetlake.management.lanes import Event, Lane, Lanes
from jetlake.management.preview.templates import Templates
from jetlake.management.requests.advisories import Advisories
from jetlake.management.requests.answer import Answer
from jetlake.management.requests.calls import API_PREFIX, Call, Steps
from jetlake.management.requests.requester import SERVER
from jetlake.management.settings import ManagementSettings
from jetlake.management.wire import replies
from jetlake.management.wire.json_dialect import write_json

if TYPE_CHECKING:
    from jetlake.management.preview.dispatch import PreviewDispatcher

REPORT_INTERVAL_S = 1.0
"""One line for everything dropped within this time: a flood of requests must not become a flood of lines."""

HELD_MAX = 64
"""Answers that share a sync: the first one waits for the work of all."""

WAIT_S_MAX = 3_600.0
"""How long the thread waits at most: clocks are set, and a pause may end earlier than it seemed."""


class Manager:
    """The API of one server. `settings` are replaced by `update`."""

    def __init__(
        self,
        engine: ManagedEngine,
        catalog: StreamCatalog,
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
        self._consumers = ConsumerEndpoints(engine, catalog, self._advisories, self._settings_in_force)
        self._archives = ArchiveEndpoints(
            engine, catalog, self.accounts, self._advisories, self._settings_in_force, warn
        )
        self._api = ApiContext(
            catalog=catalog,
            streams=StreamEndpoints(catalog, self._advisories, self._settings_in_force),
            consumers=self._consumers,
            messages=MessageEndpoints(catalog),
            accounts=self.accounts,
            archives=self._archives,
            forks=ForkEndpoint(catalog, self._advisories, self._settings_in_force),
            why=WhyEndpoints(engine, catalog),
            scans=ScanEndpoints(engine, catalog),
            settings=self._settings_in_force,
            alone_with=self._alone_with,
            warn=warn,
        )
        self.templates = Templates(engine, self._api)
        self._preview: PreviewDispatcher | None = None
        self._dispatcher = Dispatcher(self._api, self._preview_dispatcher)
        self._lanes = Lanes(
            self._work, self._do_chores, self._chore_wait_s, warn, self._may_overtake, self._answer_beside
        )
        self._reported_at = clock() - REPORT_INTERVAL_S

    def update(self, settings: ManagementSettings) -> None:
        """Answer by other settings from now on."""
        self._settings = settings
        if self._consumers.are_pausing:
            # Some opened consumers pause, and the end of a pause is reported.
            self._lanes.start()

    def receive(self, request: Request) -> None:
        """Queue a request. The server's own messages do not count: a reply must not become a command.

        Only the thread that receives from the engine calls this.
        """
        if request.connection_id == 0 and request.service not in self.templates.services:
            return
        self._lanes.add_request(request)

    def note(self, event: Event) -> None:
        """Queue what the engine reports about a snapshot, a restore, or an unused consumer.

        Only the thread that receives from the engine calls this.
        """
        account = event.account if isinstance(event, ConsumerEvent) else self._archives.account_of(event)
        if account is not None:
            self._lanes.add_event(account, event)

    def close(self) -> None:
        """Take nothing more, and forget what waits. What is being answered still is."""
        self._lanes.close()

    def join(self) -> None:
        """Wait until the threads have ended, if there are any."""
        self._lanes.join()

    def ensure_stream(self, account: str, config: dict[str, Any]) -> str:
        """Make a stream, or change these fields of it; return what was done: created, changed or nothing.

        For the server itself, before it takes requests. Raises `RequestError`.
        """
        name = str(config["name"])
        subject = f"{API_PREFIX}STREAM.CREATE.{name}"
        call = Call(account=account, subject=subject, names=(name,), is_strict=False, requester=SERVER)
        streams = self._api.streams
        if name not in self._api.catalog.streams_of(account).names:
            streams.create(msgspec.structs.replace(call, body=json.dumps(config).encode()))
            return "created"
        existing = json.loads(write_json(self._api.catalog.find(account, name).config.to_json()))
        if all(existing.get(key) == value for key, value in config.items()):
            return ""
        streams.update(msgspec.structs.replace(call, body=json.dumps({**existing, **config}).encode()))
        return "changed"

    def answer(self, request: Request) -> None:
        """Answer one request."""
        with self._lanes.held(request.account) as lane:
            self._answer_in_order(lane, request)
            self._commit_held(lane)

    def _work(self, lane: Lane, event: Event | None, request: Request | None) -> None:
        """Do what the lane of an account has to do."""
        if event is not None:
            self._handle_event(lane, event)
        if request is not None:
            self._answer_in_order(lane, request)
        if lane.held and (len(lane.held) >= HELD_MAX or not lane.requests):
            self._commit_held(lane)

    def _may_overtake(self, request: Request) -> bool:
        """Return whether a request can be answered beside one of its account that takes long."""
        return request.service not in self.templates.services and self._dispatcher.only_reads(request)

    def _answer_beside(self, request: Request) -> None:
        """Answer a request that only reads, while another one of its account is being decided."""
        answer = self._dispatcher.answer(request)
        if answer is not None:
            task = self._deliver(request, answer)
            assert task is None, "what only reads has nothing left to do"

    def _answer_in_order(self, lane: Lane, request: Request) -> None:
        """Answer a request; the answer is held back while a consumer it made is not durable."""
        key = _created_by(request)
        if lane.held and (key is None or key in lane.held):
            # What comes next must find everything durable.
            self._commit_held(lane)
        if request.service in self.templates.services:
            self.templates.serve(request.account, request.subject)
            return
        answer = self._dispatcher.answer(request)
        if answer is None:
            return
        if answer.created is None:
            self._deliver_and_continue(lane, request, answer)
            return
        lane.held[key] = (request, answer, answer.created)
        if key is None:
            self._commit_held(lane)

    def _commit_held(self, lane: Lane) -> None:
        """Make durable the consumers of answers that are held back, those of one stream with one sync, and answer."""
        held, lane.held = list(lane.held.values()), {}
        names: dict[tuple[str, str], list[str]] = {}
        for _, _, (account, stream, name) in held:
            names.setdefault((account, stream), []).append(name)
        refused = {where: self._consumers.commit(*where, created) for where, created in names.items()}
        for request, answer, (account, stream, name) in held:
            failure = refused[account, stream].get(name)
            if failure is not None:
                body = replies.failure(answer.kind, failure)
                answer = Answer(subject=answer.subject, body=body, is_error=True)  # noqa: PLW2901 - it is another one
            self._deliver_and_continue(lane, request, answer)

    @contextmanager
    def _alone_with(self, account: str) -> Iterator[None]:
        """Keep other threads from deciding something for an account; none of its answers is held back meanwhile."""
        with self._lanes.held(account) as lane:
            self._commit_held(lane)
            yield

    def _deliver_and_continue(self, lane: Lane, request: Request, answer: Answer) -> None:
        """Give an answer; what is left to do then is done in the lane, step by step."""
        task = self._deliver(request, answer)
        if task is not None:
            lane.tasks.append(task)

    def _deliver(self, request: Request, answer: Answer) -> Steps | None:
        if answer.is_of_api and request.account in self._settings.accounts:
            self.accounts.note(request.account, is_error=answer.is_error)
        if request.reply:
            self._send(request, answer)
        if answer.is_of_api:
            self._advisories.tell_answer(request, answer.subject, answer.body)
        return None if answer.then is None else answer.then()

    def _preview_dispatcher(self) -> "PreviewDispatcher":
        """Most servers are never asked in an old dialect, and do not wait for what reads it."""
        if self._preview is None:
            from jetlake.management.preview.dispatch import PreviewDispatcher

            self._preview = PreviewDispatcher(self._api, self.templates)
        return self._preview

    def _settings_in_force(self) -> ManagementSettings:
        return self._settings

    def _send(self, request: Request, answer: Answer) -> None:
        asked = answer.asked_of_engine
        try:
            if asked is not None:
                # On behalf of the requester, with the same rights as when it asks the engine directly.
                self._engine.publish(request.account, answer.subject, asked, request.reply, answer.header, request)
            else:
                self._engine.publish(request.account, request.reply, answer.body, header=answer.header)
        except EngineError:
            # A reply subject one cannot publish to; its sender will notice.
            return

    def _handle_event(self, lane: Lane, event: Event) -> None:
        self._commit_held(lane)
        if isinstance(event, ConsumerEvent):
            self._consumers.note(event)
            return
        task = self._archives.note(event)
        if task is not None:
            lane.tasks.append(task)

    def _do_chores(self) -> None:
        """Publish the reports that are due."""
        if self._is_report_due():
            self._report_dropped()
        if self._consumers.pause_wait_s() == 0:
            self._consumers.tell_ended_pauses()

    def _chore_wait_s(self) -> float | None:
        """Return how long until a report is due; None = never."""
        waits = []
        if self._lanes.has_dropped:
            waits.append(max(self._reported_at + REPORT_INTERVAL_S - self._clock(), 0.0))
        pause_s = self._consumers.pause_wait_s()
        if pause_s is not None:
            waits += [pause_s, WAIT_S_MAX]
        return min(waits, default=None)

    def _is_report_due(self) -> bool:
        return self._lanes.has_dropped and self._clock() >= self._reported_at + REPORT_INTERVAL_S

    def _report_dropped(self) -> None:
        dropped = self._lanes.take_dropped()
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
