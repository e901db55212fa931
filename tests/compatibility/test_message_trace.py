"""Message tracing: a header asks where a message goes, and an event tells it. A dry run goes nowhere."""

from __future__ import annotations

import base64
import gzip
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.server_process import ServerProcess, run_to_end, start_server_process
from tests.compatibility.wire import RawClient

CONFIG = """
server_name: tracing
server_tags: ["one", "two"]
server_metadata: {{place: "here"}}
jetstream {{ store_dir: "{store}" }}
accounts {{
  A {{
    jetstream: enabled
    msg_trace: "account.traces"
    users: [
      {{ user: a, password: a }}
      {{
        user: limited, password: limited
        permissions: {{ publish: {{ deny: ["denied", "traces.denied"] }}, subscribe: {{ deny: "work.secret" }} }}
      }}
    ]
  }}
  B {{ users: [{{ user: b, password: b }}] }}
  C {{ msg_trace: {{ dest: "c.traces", sampling: "1%" }}, users: [{{ user: c, password: c }}] }}
  SYS {{ users: [{{ user: system, password: system }}] }}
}}
system_account: SYS
"""

TRACE_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACED = {"Nats-Trace-Dest": "traces.all"}
ONLY = {**TRACED, "Nats-Trace-Only": "true"}

# RFC 3339 with up to nine decimals.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


