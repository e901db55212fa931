"""The host of machines: folders that come, change and go; restarts and kills; events; requests; many machines."""

import asyncio
import json
import os
import re
import shutil
import signal
import time
from contextlib import suppress

import pytest
from nats.errors import NoRespondersError

from jetlake.agents.machines.events import EventQueue
from jetlake.agents.machines.prometheus import TextFiles
from jetlake.agents.machines.requests import states_subject, transition_subject
from jetlake.choria.events import decode, describe
from jetlake.client.api import open_api
from jetlake.client.schemas import problems, read
from tests.agents.conftest import wait_until
from tests.agents.machines.running import IDENTITY, manifest, read_json, running, write

TICK = (
    "  - {name: tick, type: exec, interval: 0.5s, state_match: [A], success_transition: go, "
    "properties: {command: 'true'}}"
)
QUIET = "  - {name: quiet, type: timer, fail_transition: back, properties: {timer: 10h}}"


async def test_folders_that_come_change_and_go_are_noticed(tmp_path):
    store = tmp_path / "store"
    write(store / "one", manifest(QUIET, name="one"))
    for skipped in ("tmp", ".hidden", "old-temp"):
        write(store / skipped, manifest(QUIET, name="skipped"))
    (store / "file").write_text("x")

    async with running(store=store) as found:
        await found.until(lambda: [machine.name for machine in found.host.machines] == ["one"])
        write(store / "two", manifest(QUIET, name="two"))
        await found.until(lambda: len(found.host.machines) == 2)
        first = found.host.find(name="one")[0]
        write(store / "one", manifest(TICK, name="one"))
        await found.until(lambda: any(m.name == "one" and m.state == "B" for m in found.host.machines))
        assert found.host.find(name="one")[0] is not first
        shutil.rmtree(store / "two")
        await found.until(lambda: [machine.name for machine in found.host.machines] == ["one"])
        assert found.host.describe() == [{"name": "one", "version": "1.0.0", "state": "B"}]


async def test_a_wrong_manifest_is_reported_once_and_the_others_run(tmp_path):
    store = tmp_path / "store"
    write(store / "wrong", "name: wrong\n")
    write(store / "right", manifest(TICK, name="right"))
    (store / "empty").mkdir()

    async with running(store=store) as found:
        await found.until_state("B")
        await asyncio.sleep(0.6)
        assert len([line for line in found.log if "version is required" in line]) == 1
        write(store / "wrong", manifest(TICK, name="wrong"))
        await found.until(lambda: len(found.host.machines) == 2)


async def test_a_machine_resumes_where_it_was_and_begins_anew_in_a_new_version(tmp_path):
    folder = write(tmp_path / "m", manifest(TICK))
    async with running(folder) as found:
        await found.until_state("B")
    assert read_json(folder / "machine_state.json")["state"] == "B"

    async with running(folder) as found:
        assert found.machine.state == "B"
        assert any("resumes in state B" in line for line in found.log) or found.machine.state == "B"
    async with running(folder, resume=False) as found:
        assert found.machine.state == "A"
        await found.until_state("B")
    write(folder, manifest(QUIET).replace("1.0.0", "2.0.0"))
    async with running(folder) as found:
        assert found.machine.state == "A"


async def test_files_that_a_crash_has_torn_are_ignored(tmp_path):
    folder = write(tmp_path / "m", manifest(QUIET))
    (folder / "machine_state.json").write_bytes(b'{"name": "m", "ver')
    (folder / "machine_data.json").write_bytes(b"[1")

    async with running(folder) as found:
        assert found.machine.state == "A"
        assert found.machine.data == {}
        await found.machine.put_data({"a": 1})
    assert read_json(folder / "machine_data.json") == {"a": 1}
    assert len([line for line in found.log if line.startswith("warning")]) == 2


async def test_data_that_several_watchers_set_at_once_is_all_kept(tmp_path):
    folder = write(tmp_path / "m", manifest(QUIET))

    async with running(folder) as found:
        await asyncio.gather(*(found.machine.put_data({f"k{number}": number}) for number in range(20)))
        await asyncio.gather(*(found.machine.delete_data(f"k{number}") for number in range(5)))

    assert read_json(folder / "machine_data.json") == {f"k{number}": number for number in range(5, 20)}


async def test_fast_transitions_are_slowed_down(tmp_path):
    folder = write(tmp_path / "m", manifest(QUIET))

    async with running(folder) as found:
        machine = found.machine
        for _ in range(12):
            await machine.fire("go" if machine.state == "A" else "back")
        began_s = time.monotonic()
        machine._fast_transitions = 30
        await machine.fire("go" if machine.state == "A" else "back")
        waited_s = time.monotonic() - began_s

    assert waited_s >= 2.5
    assert any("slowing down" in line for line in found.log)


