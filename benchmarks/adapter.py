"""How many messages one adapter handles: from a node's envelope to an acknowledged document in a stream.

```text
python -m benchmarks.adapter [--messages 200000] [--body-bytes 240] [--server jetlake|nats-server] [--slow]
```

Three processes: a server, an adapter (`jetlake adapter run`), and this one, which has made all envelopes before it
begins and writes them as fast as the adapter keeps up: at most `AHEAD_MAX` messages are on their way. Printed are
messages per second from the first write to the last acknowledgement, and the CPU of each process per message: the
former depends on what else the machine does, the latter less.

With `--slow` the stream's server is stopped for some seconds in the middle, and the memory of the adapter is watched.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from pathlib import Path

from benchmarks.servers import REFERENCE, ServerProcess, commands, cpu_us
from jetlake.choria.envelopes import make_request
from jetlake.choria.registration import file_content
from jetlake.client.load import build_profile
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_streams import Streams

AHEAD_MAX = 20_000
"""Messages that are written and not yet published by the adapter; its queue has room for all of them."""

LOOK_S = 0.05
"""Between two looks at the adapter's metrics, which are work for it too."""

PIECE_MESSAGES = 500
SLOW_S = 5.0
WAIT_S_MAX = 300.0
STREAM, TARGET, TOPIC = "BENCH", "choria.discovery", "choria.node_metadata"


class AdapterProcess:
    """`jetlake adapter run` with one adapter, and what its metrics say."""

    def __init__(self, folder: Path, url: str, workers: tuple[int, int], stream_url: str) -> None:
        config = {
            "type": "jetstream",
            "queue_len": AHEAD_MAX,
            "ingest": {"topic": TARGET, "protocol": "request", "workers": workers[0]},
            "stream": {"topic": TOPIC, "workers": workers[1], "servers": [stream_url.removeprefix("nats://")]},
        }
        (folder / "adapter.json").write_text(json.dumps({"adapters": {"bench": config}}))
        self._log = folder / "adapter.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "jetlake", "adapter", "run"),
                    *("-c", str(folder / "adapter.json"), "--metrics-port", "0", "--server", url),
                ],
                stderr=log,
            )
        self._wait(lambda: "metrics are at" in self._log.read_text())
        self._page = self._log.read_text().partition("metrics are at ")[2].split()[0]
        self._wait(lambda: self.metric("jetlake_adapter_connections") >= sum(workers))

    def metric(self, name: str) -> int:
        text = urllib.request.urlopen(self._page, timeout=30).read().decode()
        return int(sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(f"{name}{{")))

    def done(self) -> int:
        """Return how many messages are published or dropped."""
        text = urllib.request.urlopen(self._page, timeout=30).read().decode()
        counted = ("choria_adapter_published_msgs{", "jetlake_adapter_dropped_msgs{")
        return int(sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(counted)))

    def memory_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self) -> str:
        self.process.terminate()
        self.process.wait()
        return self._log.read_text().splitlines()[-1]

    def _wait(self, condition: object) -> None:
        deadline = time.monotonic() + WAIT_S_MAX
        while not condition():  # type: ignore[operator]
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the adapter did not start:\n{self._log.read_text()}")
            time.sleep(0.02)


def frames(count: int, body_bytes: int) -> list[bytes]:
    """Return what nodes would send, in pieces to write at once."""
    made = []
    for number in range(count):
        body = file_content(
            path="/etc/inventory.json", mtime_s=1, updated=False, content=os.urandom(body_bytes), compress=True
        )
        payload = make_request(
            body, sender=f"web{number % 10_000}.ldn.example.net", request_id=uuid.uuid4().hex, time_s=1_520_088_557
        )
        made.append(b"PUB %b %d\r\n%b\r\n" % (TARGET.encode(), len(payload), payload))
    return [b"".join(made[start : start + PIECE_MESSAGES]) for start in range(0, count, PIECE_MESSAGES)]


def measure(kind: str, options: argparse.Namespace) -> dict[str, object]:
    """Run once against a server of a kind."""
    pieces = frames(options.messages, options.body_bytes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [*commands()[kind], "-js", "-sd", str(folder / "store")]
        slow_command = [*commands()[kind], "-js", "-sd", str(folder / "slow")]
        with ServerProcess(kind, command) as server, ServerProcess(kind, slow_command) as other:
            url = f"nats://{server.address}"
            stream_server = other if options.slow else server
            stream_url = f"nats://{stream_server.address}"
            with RawConnection(ConnectionSettings(url=stream_url)) as admin:
                Streams(admin).ask(f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": [TOPIC], "storage": "file"})
                adapter = AdapterProcess(folder, url, (options.ingest_workers, options.stream_workers), stream_url)
                figures = run(adapter, server, stream_server, pieces, url, options)
                figures["stored"] = Streams(admin).state(STREAM).messages
                figures["adapter says"] = adapter.stop().partition("stopped; ")[2]
    return figures


def run(
    adapter: AdapterProcess,
    server: ServerProcess,
    stream_server: ServerProcess,
    pieces: list[bytes],
    url: str,
    options: argparse.Namespace,
) -> dict[str, object]:
    """Write all pieces, and wait until the stream has everything."""
    before = [cpu_us(pid) for pid in (adapter.process.pid, server.pid, os.getpid())]
    memory_max = adapter.memory_bytes()
    with RawConnection(ConnectionSettings(url=url)) as connection:
        began_s = time.perf_counter()
        done = 0
        for number, piece in enumerate(pieces):
            while (number + 1) * PIECE_MESSAGES - done > AHEAD_MAX and not options.slow:
                time.sleep(LOOK_S)
                done = adapter.done()
            if options.slow and number == len(pieces) // 3:
                os.kill(stream_server.pid, signal.SIGSTOP)
                stopped_s = time.perf_counter()
            connection.send(piece)
            memory_max = max(memory_max, adapter.memory_bytes())
        if options.slow:
            time.sleep(max(0.0, stopped_s + SLOW_S - time.perf_counter()))
            memory_max = max(memory_max, adapter.memory_bytes())
            os.kill(stream_server.pid, signal.SIGCONT)
        deadline = time.perf_counter() + WAIT_S_MAX
        while done < options.messages and time.perf_counter() < deadline:
            time.sleep(LOOK_S)
            done = adapter.done()
            memory_max = max(memory_max, adapter.memory_bytes())
        took_s = time.perf_counter() - began_s
    after = [cpu_us(pid) for pid in (adapter.process.pid, server.pid, os.getpid())]
    used = [(end - start) / options.messages for start, end in zip(before, after, strict=True)]
    return {
        "messages/s": round(options.messages / took_s),
        "adapter CPU us/message": round(used[0], 1),
        "server CPU us/message": round(used[1], 1),
        "publisher CPU us/message": round(used[2], 1),
        "envelope bytes": round(sum(map(len, pieces)) / options.messages),
        "adapter memory MB": round(memory_max / 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--body-bytes", type=int, default=240)
    parser.add_argument("--ingest-workers", type=int, default=10)
    parser.add_argument("--stream-workers", type=int, default=10)
    parser.add_argument("--server", choices=("jetlake", REFERENCE), default="jetlake")
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    if build_profile != "release":
        print("warning: this engine is a debug build; run `make engine-release` first", file=sys.stderr)
    load = os.getloadavg()[0]
    figures = measure(options.server, options)
    print(
        json.dumps(
            {"server": options.server, "engine": build_profile, "load before": round(load, 1), **figures}, indent=1
        )
    )


if __name__ == "__main__":
    main()
