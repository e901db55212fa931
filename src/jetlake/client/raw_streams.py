"""What is asked about streams over a blocking connection: how they stand, where a time begins, what to forget.

Invariant: `first_sequence ≤ last_sequence + 1`, and `next_sequence` is the sequence the next stored message will have.
"""

import json
from typing import Any

import msgspec

from jetlake.client.raw_connection import ANSWER_S_MAX, RawConnection
from jetlake.errors import ApiError

__all__ = ["RemoteStreamState", "Streams"]

NAMES_PAGES_MAX = 10_000
"""Pages of names asked for; a server that always has one more is broken."""

PLAN_S_MAX = 10.0
"""A Jetlake that is too old to plan does not answer."""

COMMIT_S_MAX = 60.0
"""A commit waits for the disk, with as much as a batch may have."""

NO_STREAM = 404
"""The `code` with which `STREAM.INFO` refuses a stream that does not exist."""

NO_CONSUMER = 10014
"""The `error_code` of a consumer that does not exist; its `code` is the same as that of a missing stream."""


class RemoteStreamState(msgspec.Struct, frozen=True, kw_only=True):
    """How a stream stands."""

    name: str
    # When it was made, in the server's words: a stream that was deleted and made again has another one.
    created: str
    first_sequence: int
    last_sequence: int
    messages: int
    size_bytes: int
    retention: str
    allow_direct: bool
    sealed: bool
    duplicate_window_ns: int
    subjects: tuple[str, ...]
    # Sequences of messages that the server found damaged on its disk.
    damaged: tuple[int, ...] = ()

    @property
    def next_sequence(self) -> int:
        return self.last_sequence + 1

    def until(self, end: int) -> "RemoteStreamState":
        """Return this state as if the stream ended before a sequence."""
        return msgspec.structs.replace(self, last_sequence=min(self.last_sequence, max(end - 1, 0)))

    @property
    def bytes_per_message(self) -> float:
        """On average; 0 when nothing is stored."""
        return self.size_bytes / self.messages if self.messages else 0.0


class ScanRange(msgspec.Struct, frozen=True):
    """One part of a plan, with what is in it."""

    start: int
    end: int
    rows: int
    bytes: int


class ScanPlan(msgspec.Struct, frozen=True):
    """How a Jetlake server would divide a range; `end` is where the next plan begins."""

    end: int
    rows: int
    bytes: int
    ranges: tuple[ScanRange, ...] = ()


class RefusedError(ApiError):
    """Is raised when the API refuses a request over a blocking connection."""


