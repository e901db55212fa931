"""A simulated fleet of nodes: events straight into streams, registrations through an adapter.

The simulator keeps an account of what it decided. Invariant: every stream has as many messages as the account says.
"""

import time
from collections import Counter
from typing import TYPE_CHECKING

from jetlake.adapters.configuration import read_hash
from jetlake.adapters.host import AdapterHost
from jetlake.choria.streams import StreamRetention, broker_streams
from jetlake.client.api import Api
from jetlake.client.raw_connection import RawConnection
from jetlake.client.raw_settings import settings_of
from jetlake.demo.scene import Scene, Script
from jetlake.demo.stage import POLL_S, SETTLE_S_MAX, Stage
from jetlake.errors import ClientError
from jetlake.simulation.fleet import Fleet, FleetOptions, SimulatedEvent
from jetlake.simulation.publisher import publish

if TYPE_CHECKING:
    from jetlake.adapters.adapter import Adapter

__all__ = ["SCRIPTS"]

SIMULATED_S = 1_800
"""Half an hour of the fleet's life: long enough for every node to register several times."""

SEED = 7
BROKEN = 3
"""Registrations that are not envelopes; the adapter sets them aside."""

INGEST, DOCUMENTS, BAD = "choria.discovery", "choria.node_metadata", "choria.bad_metadata"
REGISTRATION, BAD_STREAM = "CHORIA_REGISTRATION", "CHORIA_BAD_REGISTRATION"
EVENTS, MACHINE = "CHORIA_EVENTS", "CHORIA_MACHINE"

ADAPTER = {
    "type": "jetstream",
    "ingest": {"topic": INGEST, "protocol": "request", "workers": 2},
    "stream": {"topic": DOCUMENTS, "workers": 2},
    "dead_letters": BAD,
}

RETENTION = StreamRetention(advisory_retention=0, leader_election_ttl=0, executor_retention=0)
"""Of the streams that a broker makes, only those of events."""

ABOUT = {
    EVENTS: "lifecycle and governor events",
    MACHINE: "transitions of machines and results of checks",
    REGISTRATION: "registrations, made documents by the adapter",
    BAD_STREAM: "registrations that the adapter could not read",
}


def _fleet(stage: Stage, scene: Scene) -> None:
    stage.with_api(_create_streams)
    options = FleetOptions(
        nodes=stage.scale.count(4, 20, 2_000),
        seconds=SIMULATED_S,
        seed=SEED,
        # What goes faster than time is history, so that nothing lies in the future.
        start_s=int(time.time()) - SIMULATED_S,
        target=INGEST,
    )
    fleet = Fleet(options)
    told = 0

    def advance(count: int) -> None:
        nonlocal told
        told += count
        stage.tell(f"{told:,} events of {options.nodes} nodes")

    host = AdapterHost(read_hash({"adapters": {"node_data": ADAPTER}}), stage.access, lambda _level, _text: None)
    settings = settings_of(stage.access, name="jetlake demo fleet")
    host.start()
    try:
        _wait_until_it_listens(host.adapters[0])
        with RawConnection(settings) as connection:
            publish(fleet.events(), connection, speed=SIMULATED_S / stage.scale.fleet_s, progress=advance)
            broken = [SimulatedEvent(0, INGEST, b"this is not an envelope %d" % number) for number in range(BROKEN)]
            publish(broken, connection, speed=0)
        # Stopped only when it has everything: what is on its way when an adapter stops is dropped.
        expected = _expected(fleet.truth.counts) | {BAD_STREAM: BROKEN}
        found = {stream: stage.count_messages(stream, count) for stream, count in expected.items()}
    finally:
        lost = host.stop()
    for stream, count in expected.items():
        scene.rows.append((stream, ABOUT[stream], found[stream]))
        scene.check(f"messages in {stream} as simulated", expected=count, found=found[stream])
    scene.check("the adapter delivered everything it received", expected=0, found=lost)
    stage.truths["fleet"] = fleet.truth.as_json()


async def _create_streams(api: Api) -> None:
    plain = ((REGISTRATION, DOCUMENTS), (BAD_STREAM, BAD))
    configs = [*broker_streams(RETENTION), *({"name": name, "subjects": [subject]} for name, subject in plain)]
    for config in configs:
        await api.request(f"STREAM.CREATE.{config['name']}", config)


def _wait_until_it_listens(adapter: "Adapter") -> None:
    deadline_s = time.monotonic() + SETTLE_S_MAX
    while adapter.total("connections", "input") < adapter.options.ingest.workers:
        if time.monotonic() > deadline_s:
            raise ClientError("the adapter did not connect; see demo.log in the folder of the demo")
        time.sleep(POLL_S)


def _expected(counts: Counter[str]) -> dict[str, int]:
    """Return how many messages each stream must have, by what the simulator says it did."""
    machine = sum(count for kind, count in counts.items() if kind == "transition" or kind.startswith("watcher."))
    return {
        EVENTS: counts.total() - machine - counts["registration"],
        MACHINE: machine,
        REGISTRATION: counts["registration"],
    }


SCRIPTS = (
    Script(
        "fleet",
        "A fleet of nodes",
        "Half an hour of a simulated fleet, faster than time: nodes register, start, stop, crash, run machines and "
        "checks, and wait for a governor. A data adapter turns their registrations into documents of a stream.",
        ("stream", "what it has", "messages"),
        _fleet,
    ),
)
