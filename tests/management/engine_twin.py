"""An engine of dictionaries: what the real one does for management, without files and sockets.

It keeps definitions and messages, and remembers what was published. `fail_with` makes calls fail as a disk would.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from jetlake._engine import EngineError
from jetlake.management.subjects.names import is_subset
from jetlake.management.wire.times import Timestamp

# Bytes that a message takes besides its subject and payload.
OVERHEAD = {"file": 30, "memory": 16}

NO_MESSAGE = (
    b'{"type":"io.nats.jetstream.api.v1.stream_msg_get_response",'
    b'"error":{"code":404,"err_code":10037,"description":"no message found"}}'
)


class TwinRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A message to the API."""

    subject: str
    payload: bytes = b""
    account: str = "$G"
    reply: str = "reply"
    header: bytes = b""
    connection_id: int = 7
    service: int = 1

    def may_publish(self, _pattern: str) -> bool:
        return True

    def may_send_to(self, _target: str, _pattern: str) -> bool:
        return True


class TwinArchiveEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says about a snapshot or a restore."""

    kind: str
    id: str
    details: bytes = b"{}"


class TwinConsumerEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine says about a consumer that nobody uses."""

    account: str
    stream: str
    name: str


class TwinConsumer:
    """One consumer: its definition, and where in the stream it is. It delivers nothing."""

    def __init__(self, definition: bytes, stream: TwinStream) -> None:
        self.stream = stream
        self.define(definition)
        self.last_of_subjects = self._last_of_subjects()
        self.next = self._start()
        self.floor = self.next - 1
        self.start_last = stream.last
        self.pinned: dict[str, Any] | None = None

    def define(self, definition: bytes) -> None:
        self.definition = definition
        self.config: dict[str, Any] = json.loads(definition)["config"]
        subject = self.config.get("filter_subject")
        self.filters: list[str] = [subject] if subject else self.config.get("filter_subjects", [">"])

    def reset(self, sequence: int) -> int:
        self.next = sequence or self.floor + 1
        self.floor = self.next - 1
        return self.next

    def state(self, *, is_bound: bool) -> dict[str, Any]:
        return {
            "delivered": {"consumer_sequence": 0, "stream_sequence": self.next - 1, "active_ns": 0},
            "floor": {"consumer_sequence": 0, "stream_sequence": self.floor, "active_ns": 0},
            "ack_pending": 0,
            "redelivered": 0,
            "waiting": 0,
            "pending": self._pending(),
            "push_bound": is_bound,
            "pinned": self.pinned,
        }

    def _start(self) -> int:
        stream, policy = self.stream, self.config["deliver_policy"]
        matching = [sequence for sequence in stream.messages if self._takes(sequence)]
        if not stream.last:
            return self.config.get("opt_start_seq", 1)
        start = {
            "all": stream.first,
            "new": stream.last + 1,
            "last": max(matching, default=stream.first),
            "last_per_subject": min(self.last_of_subjects, default=stream.last + 1),
            "by_start_sequence": max(self.config.get("opt_start_seq", 0), stream.first),
            "by_start_time": stream.last + 1,
        }[policy]
        if policy == "by_start_time":
            wanted = Timestamp.read(self.config["opt_start_time"]).unix_ns
            start = stream.first_at(wanted)
        return int(start)

    def _pending(self) -> int:
        sequences = [sequence for sequence in self.stream.messages if sequence >= self.next and self._takes(sequence)]
        if self.config["deliver_policy"] == "last_per_subject":
            return sum(sequence in self.last_of_subjects or sequence > self.start_last for sequence in sequences)
        return len(sequences)

    def _last_of_subjects(self) -> set[int]:
        subjects = {self.stream.messages[each][0]: each for each in self.stream.messages if self._takes(each)}
        return set(subjects.values())

    def _takes(self, sequence: int) -> bool:
        return any(is_subset(self.stream.messages[sequence][0], each) for each in self.filters)


