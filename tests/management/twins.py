"""The two sides of a comparison: nats-server behind a socket, and our functions with a dictionary behind them.

Both take steps and answer with a line: `err_code/code description`, or the configuration as it stands on the wire.
"""

from __future__ import annotations

import json
import time
from typing import Any

from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits, StreamContext
from jetlake.management.streams.requests import create, update
from jetlake.management.streams.required_level import with_server_versions
from jetlake.management.wire.error_codes import RequestError as ApiError
from jetlake.management.wire.json_dialect import write_json
from tests.compatibility.wire import RawClient
from tests.management.stream_cases import Step

# What nats-server says when the folder of a stream that was just deleted is still there.
NOT_YET = "10049/500 error creating store for stream"
ATTEMPTS_MAX = 600


class NatsServerTwin:
    """A connection to a nats-server, as one account."""

    def __init__(self, client: RawClient, user: str = "") -> None:
        self.client = client
        self.client.connect(headers=True, no_responders=True, **({"user": user, "pass": "x"} if user else {}))
        self.client.send(b"SUB answers 1\r\n")

    def request(self, subject: str, body: bytes = b"") -> dict[str, Any]:
        self.client.send(b"PUB $JS.API.%s answers %d\r\n%s\r\n" % (subject.encode(), len(body), body))
        head, _, payload = self.client.read_frame().partition(b"\r\n")
        assert head.startswith(b"MSG answers 1"), head
        answer: dict[str, Any] = json.loads(payload)
        return answer

    def answer(self, step: Step) -> str:
        if step.operation == "DELETE":
            self.request(f"STREAM.DELETE.{step.name}")
            return ""
        operation = "CREATE" if step.operation == "TRY" else step.operation
        answer = self.request(f"STREAM.{operation}.{step.name}", step.body)
        if "error" in answer:
            error = answer["error"]
            return f"{error['err_code']}/{error['code']} {error['description']}"
        if step.operation == "TRY":
            self.request(f"STREAM.DELETE.{step.name}")
        return write_json(answer["config"]).decode()

    def delete_all(self) -> None:
        for name in self.request("STREAM.NAMES")["streams"] or []:
            self.request(f"STREAM.DELETE.{name}")


class OurTwin:
    """Our functions, with the streams they have accepted, by account."""

    def __init__(
        self, server: ServerLimits, accounts: dict[str, StreamAccountLimits] | None = None, *, is_strict: bool = True
    ) -> None:
        self.server = server
        self.limits = accounts or {"": StreamAccountLimits()}
        self.is_strict = is_strict
        self.streams: dict[str, AccountStreams] = {}
        self.delete_all()

    def answer(self, step: Step) -> str:
        streams = self.streams[step.account]
        if step.operation == "DELETE":
            if step.name in streams:
                streams.remove(step.name)
            return ""
        decide = update if step.operation == "UPDATE" else create
        try:
            decision = decide(step.name, step.body, self._context(step.account), is_strict=self.is_strict)
        except ApiError as error:
            return f"{error.code.number}/{error.code.status} {error.description}"
        if step.operation != "TRY":
            streams.put(decision.config)
        return write_json(with_server_versions(decision.config).to_json()).decode()

    def delete_all(self) -> None:
        self.streams = {account: AccountStreams() for account in self.limits}

    def _context(self, account: str) -> StreamContext:
        reserved = {"memory": 0, "file": 0}
        for streams in self.streams.values():
            for stream in streams.values():
                reserved[stream.storage] += max(stream.max_bytes, 0)
        server = ServerLimits(
            max_memory=self.server.max_memory,
            max_storage=self.server.max_storage,
            reserved_memory=reserved["memory"],
            reserved_storage=reserved["file"],
            duplicate_window_max_ns=self.server.duplicate_window_max_ns,
        )
        return StreamContext(streams=self.streams[account], account=self.limits[account], server=server)


def differences(theirs: dict[str, NatsServerTwin], ours: OurTwin, cases: list[list[Step]]) -> list[str]:
    """Play all cases on both sides and return what was answered differently."""
    different = []
    for case in cases:
        for step in case:
            expected = _answer_when_ready(theirs[step.account], step, our_answer := ours.answer(step))
            if our_answer != expected:
                shown = [(past.operation, past.body[:200]) for past in case[: case.index(step) + 1][-3:]]
                different.append(f"{shown}\n    nats-server: {expected[:500]}\n    ours:        {our_answer[:500]}")
        for twin in theirs.values():
            twin.delete_all()
        ours.delete_all()
    return different


def _answer_when_ready(twin: NatsServerTwin, step: Step, our_answer: str) -> str:
    for _ in range(ATTEMPTS_MAX):
        answer = twin.answer(step)
        if answer != NOT_YET or our_answer == NOT_YET:
            break
        time.sleep(0.05)
    return answer
