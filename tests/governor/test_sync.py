"""The governor in programs without asyncio, and what SIGTERM does to both kinds of program."""

import asyncio
import signal
import subprocess
import sys
import threading

import pytest

from jetlake.errors import ClientError
from jetlake.governor import NoSlotError, catalog
from jetlake.governor.sync import Governor

PROGRAM_S_MAX = 60

SYNC_PROGRAM = """
import sys, time
from jetlake.governor.sync import Governor

with Governor(sys.argv[1], sys.argv[2]) as governor, governor.slot(holder="program") as lease:
    print(lease.sequence, flush=True)
    time.sleep(60)
"""

ASYNC_PROGRAM = """
import asyncio, sys
from jetlake.governor import Governor

async def main():
    async with Governor(sys.argv[1], sys.argv[2]) as governor:
        async with governor.slot(holder="program") as lease:
            print(lease.sequence, flush=True)
            await asyncio.sleep(60)

asyncio.run(main())
"""


def start(program, *words):
    return subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)


async def test_a_block_holds_a_slot(api, make_governor, url):
    settings = await make_governor(capacity=1)

    def work():
        with Governor(url, settings.name) as governor:
            with governor.slot(holder="thread", max_wait_s=5) as lease:
                inside = [each.id for each in governor.view().leases]
                with pytest.raises(NoSlotError), governor.slot(max_wait_s=0):
                    raise AssertionError("two are inside")
            return inside == [lease.sequence], governor.view().leases

    was_inside, left = await asyncio.to_thread(work)

    assert was_inside
    assert left == []


async def test_an_exception_gives_the_slot_back(api, make_governor, url):
    settings = await make_governor()

    def work():
        with Governor(url, settings.name) as governor, governor.slot():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(work)

    assert await catalog.leases(api, settings.name) == []


async def test_a_lease_is_renewed_while_the_program_computes(api, make_governor, fast_renewal, url):
    settings = await make_governor()
    renewed = threading.Event()

    def work():
        with Governor(url, settings.name) as governor, governor.slot(renew=True) as lease:
            # Nothing of this thread lets an event loop run.
            for _ in range(600):
                if lease.renewals >= 2:
                    renewed.set()
                    return
                threading.Event().wait(0.05)

    await asyncio.to_thread(work)

    assert renewed.is_set()


def test_it_is_open_only_in_its_block(url):
    governor = Governor(url, "G")

    with pytest.raises(ClientError, match="is not open: use it in a `with` statement"):
        governor.view()


@pytest.mark.parametrize("program", [SYNC_PROGRAM, ASYNC_PROGRAM], ids=["sync", "async"])
async def test_sigterm_gives_the_slot_back(api, make_governor, url, program):
    settings = await make_governor()
    process = start(program, url, settings.name)
    try:
        assert process.stdout is not None
        assert (await asyncio.to_thread(process.stdout.readline)).strip().isdecimal()
        inside = await catalog.leases(api, settings.name)
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, PROGRAM_S_MAX)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

    assert [lease.holder for lease in inside] == ["program"]
    assert code == 128 + signal.SIGTERM
    assert await catalog.leases(api, settings.name) == []


async def test_a_killed_program_is_replaced_once_its_lease_expires(api, make_governor, url):
    # Long enough that the next one sees its own lease before that expires, too.
    settings = await make_governor(expires_s=5.0)
    process = start(SYNC_PROGRAM, url, settings.name)
    try:
        assert process.stdout is not None
        await asyncio.to_thread(process.stdout.readline)
        process.kill()
        await asyncio.to_thread(process.wait, PROGRAM_S_MAX)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()

    def replace():
        with Governor(url, settings.name) as governor, governor.slot(holder="next", max_wait_s=60):
            return [each.holder for each in governor.view().leases]

    assert await asyncio.to_thread(replace) == ["next"]
