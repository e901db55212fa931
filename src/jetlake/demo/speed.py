"""The native load generator against the server of the demo: each workload as long as its share of the time.

Invariant: what is measured is counted by the generator at the receiving end; a message that is missing fails the scene.
"""

from typing import Literal, NamedTuple

from jetlake.client import load
from jetlake.demo.scene import Scene, Script
from jetlake.demo.stage import Stage

__all__ = ["SCRIPTS"]

STREAM, SUBJECT = "SPEED", "speed"
PAYLOAD_BYTES = 128
MESSAGES_MAX = 20_000_000


class _Workload(NamedTuple):
    shown: str
    workload: Literal["pubsub", "request", "store"]
    # Sent first, to find out how many messages fill the time.
    trial: int
    subscribers: int = 1
    in_flight: int = 1


WORKLOADS = (
    _Workload("publish, 1 → 1", "pubsub", 100_000),
    _Workload("publish, 1 → 4", "pubsub", 50_000, subscribers=4),
    _Workload("request and reply, one at a time", "request", 1_000),
    _Workload("store, one at a time, each on disk", "store", 500),
    _Workload("store, 256 in flight, each on disk", "store", 10_000, in_flight=256),
)


def _speed(stage: Stage, scene: Scene) -> None:
    stage.create_stream(STREAM, f"{SUBJECT}.store")
    share_s = stage.scale.speed_s / len(WORKLOADS)
    for workload in WORKLOADS:
        stage.tell(workload.shown)
        trial = load.run(_plan(stage, workload, workload.trial))
        count = round(workload.trial / trial.seconds * share_s)
        plan = _plan(stage, workload, max(workload.trial, min(count, MESSAGES_MAX)))
        figures = load.run(plan)
        latency = "" if figures.latency_us is None else f"{figures.latency_us.p99 / 1000:.2f} ms"
        scene.rows.append((workload.shown, figures.delivered, latency, round(figures.deliver_rate)))
        receivers = workload.subscribers if workload.workload == "pubsub" else 1
        scene.check(
            f"messages delivered by {workload.shown!r}",
            expected=plan.messages * receivers,
            found=figures.delivered,
        )
    # Millions of equal messages are of no use to a user who inspects the store afterwards.
    stage.with_api(lambda api: api.request(f"STREAM.DELETE.{STREAM}"))


def _plan(stage: Stage, workload: _Workload, messages: int) -> load.LoadPlan:
    is_stored = workload.workload == "store"
    return load.LoadPlan(
        url=stage.url.removeprefix("nats://"),
        workload=workload.workload,
        subscribers=0 if is_stored else workload.subscribers,
        payload_bytes=PAYLOAD_BYTES,
        messages=messages,
        subject=f"{SUBJECT}.store" if is_stored else SUBJECT,
        in_flight=workload.in_flight,
    )


_PROFILE = "" if load.build_profile == "release" else f" This is a {load.build_profile} build, several times slower."

SCRIPTS = (
    Script(
        "speed",
        "Speed",
        f"The native load generator with {PAYLOAD_BYTES} bytes per message, on this machine together with the server; "
        f"`jetlake bench` measures any server like this.{_PROFILE}",
        ("workload", "messages", "99 % within", "per second"),
        _speed,
        bars=True,
    ),
)
