"""A campaigner with no more rights than Choria gives its nodes."""

import asyncio

import pytest

from jetlake.client.access import Access
from jetlake.client.api import open_api
from jetlake.client.backoff import steady
from jetlake.governor import Governor, GovernorSettings, catalog
from tests.compatibility.server_process import start_server_process
from tests.governor.waiting import until

CONFIGURATION = """
jetstream {{ store_dir: "{store}" }}
authorization {{
  users: [
    {{ user: operator, password: secret }}
    {{ user: node, password: secret, permissions: {{
      publish: [
        "mcollective.governor.*", "choria.lifecycle.event.governor.>",
        "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.STREAM.MSG.DELETE.*"
      ]
      subscribe: ["_INBOX.>"]
    }} }}
  ]
}}
"""


@pytest.fixture
def server(server_kind, tmp_path):
    process = start_server_process(server_kind, tmp_path, config=CONFIGURATION.format(store=tmp_path / "store"))
    yield process
    process.stop()


async def test_a_node_of_choria_campaigns_releases_and_renews(server, fast_renewal):
    operator = Access(url=server.url, user="operator", password="secret")
    node = Access(url=server.url, user="node", password="secret")
    async with open_api(operator) as api, Governor(node, "G") as governor:
        await catalog.add(api, GovernorSettings(name="G", capacity=2, expires_ns=60_000_000_000))
        async with governor.slot(holder="a", renew=True) as lease, governor.slot(holder="b") as other:
            waiting = asyncio.create_task(governor.enter(holder="c", max_wait_s=60, back_off=steady(0.2)))
            assert await catalog.evict(api, "G", other.sequence) == "b"
            # Nobody may listen for vacancies, so that only polling lets it in.
            entered = await waiting
            await entered.release()
            await until(lambda: lease.renewals > 0, "the lease is not renewed")
            assert not lease.lost.is_set()
        view = await governor.view()

    assert view.leases == []