async def test_machines_hear_of_each_other(tmp_path):
    leader = write(tmp_path / "leader", manifest(QUIET, name="leader"))
    follower = write(
        tmp_path / "follower",
        manifest(
            "  - {name: only, type: exec, interval: 0.5s, state_match: [B], success_transition: done, "
            "foreign_state_required: [{machine_name: leader, state: A}], properties: {command: 'true'}}",
            name="follower",
            transitions="[{name: follow, from: [A], destination: B, "
            "subscribe: [{machine_name: leader, event: go}]}, {name: done, from: [B], destination: C}]",
        ),
    )

    async with running(follower, leader) as found:
        one, other = found.host.find(name="follower")[0], found.host.find(name="leader")[0]
        await other.fire("go")
        await found.until(lambda: one.state == "B")
        await found.until(lambda: one._watchers[0].state_fields()["previous_outcome"] == "skipped")
        assert one.state == "B"
        await other.fire("back")
        await found.until(lambda: one.state == "C")


# With a server


async def test_transitions_and_watcher_states_are_published_as_the_original_does(url, name, tmp_path):
    folder = write(tmp_path / "m", manifest(TICK, name=name))
    received = []

    async def note(message):
        if name in message.data.decode():
            received.append((message.subject, json.loads(message.data)))

    async with open_api(url) as api:
        await api.connection.subscribe("choria.machine.>", cb=note)
        await api.flush()
        async with running(folder, url=url) as found:
            await found.until(lambda: len(received) >= 2)

    by_subject = dict(received)
    event = by_subject["choria.machine.transition"]
    assert (event["specversion"], event["source"], event["subject"]) == ("1.0", "io.choria.machine", IDENTITY)
    assert event["type"] == event["data"]["protocol"] == "io.choria.machine.v1.transition"
    assert list(problems(event["data"], read("choria.machine.v1.transition"))) == []
    assert describe(event["data"]) == f"{IDENTITY} {name} transitioned via event go: A => B"
    state = by_subject["choria.machine.watcher.exec.state"]["data"]
    assert list(problems(state, read("choria.machine.watcher.exec.v1.state"))) == []
    # However long the command took.
    assert re.match(rf"{re.escape(IDENTITY)} {name}#tick command: true, previous: success ran: \d+\.", describe(state))


async def test_events_are_raw_if_that_is_asked_for_and_wait_for_a_server(start_server, name, tmp_path):
    server = start_server(["-js", "-sd", str(tmp_path / "store")])
    port = server.port
    server.stop()
    folder = write(tmp_path / "m", manifest(TICK, name=name))
    received = []

    async def note(message):
        received.append(message.data)

    raw = {"plugin.choria.legacy_lifecycle_format": "1"}
    async with running(folder, url=server.url, settings=raw) as found:
        # Without a server the machine moves all the same.
        await found.until_state("B")
        server = start_server(["-js", "-sd", str(tmp_path / "store")], port=port)
        async with open_api(server.url, reconnect=True) as api:
            await api.connection.subscribe("choria.machine.transition", cb=note)
            await api.flush()
            await found.machine.fire("back")
            await found.until(lambda: any(b'"back"' in data for data in received))

    back = next(data for data in received if b'"back"' in data)
    assert json.loads(back)["protocol"] == "io.choria.machine.v1.transition"
    assert decode(back)["to_state"] == "A"


async def test_states_and_transitions_can_be_asked_for(url, name, tmp_path):
    folder = write(tmp_path / "m", manifest(QUIET, name=name))
    settings = {"identity": f"{name}.example.net", "collectives": name}

    async with open_api(url) as api, running(folder, url=url, settings=settings) as found:
        await found.until(lambda: any("connected" in line for line in found.log))

        async def ask(subject, **body):
            for _ in range(1200):
                # Until the agent has subscribed nobody answers.
                with suppress(NoRespondersError):
                    reply = await api.connection.request(subject, json.dumps(body).encode(), timeout=60)
                    return json.loads(reply.data)
                await asyncio.sleep(0.05)
            raise AssertionError("nobody answers")

        everywhere, here = states_subject(name), states_subject(name, settings["identity"])
        (record,) = (await ask(everywhere))["machines"]
        assert record == (await ask(here, name=name))["machines"][0]
        assert (await ask(here, name="other"))["machines"] == []
        move = transition_subject(name, settings["identity"])
        moved = await ask(move, name=name, transition="go")
        again = await ask(move, name=name, transition="go")
        unknown = await ask(move, name="other", transition="go")
        nothing = await ask(move, transition="go")
        nonsense = await api.connection.request(move, b"[1", timeout=60)

    assert (record["name"], record["version"], record["state"], record["path"]) == (name, "1.0.0", "A", str(folder))
    assert record["available_transitions"] == ["go"]
    assert record["start_time"] > 0
    assert moved["machines"][0]["state"] == "B"
    assert again == {"identity": settings["identity"], "error": "transition go is not valid while in B state"}
    assert "could not find machine matching criteria name='other'" in unknown["error"]
    assert "names no machine" in nothing["error"]
    assert "error" in json.loads(nonsense.data)