class TwinStream:
    """One stream: its definition and its messages by sequence."""

    def __init__(self, definition: bytes) -> None:
        self.define(definition)
        self.consumers: dict[str, TwinConsumer] = {}
        self.are_consumers_opened = False
        self.messages: dict[int, tuple[str, bytes, int]] = {}
        self.first = max(self.config.get("first_seq", 0), 1)
        self.last = self.first - 1
        self.last_time_ns = 0
        self.lost: list[tuple[int, int]] = []

    def define(self, definition: bytes) -> None:
        self.definition = definition
        self.config: dict[str, Any] = json.loads(definition)["config"]

    def publish(self, subject: str, payload: bytes, time_ns: int) -> None:
        self.last += 1
        self.messages[self.last] = (subject, payload, time_ns)
        self.last_time_ns = time_ns
        self.settle()

    def first_at(self, time_ns: int) -> int:
        """Return the sequence of the first message at this time or later."""
        return next((each for each, message in self.messages.items() if message[2] >= time_ns), self.last + 1)

    def settle(self) -> None:
        self.first = min(self.messages, default=self.last + 1)

    def state(self, query: dict[str, Any]) -> dict[str, Any]:
        counts: dict[str, int] = {}
        for subject, _, _ in self.messages.values():
            counts[subject] = counts.get(subject, 0) + 1
        deleted = [each for each in range(self.first, self.last + 1) if each not in self.messages]
        first = self.messages.get(self.first)
        overhead = OVERHEAD[self.config.get("storage", "file")]
        state: dict[str, Any] = {
            "messages": len(self.messages),
            "bytes": sum(overhead + len(subject) + len(payload) for subject, payload, _ in self.messages.values()),
            "first_sequence": self.first,
            "first_time_ns": first[2] if first else 0,
            "last_sequence": self.last,
            "last_time_ns": self.last_time_ns,
            "subjects": len(counts),
            "deleted_count": len(deleted),
            "lost": self.lost,
            "lost_bytes": 0,
        }
        if query["deleted"]:
            state["deleted"] = deleted
        if query["subjects"] is not None:
            matching = sorted(
                (subject, count) for subject, count in counts.items() if is_subset(subject, query["subjects"])
            )
            state["subject_counts"] = matching[: query["subjects_max"]]
            if len(matching) > query["subjects_max"]:
                state["subject_counts_total"] = len(matching)
        return state


