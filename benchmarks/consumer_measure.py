"""One workload of consumers, once, at one server: its metrics by name."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

from benchmarks.consumer_workloads import (
    ACKNOWLEDGEMENTS_PENDING_MAX,
    CREATED_CONSUMERS,
    IDLE_CONSUMERS,
    RARE_EVERY,
    RARE_SUBJECT,
    SUBJECTS,
    WIDE_MESSAGES,
    WIDE_SUBJECTS,
    ConsumerLoad,
    ConsumerWorkload,
)
from benchmarks.idle_memory import SETTLE_S
from benchmarks.measure import FIRST_RUN_MESSAGES, FIRST_RUN_S, MESSAGES_MAX, Metrics
from benchmarks.servers import START_S_MAX, BenchmarkError, connected
from benchmarks.stream_measure import FILL_IN_FLIGHT, generate, metered
from benchmarks.stream_servers import STREAM, SUBJECT, StreamServer
from benchmarks.workloads import CPU, CPU_GROWTH, CREATE, FIRST, KEPT, RATE
from jetlake.client import load

WIDE, WIDE_SUBJECT = "WIDE", "wide"
QUIET = "QUIET"
WATCHED = "WATCHED"
CREATED = "CREATED"

CONSUMER = "reader"
TIMED = "timed"

ACKNOWLEDGED = b"$JS.ACK."
"""What the reply subject of every message of a consumer begins with."""


class ConsumerBench:
    """Both servers, in a folder that is gone afterwards; a stream is filled when a workload first needs it, and stays.

    Every load has a consumer of its own, which is new, so that it begins with the first message.
    """

    def __init__(
        self,
        commands: dict[str, list[str]],
        folder: Path,
        *,
        seconds: float,
        messages: int,
        wide_messages: int = WIDE_MESSAGES,
        rare_every: int = RARE_EVERY,
    ) -> None:
        self._commands = commands
        self._folder = folder
        self._seconds = seconds
        self._messages = messages
        self._wide_messages = wide_messages
        self._rare_every = min(rare_every, messages)
        self._stack = ExitStack()
        self._running: dict[str, StreamServer] = {}
        self._filled: set[tuple[str, str]] = set()
        self._calibrated: dict[tuple[str, str], int] = {}

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir=self._folder)))
        try:
            for name, command in self._commands.items():
                self._running[name] = self._stack.enter_context(StreamServer(name, command, folder / name))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def measure(self, workload: ConsumerWorkload, name: str) -> Metrics:
        """Measure once."""
        server = self._running[name]
        shape = workload.load
        match workload.kind:
            case "fetch":
                self._fill(server)
                messages = self._fitting(workload, server, partial(fetch, server, STREAM, shape), self._messages)
                return fetch_metered(server, STREAM, shape, messages)
            case "replay":
                self._fill(server)
                os.sync()
                plan = {"workload": "push", "stream": STREAM, "messages": self._messages}
                return metered(server, lambda: generate(server, **plan))
            case "idle consumers":
                return self._idle_consumers(workload, server)
            case "create":
                replace_stream(server, CREATED, [CREATED])
                os.sync()
                return metered(server, lambda: create_many(server, CREATED, CREATED_CONSUMERS, shape.in_flight))
            case "filter all":
                return self._filter_all(workload, server)
            case "filter sparse":
                self._fill(server)
                return timed(server, {"filter_subject": shape.filter_subject})
            case "start":
                self._fill(server)
                return timed(server, self._amid(server, shape))

    def _fill(self, server: StreamServer) -> None:
        """Fill the stream that most workloads read, in pieces that end with the rare message."""
        if (server.name, STREAM) in self._filled:
            return
        replace_stream(server, STREAM, [SUBJECT, f"{SUBJECT}.>"])
        store = {"workload": "store", "in_flight": FILL_IN_FLIGHT}
        for _ in range(self._messages // self._rare_every):
            generate(server, **store, subjects=SUBJECTS, messages=self._rare_every - 1)
            generate(server, **store, subject=RARE_SUBJECT, messages=1)
        os.sync()
        self._filled.add((server.name, STREAM))

    def _fitting(
        self, workload: ConsumerWorkload, server: StreamServer, run: Callable[[int], load.Figures], most: int
    ) -> int:
        """Return how many messages fill the time of a repeat, in whole batches and no more than there are."""
        key = (workload.name, server.name)
        if key not in self._calibrated:
            whole = partial(whole_batches, batch=workload.load.batch, most=most)
            messages = whole(FIRST_RUN_MESSAGES)
            seconds = run(messages).seconds
            while seconds < FIRST_RUN_S and messages < whole(most):
                messages = whole(int(messages * min(10.0, 1.5 * FIRST_RUN_S / max(seconds, 1e-6))))
                seconds = run(messages).seconds
            self._calibrated[key] = whole(int(messages * self._seconds / seconds))
        return self._calibrated[key]

    def _idle_consumers(self, workload: ConsumerWorkload, server: StreamServer) -> Metrics:
        """Publish without, with, with, without: what gets slower in the meantime is the same for both."""
        if (server.name, WATCHED) not in self._filled:
            for stream in (QUIET, WATCHED):
                replace_stream(server, stream, [stream.lower()])
            create_many(server, WATCHED, IDLE_CONSUMERS, in_flight=16)
            self._filled.add((server.name, WATCHED))

        def publish(stream: str, messages: int) -> load.Figures:
            plan = {"workload": "store", "subject": stream.lower(), "in_flight": FILL_IN_FLIGHT, "messages": messages}
            return generate(server, **plan)

        messages = self._fitting(workload, server, partial(publish, QUIET), MESSAGES_MAX)
        quiet: list[Metrics] = []
        watched: list[Metrics] = []
        for stream in (QUIET, WATCHED, WATCHED, QUIET):
            # What consumers have to do when their messages are gone is no part of publishing.
            ask(server, f"STREAM.PURGE.{stream}")
            os.sync()
            time.sleep(SETTLE_S)
            (quiet if stream == QUIET else watched).append(metered(server, partial(publish, stream, messages)))
        return compared(watched, quiet)

    def _filter_all(self, workload: ConsumerWorkload, server: StreamServer) -> Metrics:
        """Read without a filter, with it, with it, without it."""
        if (server.name, WIDE) not in self._filled:
            replace_stream(server, WIDE, [f"{WIDE_SUBJECT}.>"])
            store = {"workload": "store", "in_flight": FILL_IN_FLIGHT, "subject": WIDE_SUBJECT}
            generate(server, **store, subjects=WIDE_SUBJECTS, messages=self._wide_messages)
            os.sync()
            self._filled.add((server.name, WIDE))
        plain = ConsumerLoad(workload.load.batch, workload.load.in_flight)
        run = partial(fetch, server, WIDE, plain)
        messages = self._fitting(workload, server, run, self._wide_messages)
        without: list[Metrics] = []
        filtered: list[Metrics] = []
        for shape in (plain, workload.load, workload.load, plain):
            (filtered if shape.filter_subject else without).append(fetch_metered(server, WIDE, shape, messages))
        return compared(filtered, without)

    def _amid(self, server: StreamServer, shape: ConsumerLoad) -> dict[str, Any]:
        sequence = self._messages // 2
        if shape.start == "sequence":
            return {"deliver_policy": "by_start_sequence", "opt_start_seq": sequence}
        message = ask(server, f"STREAM.MSG.GET.{STREAM}", {"seq": sequence})["message"]
        return {"deliver_policy": "by_start_time", "opt_start_time": message["time"]}


def whole_batches(messages: int, *, batch: int, most: int) -> int:
    """Round up to whole batches, but not above what there is."""
    return max(1, min(-(-messages // batch), most // batch)) * batch


def ask(server: StreamServer, subject: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
    with server.api() as api:
        return api.ask(subject, request)


def replace_stream(server: StreamServer, stream: str, subjects: list[str]) -> None:
    """Create a stream that is empty, with all consumers of its predecessor gone."""
    with server.api() as api:
        if stream in (api.ask("STREAM.NAMES")["streams"] or []):
            api.ask(f"STREAM.DELETE.{stream}")
        api.ask(f"STREAM.CREATE.{stream}", {"name": stream, "subjects": subjects})


def create_many(server: StreamServer, stream: str, consumers: int, in_flight: int) -> load.Figures:
    return generate(server, workload="consumerscreate", stream=stream, messages=consumers, in_flight=in_flight)


@contextmanager
def consumer(server: StreamServer, stream: str, shape: ConsumerLoad) -> Iterator[None]:
    """A durable consumer that is new, and gone afterwards."""
    config = {
        "durable_name": CONSUMER,
        "name": CONSUMER,
        "ack_policy": "none" if shape.acknowledge == "none" else "explicit",
        "max_ack_pending": -1 if shape.acknowledge == "none" else ACKNOWLEDGEMENTS_PENDING_MAX,
        "filter_subject": shape.filter_subject,
    }
    ask(server, f"CONSUMER.CREATE.{stream}.{CONSUMER}", {"stream_name": stream, "config": config})
    try:
        yield
    finally:
        ask(server, f"CONSUMER.DELETE.{stream}.{CONSUMER}")


def read(server: StreamServer, stream: str, shape: ConsumerLoad, messages: int) -> load.Figures:
    """Read so many messages through the consumer."""
    return generate(
        server,
        workload="fetch",
        stream=stream,
        consumer=CONSUMER,
        batch=shape.batch,
        in_flight=shape.in_flight,
        acknowledge=shape.acknowledge,
        messages=messages,
    )


def fetch(server: StreamServer, stream: str, shape: ConsumerLoad, messages: int) -> load.Figures:
    with consumer(server, stream, shape):
        return read(server, stream, shape, messages)


def fetch_metered(server: StreamServer, stream: str, shape: ConsumerLoad, messages: int) -> Metrics:
    os.sync()
    with consumer(server, stream, shape):
        return metered(server, partial(read, server, stream, shape, messages))


def compared(those: list[Metrics], others: list[Metrics]) -> Metrics:
    """Return the figures of those, and how they stand to the others'; all had the same number of messages."""

    def seconds_per_message(runs: list[Metrics]) -> float:
        return sum(1 / metrics[RATE] for metrics in runs) / len(runs)

    def cpu_us(runs: list[Metrics]) -> float:
        return sum(metrics[CPU] for metrics in runs) / len(runs)

    return {
        RATE: 1 / seconds_per_message(those),
        CPU: cpu_us(those),
        KEPT: seconds_per_message(others) / seconds_per_message(those),
        CPU_GROWTH: cpu_us(those) / cpu_us(others),
    }


