"""Servers that store: processes with a folder of their own, and what one asks of their API."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.servers import START_S_MAX, BenchmarkError, ServerProcess, connected

STREAM = "BENCH"
SUBJECT = "bench"

ALWAYS = "jetstream {{ store_dir: {folder}, sync_interval: always }}\n"

ASK_AGAIN_S = 0.005
"""A server that is not yet ready for streams leaves a question without an answer."""

Answer = dict[str, Any]


class StreamServer(ServerProcess):
    """One server on a folder; the folder stays when it is gone."""

    def __init__(self, name: str, command: list[str], folder: Path, *, sync_always: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if sync_always:
            configuration = folder / "always.conf"
            configuration.write_text(ALWAYS.format(folder=json.dumps(str(folder))))
            flags = ["-c", str(configuration)]
        else:
            flags = ["-js", "-sd", str(folder)]
        super().__init__(name, [*command, *flags])

    def kill(self) -> None:
        """End it without a word."""
        assert self._process is not None, "the server runs inside the with block"
        self._process.kill()
        self._process.wait()

    @contextmanager
    def api(self) -> Iterator[Api]:
        """Yield a connection that asks; for as long as no ping is due."""
        with connected(self.port) as client:
            yield Api(self.name, client)


class Api:
    """Requests to `$JS.API`, one after the other."""

    def __init__(self, server: str, client: socket.socket) -> None:
        self._server = server
        self._client = client
        self._received = b""
        self._asked = 0
        # Its own: what another connection asked twice is answered twice, and that must not be taken for an answer here.
        self._inbox = f"_INBOX.{secrets.token_hex(8)}"

    def ask(self, subject: str, request: dict[str, Any] | None = None) -> Answer:
        """Return the answer of `$JS.API.<subject>`, asking again until there is one. Raises `BenchmarkError`."""
        self._asked += 1
        body = b"" if request is None else json.dumps(request).encode()
        inbox = f"{self._inbox}.{self._asked}"
        question = f"PUB $JS.API.{subject} {inbox} {len(body)}\r\n".encode() + body + b"\r\n"
        self._client.sendall(f"SUB {inbox} {self._asked}\r\n".encode())
        give_up_at = time.perf_counter() + START_S_MAX
        while time.perf_counter() < give_up_at:
            self._client.sendall(question)
            # Whoever may ask twice asks for what can be given twice; the rest takes its time.
            wait_s = ASK_AGAIN_S if subject.startswith("STREAM.INFO") else START_S_MAX
            answer = self._answer(f"MSG {inbox} ".encode(), time.perf_counter() + wait_s)
            if answer is not None:
                if "error" in answer:
                    raise BenchmarkError(f"{self._server} answers {subject} with {answer['error']}")
                return answer
        raise BenchmarkError(f"{self._server} does not answer {subject}; start it by hand to see why")

    def _answer(self, line_start: bytes, give_up_at: float) -> Answer | None:
        while True:
            start = self._received.find(line_start)
            line, end, rest = self._received[start:].partition(b"\r\n")
            if start >= 0 and end and len(rest) >= int(line.rpartition(b" ")[2]):
                size = int(line.rpartition(b" ")[2])
                self._received = b""
                answer: Answer = json.loads(rest[:size])
                return answer
            remaining = give_up_at - time.perf_counter()
            if remaining <= 0:
                return None
            self._client.settimeout(remaining)
            try:
                piece = self._client.recv(64 * 1024)
            except TimeoutError:
                return None
            if not piece:
                raise BenchmarkError(f"{self._server} closed the connection: {self._received[-200:]!r}")
            self._received += piece


def create_stream(server: StreamServer, **config: object) -> None:
    """Create the stream that loads use."""
    with server.api() as api:
        api.ask(f"STREAM.CREATE.{STREAM}", {"name": STREAM, "subjects": [SUBJECT, f"{SUBJECT}.>"], **config})


def purge_stream(server: StreamServer) -> None:
    with server.api() as api:
        api.ask(f"STREAM.PURGE.{STREAM}")


def stream_state(server: StreamServer) -> Answer:
    with server.api() as api:
        state: Answer = api.ask(f"STREAM.INFO.{STREAM}")["state"]
        return state