def test_an_agent_that_is_killed_resumes_where_it_was(run_agent, name, tmp_path):
    folder = write(
        tmp_path / "store" / "m",
        manifest(
            "  - {name: first, type: exec, interval: 0.5s, state_match: [A], success_transition: go, "
            "properties: {command: ./first, parse_as_data: true}}\n"
            "  - {name: second, type: exec, state_match: [B], success_transition: back, "
            "properties: {command: ./second, timeout: 10m}}",
            name=name,
        ),
        first="echo '{\"count\": 1}'; touch first.ran",
        second="echo $$ > pid; touch second.ran; test -e finish || exec sleep 600",
    )
    configuration = f"identity: {name}\nlifecycle: {{enabled: false}}\nmachines: {{store: {tmp_path / 'store'}}}\n"

    agent = run_agent(configuration, "node.yaml")
    wait_until((folder / "second.ran").exists, agent.log)
    agent.process.send_signal(signal.SIGKILL)
    agent.process.wait()
    os.kill(int((folder / "pid").read_text()), signal.SIGKILL)
    for ran in ("first.ran", "second.ran"):
        (folder / ran).unlink()
    (folder / "finish").touch()
    agent = run_agent(configuration, "node.yaml")
    wait_until(lambda: f"{name}: back: B => A" in agent.log(), agent.log)

    assert f"{name}: version 1.0.0 from {folder} resumes in state B" in agent.log()
    assert (folder / "second.ran").exists()
    assert read_json(folder / "machine_data.json") == {"count": 1}
    assert agent.stop() == 0


async def test_two_hundred_machines_run_in_one_process(tmp_path):
    store = tmp_path / "store"
    for number in range(200):
        write(
            store / f"m{number:03}",
            manifest(
                "  - {name: t, type: timer, state_match: [A], fail_transition: go, properties: {timer: 1s}}",
                name=f"m{number}",
            ),
        )

    async with running(store=store) as found:
        await found.until(lambda: [machine.state for machine in found.host.machines] == ["B"] * 200)


async def test_states_are_announced_in_their_interval(tmp_path, monkeypatch):
    monkeypatch.setattr("jetlake.agents.machines.manifest.ANNOUNCE_S_MIN", 0.1)
    folder = write(
        tmp_path / "m",
        manifest(
            "  - {name: key, type: kv, announce_interval: 200ms, properties: {bucket: CFG, key: a}}\n"
            "  - {name: silent, type: kv, properties: {bucket: CFG, key: a}}"
        ),
    )

    async with running(folder) as found:
        await found.until(lambda: len(found.events("kv")) >= 3)
        events = found.events("kv")

    assert {event["name"] for event in events} == {"key"}
    fields = {"state": "unknown", "bucket": "CFG", "key": "a", "mode": "watch"}
    assert fields.items() <= events[0].items()
    assert describe(events[0]) == f"{IDENTITY} key-value m#key watching bucket: CFG key: a state: unknown"


async def test_events_that_wait_too_long_are_dropped_oldest_first(monkeypatch):
    monkeypatch.setattr("jetlake.agents.machines.events.EVENTS_MAX", 3)
    queue = EventQueue()

    for number in range(5):
        queue.tell({"number": number})

    assert [body["number"] for body in queue._waiting] == [2, 3, 4]
    assert queue.dropped == 2


def test_a_machine_that_is_gone_leaves_the_files_of_prometheus(tmp_path):
    files = TextFiles(str(tmp_path), lambda _level, text: pytest.fail(text))
    files.set_check("gone", 2)
    files.set_check("here", 0)
    files.set_metrics("gone", "load", {"a": 'quote"d'}, {"one": 1.0})

    files.remove("gone")

    checks = (tmp_path / "choria_machine_nagios_watcher_status.prom").read_text()
    assert 'name="here"' in checks
    assert "gone" not in checks
    assert "load" not in (tmp_path / "choria_machine_metrics_watcher_status.prom").read_text()
