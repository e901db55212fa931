"""File descriptors: few are enough for many streams, and nobody from outside can take them away from the store."""

import asyncio
import contextlib
import os
import resource
import socket
import sys
import time
from collections.abc import AsyncIterator, Iterator

import nats
import pytest
from nats.js.api import ConsumerConfig, StreamConfig

from tests.conftest import ServerProcess, StartProcess

IS_LONG_RUN = os.environ.get("JETLAKE_LONG") == "1"

RECOVERY_S_MAX = 300.0
"""How long a server may take that opens thousands of streams, on a machine that is busy with other tests."""

STRANGERS = 450
LIMIT = 400

LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
sys.argv[0] = "jetlake"
runpy.run_module("jetlake.server.main", run_name="__main__")
"""


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Those who attack need as many as they take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def start_limited(start_process: StartProcess, store: str, limit: int, *flags: str, wait: bool = True) -> ServerProcess:
    code = LIMITED.format(limit=limit)
    own = ["-p", "-1", "-a", "127.0.0.1", "-js", "-sd", store, *flags]
    return start_process(command=[sys.executable, "-c", code, *own], wait=wait)


def wait_until_ready(process: ServerProcess) -> None:
    """Wait longer than a server takes that opens a few streams."""
    deadline = time.monotonic() + RECOVERY_S_MAX
    while "Server is ready" not in process.log():
        assert time.monotonic() < deadline, process.log()
        time.sleep(0.1)


@contextlib.asynccontextmanager
async def connected(process: ServerProcess, **options: object) -> AsyncIterator[nats.NATS]:
    client = await nats.connect(f"nats://127.0.0.1:{process.port}", connect_timeout=60, **options)
    try:
        yield client
    finally:
        await client.close()


def open_descriptors(process: ServerProcess) -> int:
    return len(os.listdir(f"/proc/{process.pid}/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
def test_idle_sockets_of_strangers_do_not_keep_streams_from_storing(start_process, tmp_path, many_descriptors):
    flags = ("--user", "me", "--pass", "secret")
    process = start_limited(start_process, str(tmp_path / "store"), LIMIT, *flags)
    login = {"user": "me", "password": "secret"}

    async def attack_and_store() -> int:
        async with connected(process, **login) as client:
            js = client.jetstream(timeout=60)
            await js.add_stream(StreamConfig(name="S", subjects=["s.>"]))
            stored = 0
            strangers = []
            for number in range(STRANGERS):
                stranger = socket.socket()
                stranger.setblocking(False)
                stranger.connect_ex(("127.0.0.1", process.port))
                strangers.append(stranger)
                if number % 10 == 0:
                    await js.publish("s.a", b"%d" % number)
                    stored += 1
            # New segments, folders and files are needed for these.
            for number in range(10):
                await js.add_stream(StreamConfig(name=f"T{number}", subjects=[f"t.{number}"]))
                await js.add_consumer(f"T{number}", ConsumerConfig(durable_name="c"))
                await js.publish(f"t.{number}", b"x")
            assert open_descriptors(process) < LIMIT
            # Whoever says who he is gets in meanwhile.
            async with connected(process, **login) as other:
                await other.jetstream(timeout=60).publish("s.a", b"other")
                stored += 1
            for stranger in strangers:
                stranger.close()
            return stored

    async def read_all(stored: int) -> None:
        async with connected(process, **login) as client:
            js = client.jetstream(timeout=60)
            await js.publish("s.a", b"afterwards")
            assert (await js.stream_info("S")).state.messages == stored + 1
            for sequence in range(1, stored + 2):
                await js.get_msg("S", sequence)

    stored = asyncio.run(attack_and_store())
    asyncio.run(read_all(stored))
    assert "can only be read" not in process.log()


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
@pytest.mark.parametrize(
    ("streams", "limit"),
    [
        pytest.param(200, 256),
        pytest.param(
            2_000,
            1_024,
            marks=[
                pytest.mark.slow,
                pytest.mark.timeout(900),
                pytest.mark.skipif(not IS_LONG_RUN, reason="takes minutes; JETLAKE_LONG=1 runs it"),
            ],
        ),
    ],
)
def test_many_streams_with_consumers_work_with_few_descriptors(start_process, tmp_path, streams, limit):
    store = str(tmp_path / "store")

    async def fill(process: ServerProcess) -> None:
        async with connected(process) as client:
            js = client.jetstream(timeout=60)
            for number in range(streams):
                await js.add_stream(StreamConfig(name=f"S{number}", subjects=[f"s.{number}"]))
                await js.add_consumer(f"S{number}", ConsumerConfig(durable_name="c", ack_policy="explicit"))
                await js.publish(f"s.{number}", b"%d" % number)
            assert open_descriptors(process) < limit

    async def use(process: ServerProcess) -> None:
        async with connected(process) as client:
            js = client.jetstream(timeout=60)
            for number in range(streams):
                await js.publish(f"s.{number}", b"again")
                subscription = await js.pull_subscribe_bind("c", f"S{number}")
                for message in await subscription.fetch(2, timeout=60):
                    await message.ack_sync(timeout=60)
                await subscription.unsubscribe()
            assert open_descriptors(process) < limit

    process = start_limited(start_process, store, limit)
    asyncio.run(fill(process))
    asyncio.run(use(process))
    # What was acknowledged is on disk, and nobody waits until thousands of files are closed in order.
    process.close()
    again = start_limited(start_process, store, limit, wait=False)
    wait_until_ready(again)

    async def look(process: ServerProcess) -> None:
        async with connected(process) as client:
            js = client.jetstream(timeout=60)
            for number in range(0, streams, 7):
                assert (await js.stream_info(f"S{number}")).state.messages == 2
                assert (await js.consumer_info(f"S{number}", "c")).ack_floor.stream_seq == 2
                await js.publish(f"s.{number}", b"once more")

    asyncio.run(look(again))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at limits in /proc")
def test_soft_limit_is_raised_to_the_hard_one(start_process, tmp_path):
    code = LIMITED.format(limit=0).replace("(0, 0)", "(300, 700)")
    command = [sys.executable, "-c", code, "-p", "-1", "-a", "127.0.0.1"]

    process = start_process(command=command)

    with open(f"/proc/{process.pid}/limits") as limits:
        (line,) = [line for line in limits if line.startswith("Max open files")]
    assert line.split()[3:5] == ["700", "700"]
