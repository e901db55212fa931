"""Sends the events of a simulation to a server, at their time or as fast as it goes.

Invariant: events reach the stream in the order they happened; each is acknowledged before the run ends.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from jetlake.client.api import Api
from jetlake.client.raw_connection import ConnectionSettings
from jetlake.devices.bulk import BulkPublisher
from jetlake.devices.simulator.simulation import SECOND, Simulation, TimedEvent
from jetlake.devices.subjects import pattern
from jetlake.errors import ConfigurationError

SLICE_NS = 100_000_000
"""Of simulated time that is sent together: finer than anybody sees."""


class RunReport(NamedTuple):
    """How a simulation ended."""

    stored: int
    duration_s: float
    # It was not interrupted.
    is_complete: bool


async def check_unused(api: Api, stream: str, simulation: Simulation) -> None:
    """Raise `ConfigurationError` if the devices have events already: their versions would start twice."""
    first = simulation.devices[0].device_id
    answer = await api.find(f"STREAM.MSG.GET.{stream}", {"last_by_subj": pattern(first)})
    if answer is not None:
        raise ConfigurationError(
            f"stream {stream} has events of the devices of seed {simulation.options.seed} already: use another --seed"
        )


def run_simulation(
    simulation: Simulation,
    settings: ConnectionSettings,
    *,
    stream: str,
    speed: float = 0.0,
    is_stopping: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda _count: None,
) -> RunReport:
    """Publish all events; `speed` is simulated seconds per second, 0 as fast as possible. Raises `ClientError`."""
    started_s = time.monotonic()
    with BulkPublisher(settings, stream=stream) as publisher:
        if not speed:
            stored = publisher.publish(_messages(simulation.timed_events(), is_stopping, progress)).stored
            return RunReport(stored, time.monotonic() - started_s, not is_stopping())
        stored = 0
        for at_ns, messages in _slices(simulation.timed_events()):
            wait_s = at_ns / SECOND / speed - (time.monotonic() - started_s)
            while wait_s > 0 and not is_stopping():
                time.sleep(min(wait_s, 0.1))
                wait_s = at_ns / SECOND / speed - (time.monotonic() - started_s)
            if is_stopping():
                return RunReport(stored, time.monotonic() - started_s, False)
            stored += publisher.publish(messages).stored
            progress(len(messages))
        return RunReport(stored, time.monotonic() - started_s, True)


def _messages(
    found: Iterator[TimedEvent], is_stopping: Callable[[], bool], progress: Callable[[int], None]
) -> Iterator[Any]:
    for number, event in enumerate(found, 1):
        if number % 1000 == 0:
            progress(1000)
            if is_stopping():
                return
        yield event.message


def _slices(found: Iterator[TimedEvent]) -> Iterator[tuple[int, list[Any]]]:
    """Put together what happens in the same part of a second."""
    end_ns = SLICE_NS
    messages: list[Any] = []
    for event in found:
        if event.at_ns >= end_ns:
            if messages:
                yield end_ns, messages
            end_ns, messages = event.at_ns - event.at_ns % SLICE_NS + SLICE_NS, []
        messages.append(event.message)
    if messages:
        yield end_ns, messages
