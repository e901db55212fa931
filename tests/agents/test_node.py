"""The agent of a node, on both servers: lifecycle events, a server that comes late or goes, parts that fail."""

import asyncio
import json

import nats
import pytest

from jetlake.agents.lifecycle import Lifecycle
from jetlake.agents.node import LocalNode, NodeAgent
from jetlake.agents.options import read_node_options
from jetlake.choria.events import decode
from jetlake.choria.settings import ChoriaSettings
from jetlake.client.access import Access
from jetlake.client.schemas import problems, read
from jetlake.errors import ClientError
from jetlake.shared.cancellation import cancel
from tests.adapters.fleet import Stored
from tests.agents.conftest import wait_until


def events_of(stored, stream, identity):
    last = stored.streams.state(stream).last_sequence
    messages = [stored.message(stream, sequence) for sequence in range(1, last + 1)]
    return [message for message in messages if decode(message["data"])["identity"] == identity]


def test_a_node_tells_when_it_starts_is_alive_and_stops(stored, run_agent, name):
    stored.create(name, "choria.lifecycle.>")
    agent = run_agent(f"identity: {name}\nlifecycle: {{alive_interval: 0.3s}}\n", "node.yaml")

    wait_until(lambda: len(events_of(stored, name, name)) >= 3, agent.log)
    assert agent.stop() == 0
    # The server has it, and stores it in its own time.
    wait_until(lambda: ".shutdown." in events_of(stored, name, name)[-1]["subject"], agent.log)
    events = events_of(stored, name, name)
    stored.streams.ask(f"STREAM.DELETE.{name}")

    kinds = [event["subject"].split(".")[3] for event in events]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("startup", {"alive"}, "shutdown")
    assert len({json.loads(event["data"])["id"] for event in events}) == len(events)
    for event, kind in zip(events, kinds, strict=True):
        cloud_event = json.loads(event["data"])
        assert cloud_event["specversion"] == "1.0"
        assert list(problems(cloud_event["data"], read(f"choria.lifecycle.v1.{kind}"))) == []


def test_the_old_format_is_sent_if_asked_for(stored, run_agent, name):
    stored.create(name, "choria.lifecycle.>")
    agent = run_agent(f"identity = {name}\nplugin.choria.legacy_lifecycle_format = 1\n")

    wait_until(lambda: len(events_of(stored, name, name)) >= 1, agent.log)
    event = json.loads(events_of(stored, name, name)[0]["data"])
    stored.streams.ask(f"STREAM.DELETE.{name}")

    assert event["protocol"] == "io.choria.lifecycle.v1.startup"


def test_an_agent_waits_for_its_server_and_comes_back_to_it(start_server, run_agent, name, tmp_path):
    first = start_server(["-js", "-sd", str(tmp_path / "store")])
    port = first.port
    first.stop()
    (tmp_path / "data").write_text("{}")
    agent = run_agent(
        f"identity: {name}\nserver: 127.0.0.1:{port}\nregistration:\n  interval: 1s\n  splay: false\n"
        f"  file_content: {{data: {tmp_path / 'data'}, target: {name}.discovery}}\n",
        "node.yaml",
        at="",
    )
    wait_until(lambda: "cannot connect" in agent.log(), agent.log)

    for _ in range(2):
        server = start_server(["-js", "-sd", str(tmp_path / "store")], port=port)
        stored = Stored(server.url)
        if name not in stored.streams.names():
            stored.create(name, f"{name}.discovery")
        before = stored.count(name)
        wait_until(lambda: stored.count(name) > before, agent.log)  # noqa: B023
        stored.close()
        server.stop()
    assert agent.stop() == 0


async def test_a_part_that_fails_is_started_again_and_the_others_go_on(url):
    runs: list[str] = []
    lines: list[str] = []
    stopping = asyncio.Event()

    class Failing:
        name = "failing"

        async def run(self, _node):
            runs.append("failing")
            if runs.count("failing") == 2:
                stopping.set()
            raise RuntimeError("a bug")

        async def finish(self, _node):
            runs.append("finish")

    class Steady:
        name = "steady"

        async def run(self, _node):
            runs.append("steady")
            await asyncio.Event().wait()

        async def finish(self, node):
            await node.publish("x", b"last words")
            runs.append("finish")

    options = read_node_options(ChoriaSettings({"identity": "n"}))
    agent = NodeAgent(
        options, Access(url=url), [Failing(), Steady()], lambda level, text: lines.append(f"{level} {text}")
    )

    await asyncio.wait_for(agent.run(stopping), 30)

    assert runs.count("failing") == 2
    assert runs.count("steady") == 1
    assert runs.count("finish") == 2
    assert any("failing: a bug, please report it: RuntimeError: a bug" in line for line in lines)


async def test_a_node_that_is_stopped_while_it_tells_of_its_start_tells_of_its_end(url, name):
    options = read_node_options(ChoriaSettings({"identity": name, "lifecycle.component": name}))
    has_sent = asyncio.Event()

    class Slow(LocalNode):
        """A node whose server takes the first event and does not say so."""

        async def publish(self, subject, payload):
            await super().publish(subject, payload)
            if not has_sent.is_set():
                has_sent.set()
                await asyncio.Event().wait()

    lifecycle = Lifecycle(options, version="1")
    async with await nats.connect(url) as connection:
        events = await connection.subscribe(f"choria.lifecycle.event.*.{name}")
        node = Slow(options, connection, lambda *_: None)
        telling = asyncio.create_task(lifecycle.run(node))
        await asyncio.wait_for(has_sent.wait(), 60)
        await cancel(telling)
        await lifecycle.finish(node)

        kinds = [(await events.next_msg(60)).subject.split(".")[3] for _ in range(2)]
    assert kinds == ["startup", "shutdown"]


async def test_a_start_that_could_not_be_told_is_told_again(url, name):
    options = read_node_options(ChoriaSettings({"identity": name, "lifecycle.component": name}))
    tries = []

    class Refusing(LocalNode):
        async def publish(self, subject, payload):
            tries.append(subject)
            if len(tries) == 1:
                raise ClientError("the server was gone")
            await super().publish(subject, payload)

    lifecycle = Lifecycle(options, version="1")
    async with await nats.connect(url) as connection:
        events = await connection.subscribe(f"choria.lifecycle.event.*.{name}")
        node = Refusing(options, connection, lambda *_: None)
        with pytest.raises(ClientError):
            await lifecycle.run(node)
        telling = asyncio.create_task(lifecycle.run(node))

        assert (await events.next_msg(60)).subject.split(".")[3] == "startup"
        await cancel(telling)


def test_a_wrong_configuration_ends_with_one_line(run_agent):
    agent = run_agent("registration = nonsense\n")

    assert agent.process.wait(60) == 1
    assert agent.log().count("\n") == 1
    assert "'nonsense' is unknown" in agent.log()