@pytest.fixture(scope="module")
def traced(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with accounts that are traced; the tests use subjects of their own."""
    folder = tmp_path_factory.mktemp("traced")
    process = start_server_process(server_kind, folder, config=CONFIG.format(store=folder / "store"))
    yield process
    process.stop()


class Bench:
    """A publisher, a reader of traces, and further clients, all named."""

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.server = server
        self.token = token
        self._clients: list[RawClient] = []
        self.events = self.client("a", name="events")
        self.subscribe(self.events, f"traces.{token} 1", "account.traces 2")

    def client(self, user: str = "a", **options: Any) -> RawClient:
        client = self.server.client()
        client.connect(user=user, headers=True, **{"pass": user, **options})
        self._clients.append(client)
        return client

    def subscribe(self, client: RawClient, *subscriptions: str) -> RawClient:
        client.send(b"".join(b"SUB %b\r\n" % subscription.encode() for subscription in subscriptions))
        client.expect_pong()
        return client

    def publish(
        self, client: RawClient, subject: str, headers: dict[str, str], payload: bytes = b"hello", reply: str = ""
    ) -> None:
        mine = {name: value.replace("traces.all", f"traces.{self.token}") for name, value in headers.items()}
        client.send(hpub(subject, mine, payload, reply))

    def event(self) -> dict[str, Any]:
        """Read the next event and check what is the same in all."""
        return self.checked(json.loads(self.body()))

    def body(self) -> bytes:
        frame = self.events.read_line()
        line, _, body = frame.partition(b"\r\n")
        assert re.fullmatch(rb"MSG (traces\.\w+ 1|account\.traces 2)  ?\d+", line), frame
        return body

    def checked(self, event: dict[str, Any]) -> dict[str, Any]:
        server = event.pop("server")
        assert TIME.fullmatch(server.pop("time"))
        assert server.pop("seq") > 0
        assert server.pop("feature_flags", {}).keys() <= KNOWN_FLAGS
        assert server == {
            "name": "tracing",
            "host": "127.0.0.1",
            "id": self.events.info["server_id"],
            "ver": self.events.info["version"],
            "tags": ["one", "two"],
            "metadata": {"place": "here"},
            "jetstream": True,
            "flags": 7,
        }
        for step in event["events"]:
            assert TIME.fullmatch(step.pop("ts"))
        return event

    def close(self) -> None:
        for client in self._clients:
            client.close()


KNOWN_FLAGS = {"js_ack_fc_v2", "js_api_reply_v2", "js_raft_delete_range", "js_snapshot_sources"}


def header_block(headers: dict[str, str]) -> bytes:
    return b"NATS/1.0\r\n%b\r\n" % b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())


def hpub(subject: str, headers: dict[str, str], payload: bytes, reply: str = "") -> bytes:
    block = header_block(headers)
    names = f"{subject} {reply}".strip().encode()
    return b"HPUB %b %d %d\r\n%b%b\r\n" % (names, len(block), len(block) + len(payload), block, payload)


@pytest.fixture
def bench(traced: ServerProcess, subject: bytes) -> Iterator[Bench]:
    made = Bench(traced, subject.decode())
    yield made
    made.close()


@pytest.fixture
def publisher(bench: Bench) -> RawClient:
    return bench.client("limited", name="publisher", echo=False)


def ingress(client: RawClient, subject: str, account: str = "A", **others: str) -> dict[str, Any]:
    number = client.info["client_id"]
    return {"type": "in", "kind": 0, "cid": number, "name": "publisher", "acc": account, "subj": subject, **others}


def egress(client: RawClient, name: str, subscription: str, **others: str) -> dict[str, Any]:
    number = client.info["client_id"]
    return {"type": "eg", "kind": 0, "cid": number, "name": name, "sub": subscription, **others}


def in_order(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The arrival comes first; receivers come in any order."""
    return steps[:1] + sorted(steps[1:], key=str)


@pytest.mark.parametrize("only", ["true", "1", "On", "false", ""])
def test_event_names_everybody_who_gets_the_message(bench: Bench, publisher: RawClient, only: str) -> None:
    reader = bench.subscribe(bench.client(name="reader"), "work.* 1", "work.x group 2")
    bench.subscribe(publisher, "work.x 3")

    headers = {**TRACED, "A": "1", "b": "x"} | ({"Nats-Trace-Only": only} if only else {})
    bench.publish(publisher, "work.x", headers)
    event = bench.event()

    sent = {name: [value.replace("traces.all", f"traces.{bench.token}")] for name, value in headers.items()}
    assert event.keys() == {"request", "events"}
    assert event["request"]["header"] == sent
    assert event["request"]["msgsize"] == len(header_block({name: value for name, [value] in sent.items()}) + b"hello")
    assert in_order(event["events"]) == in_order(
        [
            ingress(publisher, "work.x"),
            egress(reader, "reader", "work.*"),
            egress(reader, "reader", "work.x", queue="group"),
            egress(publisher, "publisher", "work.x", error="Not delivered because of no echo"),
        ]
    )
    is_dry_run = only in {"true", "1", "On"}
    frames = [] if is_dry_run else [reader.read_line(), reader.read_line()]
    assert (
        sorted(frame[: len(b"HMSG work.x 1")] for frame in frames)
        == [b"HMSG work.x 1", b"HMSG work.x 2"][: len(frames)]
    )
    reader.expect_pong()


def test_dry_run_does_not_count_as_a_delivery(bench: Bench, publisher: RawClient) -> None:
    reader = bench.subscribe(bench.client(), "once 1")
    reader.send(b"UNSUB 1 1\r\n")
    reader.expect_pong()

    for _ in range(3):
        bench.publish(publisher, "once", ONLY)
        assert len(bench.event()["events"]) == 2
    publisher.send(b"PUB once 2\r\nok\r\n")

    reader.expect(b"MSG once 1 2\r\nok\r\n")


def test_message_that_nobody_wants_has_only_arrived(bench: Bench, publisher: RawClient) -> None:
    bench.publish(publisher, "nobody", TRACED, reply="answer")

    assert bench.event()["events"] == [ingress(publisher, "nobody")]


@pytest.mark.parametrize("headers", [TRACED, ONLY])
def test_message_that_is_refused_is_traced_with_the_reason(
    bench: Bench, publisher: RawClient, headers: dict[str, str]
) -> None:
    bench.publish(publisher, "denied", headers)
    bench.publish(publisher, "work", headers, reply="$JS.ACK.x")

    for subject, text in (
        ("denied", 'Permissions Violation for Publish to "denied"'),
        ("work", 'Permissions Violation for Publish with Reply of "$JS.ACK.x"'),
    ):
        publisher.expect_error(text)
        assert bench.event()["events"] == [ingress(publisher, subject, error=text)]


def test_message_that_is_too_large_is_traced(bench: Bench, publisher: RawClient) -> None:
    message = hpub("work", {"Nats-Trace-Dest": f"traces.{bench.token}"}, b"x" * 2_000_000)

    publisher.send(message[:1000])

    assert bench.event()["events"] == [ingress(publisher, "work", error="maximum payload exceeded")]
    publisher.expect_error_and_closed("Maximum Payload Violation")


def test_receiver_that_may_not_see_the_message_is_named(bench: Bench, publisher: RawClient) -> None:
    reader = bench.subscribe(bench.client("limited", name="reader"), "work.* 1")

    bench.publish(publisher, "work.secret", TRACED)

    error = "Not delivered because subscription denies this subject"
    assert bench.event()["events"] == [
        ingress(publisher, "work.secret"),
        egress(reader, "reader", "work.*", error=error),
    ]
    reader.expect_pong()


@pytest.mark.parametrize("headers", [{}, {"Nats-Trace-Only": "true"}])
def test_destination_that_may_not_be_published_to_drops_the_message(
    bench: Bench, publisher: RawClient, headers: dict[str, str]
) -> None:
    reader = bench.subscribe(bench.client(), "work.denied 1")

    bench.publish(publisher, "work.denied", {"Nats-Trace-Dest": "traces.denied", **headers})
    publisher.expect_error('Permissions Violation for Publish to "traces.denied"')

    reader.expect_pong()
    bench.events.expect_pong()


@pytest.mark.parametrize("destination", ["a..b", "a.*", "a.>", ".", "a b"])
@pytest.mark.parametrize("only", [False, True])
def test_destination_that_is_no_subject_traces_nothing(
    bench: Bench, publisher: RawClient, destination: str, only: bool
) -> None:
    reader = bench.subscribe(bench.client(), "work.invalid 1")

    headers = {"Nats-Trace-Dest": destination} | ({"Nats-Trace-Only": "true"} if only else {})
    bench.publish(publisher, "work.invalid", headers)
    publisher.expect_pong()

    if not only:
        assert reader.read_line().startswith(b"HMSG work.invalid 1 ")
    reader.expect_pong()


@pytest.mark.parametrize(
    "headers",
    [
        {"Nats-Trace-Only": "true"},
        {"Nats-Trace-Dest": "trace disabled", "Nats-Trace-Only": "true"},
        {"nats-trace-dest": "traces.all", "Nats-Trace-Only": "true"},
    ],
)
def test_dry_run_without_a_destination_is_none(bench: Bench, publisher: RawClient, headers: dict[str, str]) -> None:
    reader = bench.subscribe(bench.client(), "work.plain 1")

    bench.publish(publisher, "work.plain", headers)
    publisher.expect_pong()

    assert reader.read_line().endswith(b"\r\n\r\nhello\r\n")
    bench.events.expect_pong()


@pytest.mark.parametrize("only", [False, True])
def test_header_of_old_servers_switches_tracing_off(bench: Bench, publisher: RawClient, only: bool) -> None:
    reader = bench.subscribe(bench.client(), "work.origin 1")

    headers = {**(ONLY if only else TRACED), "Nats-Trace-Origin-Account": "B"}
    bench.publish(publisher, "work.origin", headers)
    publisher.expect_pong()

    if not only:
        assert reader.read_line().endswith(b"\r\n\r\nhello\r\n")
    reader.expect_pong()
    bench.events.expect_pong()


@pytest.mark.parametrize(
    ("accepted", "encoding"), [("gzip", "gzip"), ("Snappy, gzip", "snappy"), ("s2", "snappy"), ("br", "identity")]
)
def test_event_is_compressed_as_the_publisher_accepts(
    bench: Bench, publisher: RawClient, accepted: str, encoding: str
) -> None:
    bench.publish(publisher, "work.packed", {**TRACED, "Accept-Encoding": accepted})
    frame = bench.events.read_line()

    line, _, rest = frame.partition(b"\r\n")
    header, body = rest.split(b"\r\n\r\n", 1)
    assert line.startswith(b"HMSG traces.")
    assert header == b"NATS/1.0\r\nContent-Encoding: " + encoding.encode()
    if encoding == "snappy":
        assert body.startswith(b"\xff\x06\x00\x00sNaPpY")
    else:
        plain = gzip.decompress(body[:-2]) if encoding == "gzip" else body
        assert bench.checked(json.loads(plain))["events"] == [ingress(publisher, "work.packed")]


@pytest.mark.parametrize("name", ["traceparent", "TraceParent"])
def test_trace_context_is_traced_where_the_account_says_and_delivered(
    bench: Bench, publisher: RawClient, name: str
) -> None:
    reader = bench.subscribe(bench.client(name="reader"), "work.context 1")

    bench.publish(publisher, "work.context", {name: TRACE_PARENT, "Nats-Trace-Only": "true"})

    assert bench.event()["events"] == [ingress(publisher, "work.context"), egress(reader, "reader", "work.context")]
    assert reader.read_line().startswith(b"HMSG work.context 1 ")


@pytest.mark.parametrize(
    ("user", "value"), [("limited", TRACE_PARENT[:-2] + "00"), ("limited", "junk"), ("b", TRACE_PARENT)]
)
def test_trace_context_that_is_not_sampled_or_not_wanted_is_not_traced(bench: Bench, user: str, value: str) -> None:
    publisher = bench.client(user)
    reader = bench.subscribe(bench.client("a" if user == "limited" else user), "work.unsampled 1", "account.traces 2")

    bench.publish(publisher, "work.unsampled", {"traceparent": value})

    assert reader.read_line().startswith(b"HMSG work.unsampled 1 ")
    reader.expect_pong()


def test_only_a_sample_is_traced_where_the_account_says_so(bench: Bench) -> None:
    publisher = bench.client("c")
    reader = bench.subscribe(bench.client("c"), "c.traces 1", "end 2")
    count = 1000

    for _ in range(count):
        bench.publish(publisher, "work.sampled", {"traceparent": TRACE_PARENT})
    publisher.send(b"PUB end 0\r\n\r\n")
    traces = 0
    while b" end 2 " not in (frame := b" " + reader.read_line()[4:]):
        traces += frame.startswith(b" c.traces")

    # One of a hundred, or two: far more would be everything.
    assert traces < count // 4


class Streams:
    """A stream with a transform of its subjects, and one that keeps only what consumers want."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.client = bench.subscribe(bench.client(name="streams"), f"inbox.{bench.token}.> 9")
        self.limited, self.interest = f"L{bench.token}", f"I{bench.token}"
        self.create(
            self.limited,
            subjects=[f"{self.limited}.>"],
            max_msg_size=500,
            subject_transform={"src": f"{self.limited}.a.*", "dest": f"{self.limited}.b.{{{{wildcard(1)}}}}"},
        )
        self.create(self.interest, subjects=[f"{self.interest}.>"], retention="interest")

    def create(self, name: str, **config: Any) -> None:
        assert "error" not in self.ask(f"STREAM.CREATE.{name}", {"name": name, "storage": "memory", **config})

    def ask(self, endpoint: str, request: object = None) -> dict[str, Any]:
        body = b"" if request is None else json.dumps(request).encode()
        self.client.send(
            b"PUB $JS.API.%b inbox.%b.r %d\r\n%b\r\n" % (endpoint.encode(), self.bench.token.encode(), len(body), body)
        )
        return self.answer()

    def answer(self) -> dict[str, Any]:
        answer = json.loads(self.client.read_line().partition(b"\r\n")[2])
        assert isinstance(answer, dict)
        return answer

    def messages(self, name: str) -> int:
        return int(self.ask(f"STREAM.INFO.{name}")["state"]["last_seq"])

    @property
    def reply(self) -> str:
        return f"inbox.{self.bench.token}.ack"


@pytest.fixture
def streams(bench: Bench) -> Streams:
    return Streams(bench)


def test_stream_that_stores_the_message_is_named_with_its_subject(
    bench: Bench, publisher: RawClient, streams: Streams
) -> None:
    bench.publish(publisher, f"{streams.limited}.a.1", TRACED, reply=streams.reply)
    event = bench.event()

    assert event["events"] == [
        ingress(publisher, f"{streams.limited}.a.1"),
        {"type": "js", "stream": streams.limited, "subject": f"{streams.limited}.b.1"},
    ]
    assert streams.answer() == {"stream": streams.limited, "seq": 1}
    stored = streams.ask(f"STREAM.MSG.GET.{streams.limited}", {"seq": 1})["message"]
    assert header_of(stored) == b"NATS/1.0\r\nNats-Trace-Dest: trace disabled\r\n\r\n"


def test_message_stored_because_of_a_trace_context_says_that_it_was_traced(
    bench: Bench, publisher: RawClient, streams: Streams
) -> None:
    bench.publish(publisher, f"{streams.limited}.c", {"traceparent": TRACE_PARENT}, reply=streams.reply)

    assert bench.event()["events"][1] == {
        "type": "js",
        "stream": streams.limited,
        "subject": f"{streams.limited}.c",
    }
    assert streams.answer()["seq"] == 1
    header = header_of(streams.ask(f"STREAM.MSG.GET.{streams.limited}", {"seq": 1})["message"])
    lines = header.decode().split("\r\n")
    assert sorted(lines) == sorted(
        ["NATS/1.0", f"traceparent: {TRACE_PARENT}", "Nats-Trace-Dest: trace disabled", "", ""]
    )


def test_dry_run_is_stored_nowhere_and_not_acknowledged(bench: Bench, publisher: RawClient, streams: Streams) -> None:
    bench.publish(publisher, f"{streams.limited}.a.1", ONLY, reply=streams.reply)
    event = bench.event()

    assert event["events"][1:] == [
        {"type": "js", "stream": streams.limited, "subject": f"{streams.limited}.b.1"},
    ]
    assert streams.messages(streams.limited) == 0


def test_stream_that_nobody_reads_says_so(bench: Bench, publisher: RawClient, streams: Streams) -> None:
    for headers in (ONLY, TRACED):
        bench.publish(publisher, f"{streams.interest}.x", headers, reply=streams.reply)

        assert bench.event()["events"][1:] == [
            {"type": "js", "stream": streams.interest, "subject": f"{streams.interest}.x", "nointerest": True}
        ]
    assert streams.answer() == {"stream": streams.interest, "seq": 1}


@pytest.mark.parametrize("traced_headers", [TRACED, ONLY])
@pytest.mark.parametrize(
    ("headers", "payload_bytes", "error", "error_code"),
    [
        ({}, 600, "maximum payload exceeded", 10054),
        ({"Nats-Expected-Stream": "OTHER"}, 5, "expected stream does not match", 10060),
        ({"Nats-Expected-Last-Sequence": "77"}, 5, "last sequence mismatch: 77 vs 1", 10071),
        ({"Nats-Expected-Last-Subject-Sequence": "7"}, 5, "last sequence by subject mismatch: 7 vs 1", 10071),
        ({"Nats-Expected-Last-Msg-Id": "other"}, 5, 'last msgid mismatch: "other" vs "first"', 10070),
        ({"Nats-TTL": "5s"}, 5, "message TTL disabled", 10166),
        ({"Nats-Incr": "1"}, 5, "message counters is disabled (10168)", 10168),
    ],
)
def test_stream_that_refuses_the_message_says_why(
    bench: Bench,
    publisher: RawClient,
    streams: Streams,
    traced_headers: dict[str, str],
    headers: dict[str, str],
    payload_bytes: int,
    error: str,
    error_code: int,
) -> None:
    subject = f"{streams.limited}.b.1"
    bench.publish(publisher, subject, {"Nats-Msg-Id": "first"}, reply=streams.reply)
    assert streams.answer()["seq"] == 1

    bench.publish(publisher, subject, {**traced_headers, **headers}, b"x" * payload_bytes, streams.reply)

    assert bench.event()["events"] == [
        ingress(publisher, subject),
        {"type": "js", "stream": streams.limited, "error": error},
    ]
    assert streams.answer()["error"]["err_code"] == error_code
    assert streams.messages(streams.limited) == 1


@pytest.mark.parametrize("traced_headers", [TRACED, ONLY])
def test_duplicate_is_named_as_such(
    bench: Bench, publisher: RawClient, streams: Streams, traced_headers: dict[str, str]
) -> None:
    subject = f"{streams.limited}.b.1"
    bench.publish(publisher, subject, {"Nats-Msg-Id": "first"}, reply=streams.reply)
    bench.publish(publisher, subject, {**traced_headers, "Nats-Msg-Id": "first"}, reply=streams.reply)

    assert bench.event()["events"][1:] == [{"type": "js", "stream": streams.limited, "error": "msgid is duplicate"}]
    assert [streams.answer().get("duplicate", False) for _ in range(2)] == [False, True]


def test_dry_run_of_a_request_to_the_server_does_nothing(bench: Bench, publisher: RawClient, streams: Streams) -> None:
    subject = f"$JS.API.STREAM.DELETE.{streams.limited}"

    bench.publish(publisher, subject, ONLY, b"", streams.reply)

    assert bench.event()["events"] == [
        ingress(publisher, subject),
        {"type": "si", "acc": "SYS", "from": subject, "to": subject},
    ]
    assert streams.messages(streams.limited) == 0


def test_request_to_the_server_is_traced_and_carried_out(bench: Bench, publisher: RawClient, streams: Streams) -> None:
    subject = f"$JS.API.STREAM.DELETE.{streams.limited}"

    bench.publish(publisher, subject, TRACED, b"", streams.reply)

    assert [step["type"] for step in bench.event()["events"]] == ["in", "si"]
    assert streams.answer()["success"] is True


def test_events_can_be_kept_in_a_stream(bench: Bench, publisher: RawClient, streams: Streams) -> None:
    name = f"T{bench.token}"
    streams.create(name, subjects=[f"traces.{bench.token}"])

    bench.publish(publisher, "work.kept", ONLY)
    bench.event()

    # It is stored a moment after a subscriber has it.
    deadline = time.monotonic() + 20
    while streams.messages(name) == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert streams.messages(name) == 1


def header_of(stored: dict[str, Any]) -> bytes:
    return base64.b64decode(stored["hdrs"])


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ('msg_trace: "a.*"', "is not valid"),
        ("msg_trace: {dest: 5}", "dest"),
        ("msg_trace: {dest: x, sampling: 101}", "101 is invalid"),
        ('msg_trace: {dest: x, sampling: "often"}', "sampling"),
        ("msg_trace: [x]", "xpected account message trace"),
        ("msg_trace: {dest: x, other: 1}", "other"),
    ],
)
def test_wrong_settings_of_an_account_are_refused(server_kind: str, tmp_path: Path, setting: str, reason: str) -> None:
    file = tmp_path / "server.conf"
    file.write_text(f"accounts {{ A {{ {setting} }} }}")

    ended = run_to_end(server_kind, ["-t", "-c", str(file)], tmp_path)

    assert ended.returncode == 1
    assert reason in ended.stdout + ended.stderr


def test_reload_changes_where_traces_go(start_server: Callable[..., ServerProcess]) -> None:
    def config(destination: str) -> str:
        return f"accounts {{ A {{ msg_trace: {destination}, users: [{{user: a, password: a}}] }} }}, no_auth_user: a"

    server = start_server(config=config("first"))
    with server.client() as client:
        client.connect(headers=True)
        client.send(b"SUB first 1\r\nSUB second 2\r\n")
        client.expect_pong()

        client.send(hpub("x", {"traceparent": TRACE_PARENT}, b""))
        assert client.read_line().startswith(b"MSG first 1 ")
        (server.folder / "server.conf").write_text(config("second"))
        server.signal(signal.SIGHUP)
        server.wait_for_log("Reloaded server configuration")
        client.send(hpub("x", {"traceparent": TRACE_PARENT}, b""))

        assert client.read_line().startswith(b"MSG second 2 ")