class Streams:
    """The streams behind one connection. Every method raises `ClientError`."""

    def __init__(self, connection: RawConnection, *, api_prefix: str = "$JS.API") -> None:
        self.connection = connection
        self.api_prefix = api_prefix

    def ask(
        self, subject: str, body: dict[str, Any] | None = None, *, timeout_s: float = ANSWER_S_MAX
    ) -> dict[str, Any]:
        """Send one request to the API and return its answer."""
        payload = b"" if body is None else json.dumps(body).encode()
        message = self.connection.request(f"{self.api_prefix}.{subject}", payload, timeout_s=timeout_s)
        answer = message.json()
        refusal = answer.get("error")
        if refusal:
            raise RefusedError(
                int(refusal.get("code", 0)),
                int(refusal.get("err_code", 0)),
                f"{subject}: {refusal.get('description', 'refused')}",
            )
        return answer

    def names(self) -> list[str]:
        """Return the names of all streams, sorted."""
        found: list[str] = []
        for _ in range(NAMES_PAGES_MAX):
            answer = self.ask("STREAM.NAMES", {"offset": len(found)})
            page = answer.get("streams") or []
            found += page
            if not page or len(found) >= int(answer.get("total", 0)):
                break
        return sorted(found)

    def state(self, name: str) -> RemoteStreamState:
        """Return how a stream stands."""
        answer = self.ask(f"STREAM.INFO.{name}")
        config, state = answer["config"], answer["state"]
        return RemoteStreamState(
            name=name,
            created=str(answer.get("created", "")),
            # An empty stream that never had a message says 0.
            first_sequence=max(int(state["first_seq"]), 1),
            last_sequence=int(state["last_seq"]),
            messages=int(state["messages"]),
            size_bytes=int(state["bytes"]),
            retention=str(config.get("retention", "limits")),
            allow_direct=bool(config.get("allow_direct", False)),
            sealed=bool(config.get("sealed", False)),
            duplicate_window_ns=int(config.get("duplicate_window", 0)),
            subjects=tuple(config.get("subjects") or ()),
            damaged=tuple((state.get("lost") or {}).get("msgs") or ()),
        )

    def plan(
        self,
        name: str,
        *,
        start: int,
        end: int,
        rows_max: int = 0,
        bytes_max: int = 0,
        parts: int = 1,
        subjects: tuple[str, ...] = (),
    ) -> ScanPlan:
        """Ask a Jetlake server how a range is best divided; zeros mean no bound."""
        body = {"start": start, "end": end, "max_rows": rows_max, "max_bytes": bytes_max, "parts": parts}
        answer = self.ask(f"STREAM.SCAN.PLAN.{name}", {**body, "subjects": list(subjects)}, timeout_s=PLAN_S_MAX)
        return msgspec.convert(answer, ScanPlan)

    def commit_uploads(self, name: str, query: str, batch: int, uploads: dict[str, int]) -> bool:
        """Have a Jetlake server store uploads, given with their messages; False when it has the batch already."""
        named = [{"id": upload, "messages": messages} for upload, messages in uploads.items()]
        body = {"query": query, "batch": batch, "uploads": named}
        return not self.ask(f"STREAM.UPLOAD.COMMIT.{name}", body, timeout_s=COMMIT_S_MAX)["repeated"]

    def abort_uploads(self, name: str, uploads: list[str]) -> None:
        """Have a Jetlake server forget uploads."""
        self.ask(f"STREAM.UPLOAD.ABORT.{name}", {"uploads": uploads})

    def first_sequence_at(self, name: str, time: str) -> int | None:
        """Return the first sequence that is not older than a moment (RFC 3339); None when all messages are older."""
        body = {"deliver_policy": "by_start_time", "opt_start_time": time, "ack_policy": "none", "mem_storage": True}
        config = {**body, "inactive_threshold": 5_000_000_000, "max_waiting": 1}
        consumer = self.ask(f"CONSUMER.CREATE.{name}", {"stream_name": name, "config": config})
        self.try_delete_consumer(name, consumer["name"])
        if int(consumer.get("num_pending", 0)) == 0:
            return None
        return int(consumer["delivered"]["stream_seq"]) + 1

    def purge_below(self, name: str, sequence: int, subject: str = "") -> None:
        """Remove every message below a sequence, those on one subject if one is named."""
        body: dict[str, Any] = {"seq": sequence}
        if subject:
            body["filter"] = subject
        self.ask(f"STREAM.PURGE.{name}", body)

    def purge(self, name: str) -> None:
        """Remove every message."""
        self.ask(f"STREAM.PURGE.{name}")

    def show_progress(self, name: str, consumer: str, next_sequence: int) -> None:
        """Have a consumer of this name stand before a sequence, so that tools of NATS show what is left to read."""
        if self._stands_before(name, consumer) == next_sequence:
            return
        # Delete and recreate it: servers before 2.14 cannot move a consumer, and do not answer the request.
        self.try_delete_consumer(name, consumer)
        config = {
            "durable_name": consumer,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": next_sequence,
            "ack_policy": "none",
            "description": "How far a Spark query has read; nobody pulls from it.",
        }
        self.ask(f"CONSUMER.DURABLE.CREATE.{name}.{consumer}", {"stream_name": name, "config": config})

    def _stands_before(self, name: str, consumer: str) -> int | None:
        try:
            info = self.ask(f"CONSUMER.INFO.{name}.{consumer}")
        except RefusedError as refusal:
            if refusal.error_code == NO_CONSUMER:
                return None
            raise
        return int(info["delivered"]["stream_seq"]) + 1

    def try_delete_consumer(self, name: str, consumer: str) -> bool:
        """Delete a consumer; False when there is none."""
        try:
            self.ask(f"CONSUMER.DELETE.{name}.{consumer}")
        except RefusedError as refusal:
            if refusal.error_code == NO_CONSUMER:
                return False
            raise
        return True
