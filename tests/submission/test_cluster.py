"""Submission to a stream with three replicas on three nats-servers, one of which is killed in the middle."""

import asyncio

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.submission import SenderOptions, run_sender, submit
from tests.cluster import start_cluster
from tests.submission.reading import messages, until_count

MESSAGES = 300


@pytest.mark.timeout(180)
@pytest.mark.nats_server
async def test_the_loss_of_a_leader_loses_and_doubles_nothing(spool, tmp_path):
    with start_cluster(tmp_path / "cluster") as cluster:
        access = Access(url=cluster.url)
        stop = asyncio.Event()
        async with open_api(access, reconnect=True) as api:
            config = {"name": "S", "subjects": ["mcollective.submission.in.>"], "num_replicas": 3}
            await api.request("STREAM.CREATE.S", config)
            for number in range(MESSAGES):
                submit(f"app.{number % 3}", str(number), spool=spool, reliable=True)
            sender = asyncio.create_task(run_sender(SenderOptions(spool=spool.folder, access=access), stop=stop))
            await until_count(api, "S", MESSAGES // 10)
            await asyncio.to_thread(cluster.kill, cluster.leader_of("S"))
        async with open_api(access, reconnect=True) as api:
            await until_count_while_electing(api)
            found = await messages(api, "S")
        stop.set()
        figures = await sender

    for remainder in range(3):
        numbers = [int(each.payload) for each in found if each.subject.endswith(f".{remainder}")]
        assert numbers == list(range(remainder, MESSAGES, 3))
    assert len(found) == figures.delivered == MESSAGES


async def until_count_while_electing(api):
    """A request may have no answer while a leader is elected."""
    from jetlake.errors import ClientError

    for attempt in range(10):
        try:
            return await until_count(api, "S", MESSAGES)
        except ClientError:
            assert attempt < 9
            await asyncio.sleep(0.5)
    return None