def timed(server: StreamServer, position: dict[str, Any]) -> Metrics:
    """Create a consumer, ask it for one message, and say when each came."""
    config = {
        "name": TIMED,
        "ack_policy": "none",
        "inactive_threshold": 60_000_000_000,
        "mem_storage": True,
        **position,
    }
    create = json.dumps({"stream_name": STREAM, "config": config}).encode()
    pull = json.dumps({"batch": 1, "expires": int(START_S_MAX * 1e9)}).encode()
    create_line = f"PUB $JS.API.CONSUMER.CREATE.{STREAM}.{TIMED} _INBOX.timed.created {len(create)}\r\n".encode()
    pull_line = f"PUB $JS.API.CONSUMER.MSG.NEXT.{STREAM}.{TIMED} _INBOX.timed.pulled {len(pull)}\r\n".encode()
    with connected(server.port) as client:
        client.settimeout(START_S_MAX)
        client.sendall(b"SUB _INBOX.timed.* 1\r\nPING\r\n")
        until(server, client.recv, b"PONG\r\n")
        begun_at = time.perf_counter()
        client.sendall(create_line + create + b"\r\n")
        answer = until(server, client.recv, b"}\r\n")
        created_at = time.perf_counter()
        if b'"error"' in answer:
            raise BenchmarkError(f"{server.name} answers {answer!r}")
        client.sendall(pull_line + pull + b"\r\n")
        until(server, client.recv, ACKNOWLEDGED)
        first_at = time.perf_counter()
    ask(server, f"CONSUMER.DELETE.{STREAM}.{TIMED}")
    return {CREATE: (created_at - begun_at) * 1_000, FIRST: (first_at - begun_at) * 1_000}


def until(server: StreamServer, receive: Callable[[int], bytes], end: bytes) -> bytes:
    """Return what came until the end was seen. Raises `BenchmarkError`."""
    received = b""
    while end not in received:
        try:
            piece = receive(64 * 1024)
        except TimeoutError:
            raise BenchmarkError(f"{server.name} does not answer; the last was {received[-200:]!r}") from None
        if not piece:
            raise BenchmarkError(f"{server.name} closed the connection: {received[-200:]!r}")
        received += piece
    return received
