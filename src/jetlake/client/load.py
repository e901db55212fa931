"""The native load generator: one plan in, one set of figures out.

It is written over the engine's own wire code, so that the generator is not what limits a measurement, and it speaks
only the NATS protocol, so that it measures any server.
"""

from typing import Literal

import msgspec

from jetlake._engine import EngineError, build_profile, run_load
from jetlake._engine import __version__ as engine_version
from jetlake.errors import ClientError, ConfigurationError

__all__ = ["Figures", "Latency", "LoadPlan", "build_profile", "engine_version", "run"]


LOWEST = {
    "publishers": 1,
    "subscribers": 0,
    "payload_bytes": 0,
    "messages": 1,
    "rate": 0,
    "idle_subscriptions": 0,
    "in_flight": 1,
    "subjects": 1,
    "atomic_batch": 1,
    "first_sequence": 1,
    "sequences": 1,
    "batch": 1,
}
"""The lowest value of each number in a plan."""

SUBSCRIBED = ("pubsub", "request")
"""The workloads that need a subscriber."""

OF_A_STREAM = ("directget", "fetch", "push", "consumerscreate")
"""The workloads that name their stream."""


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send. `messages` is per publisher.

    | workload          | publishers                                      | subscribers                        |
    |-------------------|-------------------------------------------------|------------------------------------|
    | `publish`         | send                                            | there are none                     |
    | `pubsub`          | send                                            | each gets everything               |
    | `request`         | ask, each one question at a time                | a queue group that answers         |
    | `store`           | send to a stream, `in_flight` unanswered        | there are none; the stream answers |
    | `directget`       | ask for what a stream has, in the same way      | there are none                     |
    | `fetch`           | ask a consumer, `in_flight` requests of `batch` | there are none                     |
    | `push`            | make an ordered consumer each, which sends      | there are none                     |
    | `consumerscreate` | make consumers, `in_flight` unanswered          | there are none                     |

    The stream must be there, for `store` one that takes the subject, and so must the consumer of `fetch`.
    """

    url: str
    workload: Literal["publish", "pubsub", "request", "store", "directget", "fetch", "push", "consumerscreate"]
    publishers: int = 1
    subscribers: int = 1
    payload_bytes: int = 128
    messages: int = 1_000_000
    subject: str = "bench"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    # Messages per second and publisher; 0 = as fast as it goes.
    rate: int = 0
    # Subscriptions on other subjects, made first, that never get a message.
    idle_subscriptions: int = 0
    # Messages, or requests for batches or consumers, that a connection has unanswered at most.
    in_flight: int = 1
    # For store and directget: 1 = the subject itself, more = tokens below it, used equally often.
    subjects: int = 1
    # For store: every message has an id of its own, to find duplicates by.
    message_ids: bool = False
    # For store: messages per atomic batch; 1 = no batch.
    atomic_batch: int = 1
    # For fetch: the consumer, messages per request, and how they are acknowledged: not at all, each with its own write,
    # or all that one read returned with one write.
    consumer: str = ""
    batch: int = 1
    acknowledge: Literal["none", "each", "read"] = "none"
    # For directget: whose messages, and which: by sequence in turn or at random, or the last one of each subject. For
    # fetch and push the first sequence is that of the message which must come first.
    stream: str = ""
    get: Literal["sequential", "random", "last"] = "random"
    first_sequence: int = 1
    sequences: int = 1

    def __post_init__(self) -> None:
        for field, lowest in LOWEST.items():
            if getattr(self, field) < lowest:
                raise ConfigurationError(f"{field} is {getattr(self, field)}: it must be at least {lowest}")
        if self.workload in SUBSCRIBED and self.subscribers == 0:
            raise ConfigurationError(
                f"the workload {self.workload} has no subscribers: give at least 1, or choose the workload publish"
            )
        if self.messages % self.atomic_batch != 0:
            raise ConfigurationError(
                f"{self.messages} messages cannot be divided into batches of {self.atomic_batch}: give a multiple of it"
            )
        if self.messages % self.batch != 0:
            raise ConfigurationError(
                f"{self.messages} messages cannot be divided into batches of {self.batch}: give a multiple of it"
            )
        if self.workload in OF_A_STREAM and not self.stream:
            needed = "one with allow_direct" if self.workload == "directget" else "one"
            raise ConfigurationError(f"the workload {self.workload} has no stream: give the name of {needed}")
        if self.workload == "fetch" and not self.consumer:
            raise ConfigurationError("the workload fetch has no consumer: give the name of one that is pulled")


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long one message took, in microseconds."""

    p50: float
    p99: float
    p999: float
    max: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. Rates are messages per second; `latency_us` is there where the workload measures it.

    Delivered is what subscribers got; with `request` and all workloads of streams it is what was answered.
    """

    published: int
    delivered: int
    seconds: float
    publish_rate: float
    deliver_rate: float
    latency_us: Latency | None = None


def run(plan: LoadPlan) -> Figures:
    """Carry out a plan; blocks until it is done, without holding the GIL. Raises `ClientError`."""
    try:
        figures = run_load(msgspec.json.encode(plan))
    except EngineError as error:
        raise ClientError(f"{plan.workload} at {plan.url} failed: {error.args[-1]}; check the server's log") from error
    return msgspec.json.decode(figures, type=Figures)
