"""`Sender`: delivers the messages of one spool, and owns them until a stream has them.

```python
await run_sender(SenderOptions(spool="/var/spool/jetlake", access=access))
```

| message      | what the sender does                                                                           |
|--------------|------------------------------------------------------------------------------------------------|
| reliable     | tries until a stream acknowledges it, waits longer each time, holds back what comes after it    |
| unreliable   | publishes it once, when there is a connection                                                  |
| expired      | removes it                                                                                     |
| hopeless     | tried too often, too large, unreadable: moves it to `rejected`, and says why in the log        |

Durability: all state is in the files. A sender that is killed between the acknowledgement and the removal of a file
sends the message again with the same id, and the stream drops it.

Invariant: a file of a reliable message is removed only after a stream acknowledged it, or it expired.
"""

import asyncio
import logging
import os
import time
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path

import msgspec

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.client.backoff import TWENTY_SECONDS_MS, table
from jetlake.client.timestamps import SECOND_NS
from jetlake.errors import ClientError, ConfigurationError, SpoolError
from jetlake.shared.cancellation import end
from jetlake.submission.delivery import Delivery, Failed, Outcome, StoredInStream, Undeliverable
from jetlake.submission.lanes import SpoolLanes, WaitingMessage
from jetlake.submission.message import PAYLOAD_BYTES_MAX, PRIORITIES, SpoolMessage, check
from jetlake.submission.signing import Signer
from jetlake.submission.spool import DEFAULT_MESSAGES_MAX, Spool
from jetlake.submission.statistics import SenderStatistics

POLL_S = 0.25
"""How often the folders are looked at."""

UNDER_WAY_MAX = 32
"""Messages that are sent at once, of different subjects: their payloads are in memory."""

STATISTICS_S = 2.0
"""How often the figures are written."""

CLEAN_UP_S = 600.0
"""How often files are looked for that crashes have left."""

LOCK_RETRY_S = 1.0
"""How often a sender that waits for another one to end checks whether it has."""

STOP_S_MAX = 5.0
"""How long a sender that is to stop waits for the answers that are under way."""

_log = logging.getLogger("jetlake.submission")


class SenderOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a sender needs to know."""

    spool: str | os.PathLike[str]
    access: Access
    collective: str = "mcollective"
    messages_max: int = DEFAULT_MESSAGES_MAX
    payload_bytes_max: int = PAYLOAD_BYTES_MAX
    # Of ed25519, in hexadecimal, and the JWT that goes with it; for signed messages.
    seed_file: Path | None = None
    token_file: Path | None = None
    # For Prometheus, on the loopback address; None = no page, 0 = a random port.
    metrics_port: int | None = None


async def run_sender(options: SenderOptions, *, stop: asyncio.Event | None = None) -> SenderStatistics:
    """Deliver the messages of a spool until `stop` is set, or for ever, and return what was done.

    Waits while another sender has the spool. Raises `ConfigurationError` and `SpoolError` when it cannot start.
    """
    sender = Sender(options)
    await sender.run(stop or asyncio.Event())
    return sender.statistics


class Sender:
    """Delivers the messages of one spool. `run_sender` is the way to use it."""

    def __init__(self, options: SenderOptions) -> None:
        self._options = options
        self._spool = Spool(
            options.spool, messages_max=options.messages_max, payload_bytes_max=options.payload_bytes_max
        )
        self._signer = None if options.seed_file is None else Signer.from_files(options.seed_file, options.token_file)
        self._lanes = SpoolLanes(PRIORITIES)
        self._delay_s = table()
        # Done with, and could not be removed: never sent again by this sender.
        self._stuck: set[tuple[int, str]] = set()
        # Priorities that were looked at: what a first look finds may have been sent by another sender.
        self._scanned: set[int] = set()
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._api: Api | None = None
        self.statistics = SenderStatistics(pid=os.getpid(), started_unix_s=time.time())

    async def run(self, stop: asyncio.Event) -> None:
        """Send until `stop` is set."""
        self._spool.create()
        async with AsyncExitStack() as stack:
            if not await self._wait_for_lock(stack, stop):
                return
            if self._options.metrics_port is not None:
                from jetlake.submission.metrics_page import serve_metrics

                port = await stack.enter_async_context(serve_metrics(self._options.metrics_port, self._figures))
                _log.info("metrics at http://127.0.0.1:%d/metrics", port)
            connecting = asyncio.create_task(self._keep_connected(stop))
            stack.push_async_callback(end, connecting)
            await self._send_until(stop, connecting)
        self._figures().write(self._spool.folder)

    async def _send_until(self, stop: asyncio.Event, connecting: asyncio.Task[None]) -> None:
        stopping = asyncio.create_task(stop.wait())
        scan_s = statistics_s = clean_s = 0.0
        try:
            while not stop.is_set():
                now_s = time.monotonic()
                if now_s >= scan_s:
                    self._scan()
                    scan_s = now_s + POLL_S
                if now_s >= statistics_s:
                    self._figures().write(self._spool.folder)
                    statistics_s = now_s + STATISTICS_S
                if now_s >= clean_s:
                    self._spool.clean_up()
                    clean_s = now_s + CLEAN_UP_S
                if self._failure is not None:
                    raise self._failure
                if connecting.done() and not stop.is_set():
                    # It ends by a bug of ours only, which this raises.
                    connecting.result()
                self._changed.clear()
                self._start_due()
                changed = asyncio.create_task(self._changed.wait())
                left_s = max(scan_s - time.monotonic(), 0.0)
                await asyncio.wait((changed, stopping), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                await end(changed)
        finally:
            await end(stopping)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=STOP_S_MAX)
            for task in list(self._tasks):
                await end(task)

    async def _wait_for_lock(self, stack: AsyncExitStack, stop: asyncio.Event) -> bool:
        is_told = False
        while not stop.is_set():
            with ExitStack() as attempt:
                if attempt.enter_context(self._spool.sender_lock()):
                    # From here on it is held as long as everything else.
                    stack.enter_context(attempt.pop_all())
                    return True
            if not is_told:
                _log.warning("another sender has the spool %s; waiting for it to end", self._spool.folder)
                is_told = True
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOCK_RETRY_S)
        return False

    # The folders

    def _scan(self) -> None:
        """Note what has come, and what is gone."""
        for priority in range(PRIORITIES):
            try:
                names = self._spool.names(priority)
            except SpoolError as error:
                self._note_disk_error(error)
                continue
            self._remove_stuck(priority, set(names))
            found = (self._look_at(priority, name) for name in self._lanes.unknown(priority, names))
            self._lanes.add([waiting for waiting in found if waiting is not None])
            self._scanned.add(priority)
        # Without a connection too: what nobody wants any more must not fill the spool.
        for waiting in self._lanes.expired(time.time_ns()):
            self._expire(waiting)

    def _look_at(self, priority: int, name: str) -> WaitingMessage | None:
        if (priority, name) in self._stuck:
            return None
        try:
            message = self._spool.read(priority, name)
        except ConfigurationError as error:
            self._reject(priority, name, str(error))
            return None
        except SpoolError as error:
            self._note_disk_error(error)
            return None
        if message is None:
            return None
        # An earlier sender may have sent it and died before it could remove it.
        return WaitingMessage.of(priority, name, message, may_be_stored=priority not in self._scanned)

    def _remove_stuck(self, priority: int, present: set[str]) -> None:
        for stuck_priority, name in list(self._stuck):
            if stuck_priority == priority:
                if name in present:
                    self._remove(priority, name)
                else:
                    self._stuck.discard((priority, name))

    # Sending

    def _start_due(self) -> None:
        if self._api is None or not self._api.connection.is_connected:
            return
        delivery = Delivery(self._api, self._options.collective, self._signer)
        for waiting in self._lanes.due(time.time_ns()):
            if len(self._tasks) >= UNDER_WAY_MAX:
                return
            waiting.is_under_way = True
            task = asyncio.create_task(self._deliver(delivery, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._note_done)

    def _note_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # A bug of ours: the process that runs the sender must know of it.
            self._failure = self._failure or task.exception()
        self._changed.set()

    async def _deliver(self, delivery: Delivery, waiting: WaitingMessage) -> None:
        # Stays None if the file was damaged since it was looked at.
        message: SpoolMessage | None = None
        try:
            message = self._spool.read(waiting.priority, waiting.name)
            if message is None:
                self._lanes.remove(waiting)
                return
            # What is in memory is newer if the disk refused to write it.
            message = msgspec.structs.replace(message, tries=max(message.tries, waiting.tries))
            if message.is_expired(time.time_ns()):
                self._expire(waiting)
                return
            check(message, payload_bytes_max=self._options.payload_bytes_max)
            outcome = await self._send(delivery, waiting, message)
        except ConfigurationError as error:
            outcome = Undeliverable(str(error))
        except SpoolError as error:
            self._note_disk_error(error)
            waiting.next_try_ns = time.time_ns() + int(self._delay_s(1) * SECOND_NS)
            return
        finally:
            waiting.is_under_way = False
        self._apply_outcome(waiting, message, outcome)

    async def _send(self, delivery: Delivery, waiting: WaitingMessage, message: SpoolMessage) -> Outcome:
        if not message.reliable:
            return await delivery.send_once(message)
        if waiting.may_be_stored and await delivery.is_stored(message):
            return StoredInStream(is_duplicate=True)
        waiting.may_be_stored = False
        return await delivery.send(message)

    def _apply_outcome(self, waiting: WaitingMessage, message: SpoolMessage | None, outcome: Outcome) -> None:
        match outcome:
            case StoredInStream(is_duplicate):
                if waiting.reliable:
                    self.statistics.delivered += 1
                    self.statistics.duplicates += is_duplicate
                else:
                    self.statistics.published += 1
                self._done(waiting)
            case Undeliverable(reason):
                self._lanes.remove(waiting)
                self._reject(waiting.priority, waiting.name, reason)
            case Failed(reason, may_be_stored):
                assert message is not None, "what could not be read is undeliverable"
                self._retry(waiting, message, reason, may_be_stored=may_be_stored)

    def _retry(self, waiting: WaitingMessage, message: SpoolMessage, reason: str, *, may_be_stored: bool) -> None:
        self.statistics.last_error = reason
        if not message.reliable:
            _log.warning("message %s to %s was not published: %s", message.id, message.subject, reason)
            self._done(waiting)
            return
        self.statistics.retries += 1
        tries = message.tries + 1
        if tries >= message.max_tries:
            self._lanes.remove(waiting)
            self._reject(waiting.priority, waiting.name, f"tried {tries} times, last: {reason}")
            return
        _log.info("message %s to %s, try %d: %s", message.id, message.subject, tries, reason)
        waiting.tries = tries
        waiting.may_be_stored = waiting.may_be_stored or may_be_stored
        waiting.next_try_ns = time.time_ns() + int(self._delay_s(tries) * SECOND_NS)
        rewritten = msgspec.structs.replace(message, tries=tries, next_try_ns=waiting.next_try_ns)
        try:
            self._spool.replace(waiting.priority, waiting.name, rewritten)
        except SpoolError as error:
            # The message is safe in its file; only the number of tries is in memory alone.
            self._note_disk_error(error)

    def _expire(self, waiting: WaitingMessage) -> None:
        _log.warning("%s to %s has expired after %d tries", waiting.name, waiting.subject, waiting.tries)
        self.statistics.expired += 1
        self._done(waiting)

    def _done(self, waiting: WaitingMessage) -> None:
        self._lanes.remove(waiting)
        self._remove(waiting.priority, waiting.name)

    def _remove(self, priority: int, name: str) -> None:
        try:
            self._spool.remove(priority, name)
            self._stuck.discard((priority, name))
        except SpoolError as error:
            self._stuck.add((priority, name))
            self._note_disk_error(error)

    def _reject(self, priority: int, name: str, reason: str) -> None:
        _log.error("%s is rejected: %s", name, reason)
        self.statistics.rejected += 1
        self.statistics.last_error = reason
        try:
            self._spool.reject(priority, name)
        except SpoolError as error:
            self._stuck.add((priority, name))
            self._note_disk_error(error)

    # Around it

    async def _keep_connected(self, stop: asyncio.Event) -> None:
        """Stay connected: the first connection may take its time, and one that is closed for good is replaced."""
        delay_s, tries = table(TWENTY_SECONDS_MS), 0
        while not stop.is_set():
            try:
                async with open_api(self._options.access, reconnect=True) as api:
                    self._api, tries = api, 0
                    self._changed.set()
                    _log.info("connected to %s", self._options.access.shown)
                    # The library has no event for it that several could wait for.
                    while not api.connection.is_closed:  # noqa: ASYNC110
                        await asyncio.sleep(POLL_S)
            except ClientError as error:
                tries += 1
                self.statistics.last_error = str(error)
                _log.warning("%s", error)
                await asyncio.sleep(delay_s(tries))
            finally:
                self._api = None

    def _figures(self) -> SenderStatistics:
        figures, oldest_ns = self.statistics, self._lanes.oldest_ns()
        figures.spooled = self._lanes.counts()
        figures.oldest_s = 0.0 if oldest_ns is None else max(time.time() - oldest_ns / SECOND_NS, 0.0)
        figures.connected = self._api is not None and self._api.connection.is_connected
        figures.written_unix_s = time.time()
        return figures

    def _note_disk_error(self, error: SpoolError) -> None:
        self.statistics.disk_errors += 1
        self.statistics.last_error = str(error)
        _log.error("%s", error)
