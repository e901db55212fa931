"""`kill -9` in a loop under pulls and acknowledgements: what was confirmed never comes again, everything else does.

`JETLAKE_KILLS` is the number of kills (3 unless told), `JETLAKE_KILL_SECONDS` how long a server lives,
`JETLAKE_SEED` repeats the choices of a run.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import nats.js.errors
import pytest
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

from tests.conftest import StartProcess
from tests.crash.consumer_load import ACK_WAIT_SECONDS, Ledger, Puller, connect, end, publish

KILLS = int(os.environ.get("JETLAKE_KILLS", "3"))
LIFE_SECONDS = float(os.environ.get("JETLAKE_KILL_SECONDS", "0.7"))
SEED = int(os.environ.get("JETLAKE_SEED", random.randrange(1 << 32)))

STREAMS = {
    "LOG": RetentionPolicy.LIMITS,
    "QUEUE": RetentionPolicy.WORK_QUEUE,
    "INTEREST": RetentionPolicy.INTEREST,
}
DURABLES = [
    ("LOG", "one", AckPolicy.EXPLICIT),
    ("LOG", "other", AckPolicy.EXPLICIT),
    ("LOG", "upto", AckPolicy.ALL),
    ("QUEUE", "work", AckPolicy.EXPLICIT),
    ("INTEREST", "first", AckPolicy.EXPLICIT),
    ("INTEREST", "second", AckPolicy.ALL),
]

LOOKED_FOR_MAX = 200
"""Single messages that are asked for at most."""


async def create_all(js: JetStreamContext) -> None:
    for name, retention in STREAMS.items():
        await js.add_stream(StreamConfig(name=name, subjects=[f"{name.lower()}.>"], retention=retention))
    for stream, durable, policy in DURABLES:
        config = ConsumerConfig(durable_name=durable, ack_policy=policy, ack_wait=ACK_WAIT_SECONDS)
        await js.add_consumer(stream, config)


async def assert_gone(js: JetStreamContext, stream: str, sequences: set[int]) -> None:
    for sequence in sorted(sequences)[-LOOKED_FOR_MAX:]:
        with pytest.raises(nats.js.errors.NotFoundError):
            await js.get_msg(stream, sequence)


async def assert_there(js: JetStreamContext, stream: str, sequences: set[int]) -> None:
    for sequence in sorted(sequences)[:LOOKED_FOR_MAX]:
        assert (await js.get_msg(stream, sequence)).seq == sequence


@pytest.mark.timeout(900)
async def test_nothing_confirmed_comes_again_and_everything_else_does(
    start_process: StartProcess, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    print(f"JETLAKE_SEED={SEED}")
    ledger = Ledger()
    pullers = [Puller(ledger, *durable, random.Random(chance.random())) for durable in DURABLES]
    for kill in range(KILLS):
        server = await asyncio.to_thread(start_process, "-js", "-sd", str(tmp_path / "store"))
        client = await connect(server.url)
        js = client.jetstream(timeout=60)
        if kill == 0:
            await create_all(js)
        tasks = [asyncio.create_task(puller.run(js)) for puller in pullers]
        tasks.append(asyncio.create_task(publish(js, ledger, list(STREAMS))))
        await asyncio.sleep(LIFE_SECONDS * chance.uniform(0.5, 1.5))
        server.send(signal.SIGKILL)
        await asyncio.to_thread(server.wait)
        await end(client, tasks)

    server = await asyncio.to_thread(start_process, "-js", "-sd", str(tmp_path / "store"))
    client = await connect(server.url)
    js = client.jetstream(timeout=60)
    first, second = ledger.known["INTEREST", "first"], ledger.known["INTEREST", "second"]
    work = ledger.known["QUEUE", "work"]
    await assert_gone(js, "QUEUE", work.confirmed)
    await assert_there(js, "QUEUE", ledger.stored["QUEUE"] - work.sent)
    await assert_gone(js, "INTEREST", first.confirmed & second.confirmed)
    await assert_there(js, "INTEREST", ledger.stored["INTEREST"] - (first.sent & second.sent))
    confirmed = sum(len(known.confirmed) for known in ledger.known.values())
    drained = await asyncio.gather(*(puller.drain(js) for puller in pullers))
    left = [(await js.stream_info(name)).state.messages for name in ("QUEUE", "INTEREST")]
    await client.close()

    assert left == [0, 0], "what everybody has acknowledged is gone"
    assert confirmed > KILLS * 20
    stored = sum(len(sequences) for sequences in ledger.stored.values())
    again = sum(len(sequences) for sequences in drained)
    print(f"{KILLS} kills: {stored} stored, {confirmed} confirmed, {again} delivered afterwards, none wrong")
