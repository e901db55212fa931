"""Clients of a server that may die at any moment, and the ledger of what they were told.

A publisher fills streams, a puller takes from one durable and acknowledges in every way. What they learn stays in the
ledger over many lives of the server, and `drain` compares it with what the server still delivers. Invariant: an
acknowledgement is in `sent` before it leaves, and in `confirmed` only after the server has answered it or a later one.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import AckPolicy

ACK_WAIT_SECONDS = 1.0
BATCH = 50
FETCH_SECONDS = 0.5
DRAIN_SECONDS_MAX = 60.0

SLACK_SECONDS = 4.0
"""So much later a server may notice that a time is over, on a machine that is busy."""

PUBLISHED_AT_ONCE = 20

BEHIND_MAX = 500
"""The publisher waits while a durable is so many messages behind."""

GONE = (nats.errors.Error, nats.js.errors.Error, ConnectionError, OSError, TimeoutError)
"""What calls raise when the server dies."""


@dataclass
class Known:
    """What the clients know of one durable, by stream sequence."""

    received: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    confirmed: set[int] = field(default_factory=set)
    # What was on its way again when it was confirmed: sent before the server had heard of that.
    overtaken: set[int] = field(default_factory=set)
    # How often each was delivered, and what of that was known when something was confirmed.
    seen: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)


@dataclass
class Ledger:
    """Everything that clients know."""

    stored: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    known: dict[tuple[str, str], Known] = field(default_factory=lambda: defaultdict(Known))
    published: int = 0
    redelivered: int = 0

    def behind(self, stream: str) -> int:
        """Return how many messages the slowest durable of a stream has not received."""
        counts = [len(known.received) for (other, _), known in self.known.items() if other == stream]
        return len(self.stored[stream]) - min(counts, default=0)


async def connect(url: str) -> Client:
    """Connect without coming back by itself: a new life of the server is a new connection."""

    async def ignore(_: Exception) -> None:
        """A server that is killed is no news."""

    return await nats.connect(url, allow_reconnect=False, error_cb=ignore, connect_timeout=60)


async def publish(js: JetStreamContext, ledger: Ledger, streams: list[str]) -> None:
    """Publish to all streams until the server dies, not too far ahead of the durables."""
    while True:
        if any(ledger.behind(stream) > BEHIND_MAX for stream in streams):
            await asyncio.sleep(0.01)
            continue
        for stream in streams:
            payloads = [b"%d" % (ledger.published + offset) for offset in range(PUBLISHED_AT_ONCE)]
            ledger.published += PUBLISHED_AT_ONCE
            subject = f"{stream.lower()}.a"
            answers = await asyncio.gather(
                *(js.publish(subject, payload, stream=stream) for payload in payloads), return_exceptions=True
            )
            acknowledged = [answer.seq for answer in answers if not isinstance(answer, BaseException)]
            assert not ledger.stored[stream].intersection(acknowledged), "a sequence was given twice"
            ledger.stored[stream].update(acknowledged)
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer


class Puller:
    """Pulls from one durable and acknowledges: with a reply, without one, not at all; or refuses."""

    def __init__(self, ledger: Ledger, stream: str, durable: str, policy: AckPolicy, chance: random.Random) -> None:
        self.ledger = ledger
        self.stream = stream
        self.durable = durable
        self.policy = policy
        self.chance = chance
        self.subscription: JetStreamContext.PullSubscription | None = None

    @property
    def known(self) -> Known:
        return self.ledger.known[self.stream, self.durable]

    async def run(self, js: JetStreamContext) -> None:
        """Work until the server dies."""
        self.forget_unconfirmed()
        subscription = self.subscription = await js.pull_subscribe_bind(self.durable, self.stream)
        while True:
            try:
                messages = await subscription.fetch(BATCH, timeout=FETCH_SECONDS)
            except TimeoutError:
                continue
            if not messages:
                # The end of a pull may come before any of its messages.
                continue
            self.note(messages)
            if self.policy is AckPolicy.ALL:
                await self.acknowledge_up_to(messages)
            else:
                await self.acknowledge_some(messages)

    def forget_unconfirmed(self) -> None:
        """A server that has died need not know of deliveries after which nothing was confirmed."""
        self.known.overtaken.clear()
        self.known.seen = dict(self.known.counted)

    def note(self, messages: list[Msg]) -> None:
        known = self.known
        for message in messages:
            sequence, count = message.metadata.sequence.stream, message.metadata.num_delivered
            where = f"{self.stream} > {self.durable}: {sequence}"
            if sequence in known.overtaken:
                known.overtaken.remove(sequence)
                continue
            assert sequence not in known.confirmed, f"{where} was confirmed, and comes again"
            least = known.counted.get(sequence, 0) + 1
            assert count >= least, f"{where} is delivery {count}, and not {least} or more"
            known.received.add(sequence)
            known.seen[sequence] = max(count, known.seen.get(sequence, 0))
            self.ledger.redelivered += count > 1

    def settle(self, sequences: list[int]) -> None:
        """Take down what was confirmed, and how often everything had been delivered by then."""
        known = self.known
        known.confirmed.update(sequences)
        known.overtaken.update(self.waiting().intersection(sequences))
        for sequence in sequences:
            known.seen.pop(sequence, None)
            known.counted.pop(sequence, None)
        known.counted = dict(known.seen)

    def waiting(self) -> set[int]:
        """Return what has arrived and was not fetched: where acknowledging takes longer than the wait for it."""
        if self.subscription is None:
            return set()
        queue = self.subscription._sub._pending_queue
        # Statuses have no reply subject.
        return {message.metadata.sequence.stream for message in list(queue._queue) if message.reply}

    async def acknowledge_some(self, messages: list[Msg]) -> None:
        answers = []
        settled: list[int] = []
        asked = 0
        for message in messages:
            sequence = message.metadata.sequence.stream
            draw = self.chance.random()
            if draw < 0.75:
                self.known.sent.add(sequence)
                settled.append(sequence)
            if draw < 0.5:
                asked = len(settled)
                answers.append(asyncio.ensure_future(message.ack_sync(timeout=60)))
                # The request leaves before anything that follows.
                await asyncio.sleep(0)
            elif draw < 0.75:
                await message.ack()
            elif draw < 0.85:
                await message.nak()
        outcomes = await asyncio.gather(*answers, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        if answers:
            self.settle(settled[:asked])

    async def acknowledge_up_to(self, messages: list[Msg]) -> None:
        highest = max(messages, key=lambda message: message.metadata.sequence.stream)
        sequence = highest.metadata.sequence.stream
        settled = [other for other in self.ledger.stored[self.stream] | self.known.received if other <= sequence]
        settled = [other for other in settled if other not in self.known.confirmed]
        self.known.sent.update(settled)
        if self.chance.random() < 0.6:
            await highest.ack_sync(timeout=60)
            self.settle(settled)
        else:
            await highest.ack()

    async def drain(self, js: JetStreamContext) -> set[int]:
        """Take and acknowledge everything there is until nothing is missing and nothing comes; return what came."""
        self.forget_unconfirmed()
        self.subscription = None
        wanted = self.ledger.stored[self.stream] - self.known.sent
        subscription = await js.pull_subscribe_bind(self.durable, self.stream)
        # What waits for an acknowledgement comes first then, so that acknowledging all up to one leaves nothing out.
        await asyncio.sleep(ACK_WAIT_SECONDS + SLACK_SECONDS)
        drained: set[int] = set()
        deadline = asyncio.get_running_loop().time() + DRAIN_SECONDS_MAX
        while True:
            try:
                messages = await subscription.fetch(500, timeout=2 * ACK_WAIT_SECONDS)
            except TimeoutError:
                if wanted <= drained:
                    return drained
                missing = sorted(wanted - drained)
                assert asyncio.get_running_loop().time() < deadline, (
                    f"{self.stream} > {self.durable}: {len(missing)} of {len(wanted)} do not come: {missing[:10]}"
                )
                continue
            self.note(messages)
            drained.update(message.metadata.sequence.stream for message in messages)
            self.known.sent.update(drained)
            highest = max(messages, key=lambda message: message.metadata.sequence.stream)
            if self.policy is not AckPolicy.ALL:
                for message in messages:
                    if message is not highest:
                        await message.ack()
            await highest.ack_sync(timeout=60)
            self.settle(sorted(drained))


async def end(client: Client, tasks: list[asyncio.Task[None]]) -> None:
    """End clients of a server that was killed; what they met that has nothing to do with that is raised."""
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    await client.close()
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, (*GONE, asyncio.CancelledError)):
            raise outcome