class EngineTwin:
    """The engine, as `jetlake.management.engine.protocols.ManagedEngine`."""

    def __init__(self, stored: list[tuple[str, str, bytes]] | None = None) -> None:
        self.stored = stored or []
        # Definitions of consumers on disk, by account and stream.
        self.stored_definitions: dict[tuple[str, str], list[bytes]] = {}
        self.streams: dict[tuple[str, str], TwinStream] = {}
        self.published: list[tuple[str, str, bytes, bytes | None]] = []
        # Requests to the engine itself.
        self.asked: list[tuple[str, bytes]] = []
        # Subjects that somebody listens to.
        self.interest: set[str] = set()
        self.fail_with: EngineError | None = None
        self.connections_json = b"[]"
        self.limits: dict[str, tuple[int, int]] = {}
        self.misses: dict[str, int] = {}
        self.forked = ("", 0)
        # Subscriptions to subjects that no stream takes.
        self.untaken = 1_000
        # Snapshots, scans and restores that were begun, in order: account, and what was asked for.
        self.archives: list[tuple[str, dict[str, Any]]] = []
        # Restores that are not over, with their accounts.
        self.restores: dict[str, str] = {}
        # Those that have become streams and wait for their consumers: account and stream.
        self.filling: dict[str, tuple[str, str]] = {}
        self.sent_snapshots: list[str] = []

    def open_streams(self, folder: str, options: bytes) -> tuple[list[tuple[str, str, bytes]], list[str]]:  # noqa: ARG002
        self._fail()
        return self.stored, []

    def open_stream(self, account: str, name: str, definition: bytes) -> list[str]:
        self._fail()
        self.streams[account, name] = TwinStream(definition)
        return ["17 bytes that were never acknowledged are cut off"]

    def limit_account(self, account: str, memory_bytes_max: int, storage_bytes_max: int) -> None:
        self.limits[account] = (memory_bytes_max, storage_bytes_max)

    def message_misses(self, account: str) -> int:
        return self.misses.get(account, 0)

    def create_stream(self, account: str, definition: bytes) -> None:
        self._fail()
        self.streams[account, json.loads(definition)["config"]["name"]] = TwinStream(definition)

    def fork_stream(self, account: str, origin: str, last_sequence: int, definition: bytes) -> None:
        self.forked = (origin, last_sequence)
        self.create_stream(account, definition)

    def update_stream(self, account: str, definition: bytes) -> None:
        self._find(account, json.loads(definition)["config"]["name"]).define(definition)

    def delete_stream(self, account: str, name: str) -> None:
        self._find(account, name)
        del self.streams[account, name]

    def stored_consumers(self, account: str, stream: str) -> list[bytes]:
        self._find(account, stream)
        return self.stored_definitions.get((account, stream), [])

    def open_consumer(self, account: str, stream: str, definition: bytes) -> None:
        self.create_consumer(account, stream, definition)

    def consumers_opened(self, account: str, stream: str) -> None:
        self._find(account, stream).are_consumers_opened = True

    def create_consumer(self, account: str, stream: str, definition: bytes) -> bytes:
        found = self._find(account, stream)
        name = json.loads(definition)["name"]
        found.consumers[name] = TwinConsumer(definition, found)
        return self.consumer_state(account, stream, name)

    def restore_consumer(self, restore_id: str, definition: bytes, state: bytes) -> None:
        json.loads(state)
        self.create_consumer(*self.filling[restore_id], definition)

    def commit_restored_consumers(self, restore_id: str) -> list[tuple[str, str]]:
        self._find(*self.filling[restore_id])
        return []

    def begin_consumers(self, account: str, stream: str) -> bool:
        self._find(account, stream)
        return False

    def commit_consumers(self, account: str, stream: str) -> list[tuple[str, str]]:
        self._find(account, stream)
        return []

    def update_consumer(self, account: str, stream: str, definition: bytes) -> None:
        self.find_consumer(account, stream, json.loads(definition)["name"]).define(definition)

    def delete_consumer(self, account: str, stream: str, name: str) -> None:
        self.find_consumer(account, stream, name)
        del self.streams[account, stream].consumers[name]

    def consumer_state(self, account: str, stream: str, name: str) -> bytes:
        consumer = self.find_consumer(account, stream, name)
        subject = consumer.config.get("deliver_subject", "")
        return json.dumps(consumer.state(is_bound=bool(subject) and self.has_interest(account, subject))).encode()

    def reset_consumer(self, account: str, stream: str, name: str, sequence: int) -> int:
        return self.find_consumer(account, stream, name).reset(sequence)

    def unpin_consumer(self, account: str, stream: str, name: str) -> None:
        self.find_consumer(account, stream, name).pinned = None

    def first_sequence_at(self, account: str, stream: str, time_ns: int) -> int:
        return self._find(account, stream).first_at(time_ns)

    def find_consumer(self, account: str, stream: str, name: str) -> TwinConsumer:
        consumer = self._find(account, stream).consumers.get(name)
        if consumer is None:
            raise EngineError("unknown_consumer", f"there is no consumer {name}")
        return consumer

    def stream_state(self, account: str, name: str, query: bytes) -> bytes:
        return json.dumps(self._find(account, name).state(json.loads(query))).encode()

    def purge_stream(self, account: str, name: str, subject: str | None, below_sequence: int, keep: int) -> int:
        stream = self._find(account, name)
        sequences = [each for each in stream.messages if is_subset(stream.messages[each][0], subject or ">")]
        if below_sequence:
            sequences = [each for each in sequences if each < below_sequence]
        sequences = sequences[: len(sequences) - keep] if keep else sequences
        for sequence in sequences:
            del stream.messages[sequence]
        stream.settle()
        return len(sequences)

    def delete_message(self, account: str, name: str, sequence: int, erase: bool) -> bool:  # noqa: ARG002
        stream = self._find(account, name)
        found = stream.messages.pop(sequence, None) is not None
        if found:
            stream.settle()
        return found

    def begin_snapshot(self, account: str, name: str, request: bytes) -> None:
        self._find(account, name)
        self.archives.append((account, {**json.loads(request), "consumers": []}))

    def add_to_snapshot(self, snapshot_id: str, consumers: bytes) -> None:
        asked = next(asked for _, asked in self.archives if asked.get("id") == snapshot_id)
        asked["consumers"] += json.loads(consumers)

    def send_snapshot(self, snapshot_id: str) -> None:
        self.sent_snapshots.append(snapshot_id)

    def start_scan(self, account: str, name: str, request: bytes) -> None:
        self._find(account, name)
        self.archives.append((account, json.loads(request)))

    def plan_scan(self, account: str, name: str, request: bytes) -> bytes:  # noqa: ARG002
        self._find(account, name)
        return b'{"ranges":[]}'

    def scan_files(self, account: str, name: str, request: bytes) -> bytes:  # noqa: ARG002
        self._find(account, name)
        return b'{"pieces":[]}'

    def stream_hindrance(self, account: str, name: str) -> str:
        self._find(account, name)
        return ""

    def consumer_hindrances(self, account: str, stream: str, name: str) -> bytes:
        assert name in self._find(account, stream).consumers
        numbers = (
            "ack_pending",
            "full_since_ns",
            "pending",
            "matching",
            "waiting",
            "queued",
            "parked",
            "next_again_ns",
        )
        switches = ("paused", "push_bound", "flow_stalled", "rate_limited")
        return json.dumps({**dict.fromkeys((*numbers, "given_up"), 0), **dict.fromkeys(switches, False)}).encode()

    def subscribe_untaken(self, account: str, subject: str) -> int:  # noqa: ARG002
        self.untaken += 1
        return self.untaken

    def unsubscribe(self, service: int) -> bool:  # noqa: ARG002
        return True

    def start_restore(self, account: str, definition: bytes, request: bytes) -> None:  # noqa: ARG002
        self._fail()
        asked = json.loads(request)
        self.archives.append((account, asked))
        self.restores[asked["id"]] = account

    def finish_restore(self, restore_id: str, definition: bytes) -> None:
        account = self.restores.pop(restore_id)
        self.create_stream(account, definition)
        self.filling[restore_id] = (account, json.loads(definition)["config"]["name"])

    def serve_restored(self, restore_id: str) -> None:
        del self.filling[restore_id]

    def cancel_restore(self, restore_id: str) -> bool:
        filling = self.filling.pop(restore_id, None)
        if filling is not None:
            del self.streams[filling]
        return filling is not None or self.restores.pop(restore_id, None) is not None

    def has_interest(self, account: str, subject: str) -> bool:  # noqa: ARG002
        return subject in self.interest

    def publish(
        self,
        account: str,
        subject: str,
        payload: bytes,
        reply: str | None = None,
        header: bytes | None = None,
        sender: TwinRequest | None = None,  # noqa: ARG002
    ) -> int:
        if not subject or " " in subject:
            raise EngineError("options", "no subject")
        if reply is not None:
            # The real one looks for the message; here there is none.
            self.asked.append((subject, payload))
            subject, payload = reply, NO_MESSAGE
        self.published.append((account, subject, payload, header))
        return 1

    def connection(self, connection_id: int) -> bytes | None:
        found = (each for each in msgspec.json.decode(self.connections_json) if each["id"] == connection_id)
        return next((msgspec.json.encode(each) for each in found), None)

    def _find(self, account: str, name: str) -> TwinStream:
        self._fail()
        if (account, name) not in self.streams:
            raise EngineError("unknown_stream", f"there is no stream {name}")
        return self.streams[account, name]

    def _fail(self) -> None:
        if self.fail_with is not None:
            raise self.fail_with
