"""Commands under a governor, on both servers: the cron job of the Choria Streams announcement, as a machine."""

from __future__ import annotations

import asyncio
import json

from jetlake.choria.events import describe
from jetlake.client.api import open_api
from jetlake.governor import Governor, GovernorSettings, catalog
from tests.agents.machines.running import IDENTITY, manifest, running, write

SECOND_NS = 1_000_000_000


def puppet(name: str, schedule: str) -> str:
    """The seed's `*/30 * * * * choria governor run PUPPET --max-wait 20m 'puppet agent …'`."""
    return f"""
name: {name}
version: 1.0.0
initial_state: IDLE
transitions:
  - {{name: run, from: [IDLE], destination: RUNNING}}
  - {{name: finished, from: [RUNNING], destination: IDLE}}
  - {{name: failed, from: [RUNNING], destination: IDLE}}
watchers:
  - name: half_hourly
    type: schedule
    state_match: [IDLE]
    success_transition: run
    properties:
      duration: 1m
      skip_trigger_on_reenter: true
      schedules: ["{schedule}"]
  - name: puppet
    type: exec
    state_match: [RUNNING]
    success_transition: finished
    fail_transition: failed
    properties:
      command: ./puppet agent --onetime --no-daemonize --no-usecacheonfailure --no-splay
      timeout: 20m
      governor: PUPPET_{name}
      governor_timeout: 20m
"""


PUPPET = {
    # Counts how many run at once: each makes a folder, which only one can do.
    "puppet": 'mkdir ../inside || touch ../crowd; echo "$@" > arguments; sleep 0.3; rmdir ../inside; touch done'
}


async def test_the_cron_job_of_the_announcement_runs_one_at_a_time(url, name, tmp_path):
    folders = [write(tmp_path / f"node{number}", puppet(name, "@every 1s"), **PUPPET) for number in range(3)]
    events: list[dict] = []

    async def note(message):
        events.append(json.loads(message.data))

    async with open_api(url) as api:
        await catalog.add(api, GovernorSettings(name=f"PUPPET_{name}", capacity=1, expires_ns=1200 * SECOND_NS))
        await api.connection.subscribe(f"choria.lifecycle.event.governor.{name}", cb=note)
        await api.flush()
        async with running(*folders, url=url) as found:
            await found.until(lambda: all((folder / "done").exists() for folder in folders))
            await found.until(lambda: all(machine.state == "IDLE" for machine in found.host.machines))
            await found.until(lambda: [event["event_type"] for event in events].count("exit") >= 3)
        view = await catalog.view(api, f"PUPPET_{name}")

    assert not (tmp_path / "crowd").exists()
    assert (
        folders[0] / "arguments"
    ).read_text() == "agent --onetime --no-daemonize --no-usecacheonfailure --no-splay\n"
    assert view.leases == []
    enter = next(event for event in events if event["event_type"] == "enter")
    assert (enter["identity"], enter["component"], enter["governor"]) == (IDENTITY, name, f"PUPPET_{name}")
    assert describe(enter) == f"[governor] {IDENTITY}: obtained slot {enter['sequence']} on PUPPET_{name}"


async def test_the_schedule_of_the_announcement_is_every_half_hour(tmp_path):
    from jetlake.agents.machines.manifest import parse_manifest

    watcher = parse_manifest(puppet("puppet", "*/30 * * * *"), "machine.yaml").watchers[0]

    assert sorted(watcher.options.schedules[0].minutes) == [0, 30]


async def test_without_a_slot_the_command_does_not_run_and_the_machine_fails(url, name, tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            f"  - {{name: run, type: exec, interval: 0.5s, state_match: [A], fail_transition: go, "
            f'properties: {{command: touch ran, governor: \'FULL_{{{{ lookup "node.collective" "" }}}}_{name}\', '
            "governor_timeout: 5s}}"
        ),
    )

    async with open_api(url) as api:
        full = f"FULL_mcollective_{name}"
        await catalog.add(api, GovernorSettings(name=full, capacity=1, expires_ns=600 * SECOND_NS))
        async with Governor(api, full) as governor, governor.slot(holder="somebody else"):
            async with running(folder, url=url) as found:
                await found.until_state("B")
            leases = (await governor.view()).leases

    assert not (folder / "ran").exists()
    assert any("could not get a execution slot" in line for line in found.log)
    assert [lease.holder for lease in leases] == ["somebody else"]


async def test_an_agent_that_stops_gives_its_slot_back(url, name, tmp_path):
    folder = write(
        tmp_path / "m",
        manifest(
            f"  - {{name: hang, type: exec, interval: 0.5s, properties: {{command: ./hang, timeout: 1h, "
            f"governor: {name}}}}}"
        ),
        hang="touch started; exec sleep 600",
    )

    async with open_api(url) as api:
        await catalog.add(api, GovernorSettings(name=name, capacity=1, expires_ns=600 * SECOND_NS))
        async with running(folder, url=url) as found:
            await found.until((folder / "started").exists)
            held = (await catalog.view(api, name)).leases
        left = (await catalog.view(api, name)).leases
        await asyncio.sleep(0)

    assert [lease.holder for lease in held] == [f"Auto Agent  m#hang @ {IDENTITY}"]
    assert left == []
