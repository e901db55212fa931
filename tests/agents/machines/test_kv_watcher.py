"""The kv watcher, on both servers: a change of a key moves a machine, and the value reaches its commands."""

import asyncio
import time

import pytest

from jetlake import kv
from tests.agents.machines.running import manifest, read_json, running, write


def machine(bucket, mode, *, key="auth.username", more="", interval="0.5s"):
    return manifest(
        f"  - {{name: wanted, type: kv, interval: {interval}, state_match: [A], success_transition: go, "
        f"fail_transition: fail, properties: {{bucket: {bucket}, key: '{key}', mode: {mode}{more}}}}}\n"
        "  - name: use\n    type: exec\n    state_match: [B]\n    success_transition: back\n    properties:\n"
        "      command: ./use.sh\n"
        f'      environment: [\'WANTED={{{{ lookup "data.{bucket}_auth\\.username" "nobody" }}}}\']\n',
        transitions="[{name: go, from: [A], destination: B}, {name: back, from: [B], destination: A}, "
        "{name: fail, from: [A], destination: F}, {name: retry, from: [F], destination: A}]",
    )


USE = {"use.sh": 'cp $WATCHER_DATA data; echo "$WANTED" >> seen'}


def seen(folder):
    return (folder / "seen").read_text().split() if (folder / "seen").exists() else []


@pytest.mark.parametrize("mode", ["watch", "poll"])
async def test_a_change_of_a_key_runs_a_command_with_the_new_value_in_its_environment(url, name, tmp_path, mode):
    folder = write(tmp_path / "m", machine(name, mode), **USE)

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        await bucket.put("auth.username", "bob")
        async with running(folder, url=url) as found:
            await found.until(lambda: "bob" in seen(folder))
            await found.until_state("A")
            await bucket.put("auth.username", "alice")
            await found.until(lambda: "alice" in seen(folder))
            await found.until_state("A")
            await bucket.delete("auth.username")
            await found.until(lambda: "nobody" in seen(folder))

    assert seen(folder) == ["bob", "alice", "nobody"]
    assert read_json(folder / "data") == {}


async def test_a_value_that_has_not_changed_does_not_fire_after_a_restart(url, name, tmp_path):
    folder = write(tmp_path / "m", machine(name, "watch"), **USE)

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        await bucket.put("auth.username", '{"first": "bob"}')
        async with running(folder, url=url) as found:
            await found.until(lambda: len(seen(folder)) > 0)
            await found.until_state("A")
        assert read_json(folder / "machine_data.json") == {f"{name}_auth.username": {"first": "bob"}}
        (folder / "seen").unlink()
        async with running(folder, url=url) as found:
            watcher = found.machine._watchers[0]
            await found.until(lambda: watcher._is_live and watcher._state == "unchanged")
            assert seen(folder) == []
            await bucket.put("auth.username", "carol")
            await found.until(lambda: seen(folder) == ["carol"])


@pytest.mark.parametrize("version", ["1.0.0", "1.0.1"])
@pytest.mark.parametrize("last", ["alice", None])
async def test_a_change_fires_after_a_restart_if_the_agent_stopped_before_the_transition(
    url, name, tmp_path, last, version
):
    folder = write(tmp_path / "m", machine(name, "watch"), **USE)

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        await bucket.put("auth.username", "bob")
        async with running(folder, url=url) as found:
            await found.until(lambda: seen(folder) == ["bob"])
            await found.until_state("A")
            slow_down(found.machine)
            await (bucket.put("auth.username", last) if last else bucket.delete("auth.username"))
            await found.until(lambda: found.machine.data.get(f"{name}_auth.username") == last)
        write(folder, machine(name, "watch").replace("1.0.0", version), **USE)
        (folder / "seen").unlink()
        async with running(folder, url=url) as found:
            await found.until(lambda: seen(folder) == [last or "nobody"])
            await found.until_state("A")

    assert "unfired" not in read_json(folder / "machine_state.json")


