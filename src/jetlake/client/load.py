"""The native load generator: one plan in, one set of figures out.

It is written over the engine's own wire code, so that the generator is not what limits a measurement, and it speaks
only the NATS protocol, so that it measures any server.
"""

from typing import Literal

import msgspec

from jetlake._engine import EngineError, build_profile, run_load
from jetlake._engine import __version__ as engine_version
from jetlake.errors import ClientError, ConfigurationError

__all__ = ["Figures", "Latency", "Plan", "build_profile", "engine_version", "run"]


LOWEST = {"publishers": 1, "subscribers": 0, "payload_bytes": 0, "messages": 1, "rate": 0, "idle_subscriptions": 0}
"""The lowest value of each number in a plan."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send. `messages` is per publisher; with the workload `request`, publishers are the ones who ask."""

    url: str
    workload: Literal["publish", "pubsub", "request"]
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

    def __post_init__(self) -> None:
        for field, lowest in LOWEST.items():
            if getattr(self, field) < lowest:
                raise ConfigurationError(f"{field} is {getattr(self, field)}: it must be at least {lowest}")
        if self.workload != "publish" and self.subscribers == 0:
            raise ConfigurationError(
                f"the workload {self.workload} has no subscribers: give at least 1, or choose the workload publish"
            )


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long one message took, in microseconds."""

    p50: float
    p99: float
    p999: float
    max: float


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured. Rates are messages per second; `latency_us` is there where the workload measures it."""

    published: int
    delivered: int
    seconds: float
    publish_rate: float
    deliver_rate: float
    latency_us: Latency | None = None


def run(plan: Plan) -> Figures:
    """Carry out a plan; blocks until it is done, without holding the GIL. Raises `ClientError`."""
    try:
        figures = run_load(msgspec.json.encode(plan))
    except EngineError as error:
        raise ClientError(f"{plan.workload} at {plan.url} failed: {error.args[-1]}; check the server's log") from error
    return msgspec.json.decode(figures, type=Figures)
