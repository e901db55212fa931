"""Workers that share one consumer: one message of each key at a time, in order, and dead letters with a reason.

Invariant: the jobs of each customer are done in the order they were published, whichever worker does them.
"""

import asyncio
from collections import Counter, defaultdict
from contextlib import suppress

from jetlake.client.connection import connect
from jetlake.client.dead_letters import OPTION, DeadLetters
from jetlake.demo.scene import Scene, ScenePart, Script, in_event_loop
from jetlake.demo.stage import Stage

__all__ = ["SCRIPTS"]

STREAM, DEAD, CONSUMER = "JOBS", "DEAD", "workers"
KEY_OPTION = "jetlake.key"
NAMES = ("ada", "barbara", "grace")
CUSTOMERS = 9
REASON = "no such article"

BROKEN_EVERY = 30
"""One job in this many cannot be done by any worker."""

FETCH = 3
"""Jobs that a worker takes at once."""

LETTERS_SHOWN = 3
FETCH_S = 0.2
WORK_S_MAX = 60.0
"""How long all jobs may take together, on a busy machine."""

ANSWER_S_MAX = 10.0


class _Ledger:
    """Who did what, in the order it was done."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.done: Counter[str] = Counter()
        self.given_up: Counter[str] = Counter()
        self.by_customer: dict[str, list[int]] = defaultdict(list)

    @property
    def is_complete(self) -> bool:
        return self.done.total() + self.given_up.total() >= self.jobs

    def note(self, name: str, subject: str, job: int, *, is_done: bool) -> None:
        (self.done if is_done else self.given_up)[name] += 1
        self.by_customer[subject].append(job)


async def _workers(stage: Stage, scene: Scene) -> None:
    from nats.js.api import AckPolicy, ConsumerConfig

    ledger = _Ledger(stage.scale.count(10, 90, 600))
    client = await connect(stage.server)
    try:
        js = client.jetstream()
        await js.add_stream(name=DEAD, subjects=[f"dead.{STREAM}.>"])
        await js.add_stream(name=STREAM, subjects=["jobs.>"], metadata={OPTION: DEAD})
        config = ConsumerConfig(
            durable_name=CONSUMER, ack_policy=AckPolicy.EXPLICIT, metadata={KEY_OPTION: "subject.2"}
        )
        await js.add_consumer(STREAM, config)
        for number in range(ledger.jobs):
            await js.publish(f"jobs.customer-{number % CUSTOMERS}", b"%d" % number)
    finally:
        await client.close()
    async with asyncio.timeout(WORK_S_MAX):
        await asyncio.gather(*(_work(stage, name, ledger) for name in NAMES))
    async with DeadLetters(stage.access, DEAD) as dead:
        # An acknowledgement that is answered is on disk, and so is the letter.
        letters = await dead.all()
    scene.rows += [(name, ledger.done[name], ledger.given_up[name]) for name in NAMES]
    shown = [
        (letter.original_subject, letter.original_sequence, letter.reason, letter.deliveries)
        for letter in letters[:LETTERS_SHOWN]
    ]
    scene.parts.append(ScenePart("Dead letters", ("subject", "sequence", "reason", "deliveries"), shown))
    broken = len(range(BROKEN_EVERY - 1, ledger.jobs, BROKEN_EVERY))
    in_order = sum(jobs == sorted(jobs) for jobs in ledger.by_customer.values())
    scene.check("every job is done or given up once", expected=ledger.jobs, found=_different(ledger))
    scene.check("customers whose jobs were done in order", expected=CUSTOMERS, found=in_order)
    scene.check("each job that cannot be done is a dead letter", expected=broken, found=len(letters))
    scene.check("dead letters name the reason", expected=broken, found=sum(each.reason == REASON for each in letters))
    stage.truths["dead"] = {"letters": broken}


async def _work(stage: Stage, name: str, ledger: _Ledger) -> None:
    client = await connect(stage.server, name=name)
    try:
        subscription = await client.jetstream().pull_subscribe_bind(CONSUMER, STREAM)
        while not ledger.is_complete:
            with suppress(TimeoutError):
                for message in await subscription.fetch(FETCH, timeout=FETCH_S):
                    job = int(message.data)
                    is_done = job % BROKEN_EVERY != BROKEN_EVERY - 1
                    # Noted before the acknowledgement: with it the next job of this customer may go to another worker.
                    ledger.note(name, message.subject, job, is_done=is_done)
                    if is_done:
                        await message.ack_sync(timeout=ANSWER_S_MAX)
                    else:
                        await client.request(message.reply, f"+TERM {REASON}".encode(), timeout=ANSWER_S_MAX)
    finally:
        await client.close()


def _different(ledger: _Ledger) -> int:
    return len({job for jobs in ledger.by_customer.values() for job in jobs})


SCRIPTS = (
    Script(
        "workers",
        "Workers that share a queue",
        "Three plain clients pull from one consumer with a key: of each customer one job at a time, in order. A job "
        "that cannot be done goes to a stream of dead letters with the reason; `jetlake dead redrive` puts it back.",
        ("worker", "jobs done", "given up"),
        in_event_loop(_workers),
    ),
)