async def test_a_change_fires_when_its_state_is_back_if_another_transition_was_faster(url, name, tmp_path):
    folder = write(tmp_path / "m", machine(name, "watch"), **USE)

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        async with running(folder, url=url) as found:
            await found.until(lambda: found.machine._watchers[0]._is_live)
            slow_down(found.machine)
            other = asyncio.create_task(found.machine.fire("fail"))
            await asyncio.sleep(0)
            await bucket.put("auth.username", "bob")
            await found.until(lambda: f"{name}_auth.username" in found.machine.data or found.machine.state == "F")
            await other
            found.machine._last_transition_s = float("-inf")
            await found.machine.fire("retry")
            await found.until(lambda: seen(folder) == ["bob"])


def slow_down(machine):
    """Have the next transition wait for seconds, as after many others."""
    machine._fast_transitions, machine._last_transition_s = 1_000, time.monotonic()


async def test_a_newer_revision_of_the_same_value_fires_if_that_is_wanted(url, name, tmp_path):
    folder = write(tmp_path / "m", machine(name, "watch", more=", on_matching_update: true"), **USE)

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        await bucket.put("auth.username", "bob")
        async with running(folder, url=url) as found:
            await found.until(lambda: seen(folder) == ["bob"])
            await found.until_state("A")
            await found.until(lambda: found.machine._watchers[0]._is_live)
            await bucket.put("auth.username", "bob")
            await found.until(lambda: seen(folder) == ["bob", "bob"])


async def test_a_bucket_that_is_missing_fails_and_is_found_when_it_is_there(url, name, tmp_path):
    folder = write(tmp_path / "m", machine(name, "watch"), **USE)

    async with kv.connect(url) as buckets, running(folder, url=url) as found:
        await found.until_state("F")
        bucket = await buckets.create(name, str)
        await bucket.put("auth.username", "bob")
        await found.machine.fire("retry")
        await found.until(lambda: seen(folder) == ["bob"])
    assert any("does not exist" in line for line in found.log)


async def test_the_key_may_depend_on_facts_and_a_part_of_the_value_may_be_chosen(url, name, tmp_path):
    (tmp_path / "facts.yaml").write_text("region: eu\n")
    text = machine(
        name,
        "watch",
        key='users.{{ lookup "facts.region" "" }}',
        more=", store_key: auth.username, query: first.name",
    )
    folder = write(tmp_path / "m", text, **USE)

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        await bucket.put("users.eu", '{"first": {"name": "bob"}}')
        async with running(folder, url=url, settings={"plugin.yaml": str(tmp_path / "facts.yaml")}) as found:
            await found.until(lambda: seen(folder) == ["bob"])


async def test_a_watch_survives_a_restart_of_the_server(start_server, name, tmp_path):
    folder = write(tmp_path / "m", machine(name, "watch"), **USE)
    store = ["-js", "-sd", str(tmp_path / "store")]
    server = start_server(store)

    async with running(folder, url=server.url) as found:
        async with kv.connect(server.url) as buckets:
            bucket = await buckets.create(name, str)
            await bucket.put("auth.username", "bob")
            await found.until(lambda: bool(seen(folder)) or found.machine.state == "F")
            if found.machine.state == "F":
                await found.machine.fire("retry")
            await found.until(lambda: seen(folder) == ["bob"])
        port = server.port
        await asyncio.to_thread(server.stop)
        server = start_server(store, port=port)
        async with kv.connect(server.url) as buckets:
            await (await buckets.open(name, str)).put("auth.username", "alice")
            await found.until(lambda: found.machine.state in "AF")
            if found.machine.state == "F":
                await found.machine.fire("retry")
            await found.until(lambda: "alice" in seen(folder))


async def test_machines_that_wait_for_one_key_share_a_watch(url, name, tmp_path):
    folders = [write(tmp_path / f"m{number}", machine(name, "watch"), **USE) for number in range(5)]

    async with kv.connect(url) as buckets:
        bucket = await buckets.create(name, str)
        async with running(*folders, url=url) as found:
            watchers = [each._watchers[0] for each in found.host.machines]
            await found.until(lambda: all(watcher._is_live for watcher in watchers))
            assert (await bucket.status()).stream["state"]["consumer_count"] == 1
            await bucket.put("auth.username", "bob")
            await found.until(lambda: all(seen(folder) == ["bob"] for folder in folders))
            keys = found.host._services.keys
            assert len(keys) == 1
        assert len(keys) == 0
