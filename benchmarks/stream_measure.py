"""One workload of streams, once, at one server: its metrics by name."""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec

from benchmarks.idle_memory import SETTLE_S
from benchmarks.measure import FIRST_RUN_MESSAGES, FIRST_RUN_S, MESSAGES_MAX, Metrics
from benchmarks.servers import REFERENCE, BenchmarkError
from benchmarks.stream_servers import STREAM, SUBJECT, StreamServer, create_stream, purge_stream, stream_state
from benchmarks.stream_workloads import DIRECT_GET_MESSAGES, IDLE_STREAMS, KEY_VALUE_MESSAGES, StreamWorkload
from benchmarks.workloads import CPU, MEMORY_MB, OPEN, P50, P99, RATE, STREAM_BYTES
from jetlake.client import load
from jetlake.errors import JetlakeError

FILL_IN_FLIGHT = 1_000

LATE_MESSAGES = 1_000
"""Sent before each kill: there is always something that no earlier opening has seen."""

NATS_BENCH_RATE = re.compile(r"stats: ([\d,]+) msgs/sec")


class StreamBench:
    """The measurements of one workload, in a folder of its own that is gone afterwards.

    Loads share running servers, and each begins with an empty stream and nothing left to be written to the disk: what
    one server leaves in the page cache would be written while the other one waits for its sync. Where memory or
    opening is measured, each repeat has a new process.
    """

    def __init__(
        self,
        workload: StreamWorkload,
        commands: dict[str, list[str]],
        folder: Path,
        *,
        seconds: float,
        open_messages: int,
        natscli: str | None,
    ) -> None:
        self.workload = workload
        self._commands = commands
        self._folder = folder
        self._seconds = seconds
        self._open_messages = open_messages
        self._natscli = natscli
        self._stack = ExitStack()
        self._running: dict[str, StreamServer] = {}
        self._messages: dict[str, int] = {}
        self._new_folders = 0

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(dir=self._folder)))
        try:
            self._prepare()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _prepare(self) -> None:
        config = {"storage": self.workload.load.storage, "allow_direct": True}
        for name in self._commands:
            match self.workload.kind:
                case "store" | "nats bench":
                    server = self._start(name)
                    create_stream(server, **config, allow_atomic=self.workload.load.atomic_batch > 1)
                    run = self._store if self.workload.kind == "store" else self._nats_bench
                    self._messages[name] = self._calibrate(partial(run, server))
                    purge_stream(server)
                case "direct get":
                    server = self._start(name)
                    create_stream(server, **config)
                    fill(server, DIRECT_GET_MESSAGES)
                    self._messages[name] = self._calibrate(partial(self._get, server))
                case "open after kill":
                    with self._new_server(name, self._folder / name) as server:
                        create_stream(server, **config)
                        fill(server, self._open_messages, self.workload.load.subjects)
                        server.kill()
                case "key value" | "idle streams":
                    pass

    def measure(self, name: str) -> Metrics:
        """Measure once."""
        match self.workload.kind:
            case "store":
                return self._measured(name, lambda server: self._store(server, self._messages[name]))
            case "direct get":
                server = self._running[name]
                os.sync()
                return metered(server, lambda: self._get(server, self._messages[name]))
            case "key value":
                return self._key_value(name)
            case "nats bench":
                return self._measured(name, lambda server: self._nats_bench(server, self._messages[name]))
            case "open after kill":
                return {OPEN: self._open_ms(name)}
            case "idle streams":
                return {STREAM_BYTES: self._bytes_per_stream(name)}

    def _start(self, name: str) -> StreamServer:
        self._running[name] = self._stack.enter_context(self._new_server(name, self._folder / name))
        return self._running[name]

    def _new_server(self, name: str, folder: Path | None = None) -> StreamServer:
        if folder is None:
            self._new_folders += 1
            folder = self._folder / f"{name}-{self._new_folders}"
        sync_always = name == REFERENCE and self.workload.against == "always"
        return StreamServer(name, self._commands[name], folder, sync_always=sync_always)

    def _calibrate(self, run: Callable[[int], load.Figures]) -> int:
        """Return how many messages per connection fill the time of a repeat."""
        messages = self._whole(FIRST_RUN_MESSAGES)
        while True:
            seconds = run(messages).seconds
            if seconds >= FIRST_RUN_S or messages >= MESSAGES_MAX:
                return self._whole(min(MESSAGES_MAX, int(messages * self._seconds / seconds)))
            messages = self._whole(int(messages * min(10.0, 1.5 * FIRST_RUN_S / max(seconds, 1e-6))))

    def _whole(self, messages: int) -> int:
        """Round up to whole batches."""
        batch = self.workload.load.atomic_batch
        return max(1, -(-messages // batch)) * batch

    def _measured(self, name: str, run: Callable[[StreamServer], load.Figures]) -> Metrics:
        """Measure a load that fills the stream, and empty it again."""
        server = self._running[name]
        os.sync()
        metrics = metered(server, lambda: run(server))
        purge_stream(server)
        return metrics

    def _store(self, server: StreamServer, messages: int) -> load.Figures:
        shape = self.workload.load
        return generate(
            server,
            workload="store",
            publishers=shape.connections,
            in_flight=shape.in_flight,
            payload_bytes=shape.payload_bytes,
            subjects=shape.subjects,
            atomic_batch=shape.atomic_batch,
            messages=messages,
        )

    def _get(self, server: StreamServer, messages: int) -> load.Figures:
        shape = self.workload.load
        return generate(
            server,
            workload="directget",
            publishers=shape.connections,
            in_flight=shape.in_flight,
            messages=messages,
            stream=STREAM,
            sequences=DIRECT_GET_MESSAGES,
        )

    def _key_value(self, name: str) -> Metrics:
        os.sync()
        with self._new_server(name) as server:
            create_stream(server, max_msgs_per_subject=1, allow_direct=True)
            metrics = metered(server, lambda: self._store(server, KEY_VALUE_MESSAGES))
            time.sleep(SETTLE_S)
            return metrics | {MEMORY_MB: server.memory_bytes() / 1e6}

    def _nats_bench(self, server: StreamServer, messages: int) -> load.Figures:
        """Let natscli send, one batch at least."""
        assert self._natscli is not None, "without natscli the workload is left out"
        messages = max(self.workload.load.in_flight, messages)
        command = [self._natscli, "--server", f"nats://{server.address}", "--no-context", "bench", "js", "pub", "async"]
        command += [SUBJECT, "--stream", STREAM, "--batch", str(self.workload.load.in_flight), "--msgs", str(messages)]
        command += ["--size", str(self.workload.load.payload_bytes), "--no-progress"]
        answer = subprocess.run(command, check=False, capture_output=True, text=True)
        rate = NATS_BENCH_RATE.search(answer.stdout + answer.stderr)
        if answer.returncode != 0 or rate is None:
            raise BenchmarkError(f"`nats bench` at {server.name} failed: {answer.stdout}{answer.stderr}")
        per_second = float(rate.group(1).replace(",", ""))
        return load.Figures(
            published=messages,
            delivered=messages,
            seconds=messages / per_second,
            publish_rate=per_second,
            deliver_rate=per_second,
        )

    def _open_ms(self, name: str) -> float:
        os.sync()
        begun_at = time.perf_counter()
        with self._new_server(name, self._folder / name) as server:
            messages = stream_state(server)["messages"]
            opened_ms = (time.perf_counter() - begun_at) * 1_000
            if messages < self._open_messages:
                raise BenchmarkError(f"{name} has {messages:,} of {self._open_messages:,} messages after a kill")
            fill(server, LATE_MESSAGES)
            server.kill()
        return opened_ms

    def _bytes_per_stream(self, name: str) -> float:
        with self._new_server(name) as server, server.api() as api:
            # The first one pays for what all use.
            api.ask("STREAM.CREATE.FIRST", {"name": "FIRST"})
            time.sleep(SETTLE_S)
            before = server.memory_bytes()
            for number in range(IDLE_STREAMS):
                api.ask(f"STREAM.CREATE.IDLE{number}", {"name": f"IDLE{number}", "subjects": [f"idle.{number}.>"]})
            time.sleep(SETTLE_S)
            return (server.memory_bytes() - before) / IDLE_STREAMS


def generate(server: StreamServer, **plan: Any) -> load.Figures:
    """Run the native load generator and return its figures. Raises `BenchmarkError`."""
    try:
        return load.run(msgspec.convert({"url": server.address, "subject": SUBJECT, **plan}, load.LoadPlan))
    except JetlakeError as error:
        raise BenchmarkError(f"{server.name}: {error}") from error


def fill(server: StreamServer, messages: int, subjects: int = 1) -> None:
    """Put messages of 128 bytes into the stream."""
    generate(server, workload="store", messages=messages, subjects=subjects, in_flight=FILL_IN_FLIGHT)


def metered(server: StreamServer, run: Callable[[], load.Figures]) -> Metrics:
    """Run a load, and add what the server used of the processor."""
    before_us = server.cpu_us()
    figures = run()
    metrics = {RATE: figures.deliver_rate, CPU: (server.cpu_us() - before_us) / figures.published}
    if figures.latency_us is not None:
        metrics |= {P50: figures.latency_us.p50, P99: figures.latency_us.p99}
    return metrics
