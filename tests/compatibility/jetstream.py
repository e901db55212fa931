"""A client of JetStream for these tests: whole answers out of one connection, with the bytes of headers and payload.

It speaks the raw protocol, because most of what these tests compare is lost in a client library: the bytes of a
publish acknowledgement, the order of header lines, fields that are zero, answers that do not come. A test module
takes the fixtures by giving them its own names; `js` is connected to one server per module, so each test has a stream
of its own (`stream`, the name, with which its subjects begin).

    js, js_server, stream = jetstream.js, jetstream.js_server, jetstream.stream

    def test_first_message_has_sequence_one(js: JetStream, stream: str) -> None:
        js.create(stream)

        assert js.publish(f"{stream}.a", b"hello") == {"stream": stream, "seq": 1}
"""

from __future__ import annotations

import itertools
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import pytest

from tests.compatibility.server_process import ServerProcess, start_server_process
from tests.compatibility.wire import TIMEOUT_SECONDS, shown

API = "$JS.API."
TYPE = "io.nats.jetstream.api.v1."
ADVISORY = "$JS.EVENT.ADVISORY."
ADVISORY_TYPE = "io.nats.jetstream.advisory.v1."
ZERO_TIME = "0001-01-01T00:00:00Z"

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")

# A condition of the server is asked for again after this time.
POLL_SECONDS = 0.01

Json: TypeAlias = dict[str, Any]
Headers: TypeAlias = "bytes | Mapping[str, str] | None"
Body: TypeAlias = "bytes | str | Mapping[str, Any] | list[Any] | None"

_stream_numbers = itertools.count(1)


@dataclass(frozen=True)
class Message:
    """A message as it was received; `headers` is the whole block, b"" without one."""

    subject: str
    reply: str
    headers: bytes
    data: bytes

    def json(self) -> Json:
        assert self.data.startswith(b"{"), f"expected an object, received {shown(self.headers + self.data)}"
        return dict(json.loads(self.data))

    @property
    def status(self) -> str:
        """The text behind `NATS/1.0 `, as "404 Message Not Found"; empty on an ordinary message."""
        return self.headers.split(b"\r\n", 1)[0].removeprefix(b"NATS/1.0").strip().decode()

    def header(self, name: str) -> str | None:
        for line in self.headers.split(b"\r\n"):
            if line.startswith(name.encode() + b": "):
                return line.split(b": ", 1)[1].decode()
        return None


class JetStream:
    """One connection to a server with JetStream."""

    def __init__(self, server: ServerProcess, **options: Any) -> None:
        self.server = server
        self.raw = server.client()
        self.raw.connect(headers=True, no_responders=True, **options)
        self._request_numbers = itertools.count(1)
        self._inbox = f"_INBOX.{self.raw.info['client_id']}"
        self._subscription_numbers = itertools.count(2)
        self._waiting: list[Message] = []
        self.raw.send(f"SUB {self._inbox}.* 1\r\n".encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.raw.close()

    # Messages

    def send(self, subject: str, payload: bytes = b"", headers: Headers = None, reply: str = "") -> None:
        block = header_block(headers)
        words = f"{subject} {reply} " if reply else f"{subject} "
        if block:
            self.raw.send(
                f"HPUB {words}{len(block)} {len(block) + len(payload)}\r\n".encode() + block + payload + b"\r\n"
            )
        else:
            self.raw.send(f"PUB {words}{len(payload)}\r\n".encode() + payload + b"\r\n")

    def new_inbox(self) -> str:
        return f"{self._inbox}.{next(self._request_numbers)}"

    def subscribe(self, subject: str) -> None:
        """Subscribe; `next` gives what arrives. The subscription is known to the server on return."""
        self.raw.send(f"SUB {subject} {next(self._subscription_numbers)}\r\n".encode())
        self.flush()

    def flush(self) -> None:
        """Wait until the server has read everything sent so far."""
        self.raw.send(b"PING\r\n")
        while (frame := self.raw.read_line()) != b"PONG\r\n":
            self._waiting.append(parse_message(frame))

    def next(self, subject: str, seconds: float = TIMEOUT_SECONDS) -> Message:
        """Return the next message on `subject`, which may have wildcards."""
        matches = subject_matcher(subject)
        for index, message in enumerate(self._waiting):
            if matches(message.subject):
                return self._waiting.pop(index)
        deadline = time.monotonic() + seconds
        while True:
            try:
                frame = self.raw.read_frame(max(deadline - time.monotonic(), 0.001))
            except TimeoutError:
                raise AssertionError(f"nothing on {subject}; waiting: {self._waiting}") from None
            assert frame, "the server closed the connection"
            message = parse_message(frame)
            if matches(message.subject):
                return message
            self._waiting.append(message)

    def received(self, subject: str) -> list[Message]:
        """Return the messages on `subject` that are here already, after a round trip."""
        self.flush()
        matches = subject_matcher(subject)
        found = [message for message in self._waiting if matches(message.subject)]
        self._waiting = [message for message in self._waiting if not matches(message.subject)]
        return found

    def request(self, subject: str, payload: bytes = b"", headers: Headers = None) -> Message:
        inbox = self.new_inbox()
        self.send(subject, payload, headers, inbox)
        return self.next(inbox)

    def request_many(self, subject: str, payload: bytes = b"", headers: Headers = None) -> list[Message]:
        """Return all answers up to the first that has a status."""
        inbox = self.new_inbox()
        self.send(subject, payload, headers, inbox)
        answers = [self.next(inbox)]
        while not answers[-1].status:
            answers.append(self.next(inbox))
        return answers

    # The interface below $JS.API

    def api_message(self, name: str, body: Body = None, headers: Headers = None) -> Message:
        return self.request(API + name, encode_body(body), headers)

    def api(self, name: str, body: Body = None, headers: Headers = None) -> Json:
        """Return the answer of one endpoint, named without `$JS.API.`."""
        return self.api_message(name, body, headers).json()

    def error(self, name: str, body: Body = None, headers: Headers = None) -> tuple[int, int, str]:
        """Return code, error code and description of a refusal."""
        return error_of(self.api(name, body, headers))

    def is_silent(self, name: str, body: Body = None) -> bool:
        """Whether an endpoint gives no answer: requests are answered in order, so a later one's answer comes alone."""
        inbox = self.new_inbox()
        self.send(API + name, encode_body(body), reply=inbox)
        self.api("STREAM.NAMES")
        return not self.received(inbox)

    # Streams

    def try_create(self, stream: str, **config: Any) -> Json:
        """Return the answer to a request for a stream that has all subjects beginning with its name."""
        subjects = {} if "mirror" in config or "subjects" in config else {"subjects": [f"{stream}.>"]}
        return self.api(f"STREAM.CREATE.{stream}", {"name": stream, **subjects, **config})

    def create(self, stream: str, **config: Any) -> Json:
        answer = self.try_create(stream, **config)
        assert "error" not in answer, answer
        return answer

    def create_error(self, stream: str, **config: Any) -> tuple[int, int, str]:
        return error_of(self.try_create(stream, **config))

    def try_update(self, stream: str, **changes: Any) -> Json:
        """Return the answer to an update with the present configuration and `changes`."""
        return self.api(f"STREAM.UPDATE.{stream}", {**self.config(stream), **changes})

    def update(self, stream: str, **changes: Any) -> Json:
        answer = self.try_update(stream, **changes)
        assert "error" not in answer, answer
        return answer

    def info(self, stream: str, body: Body = None) -> Json:
        answer = self.api(f"STREAM.INFO.{stream}", body)
        assert "error" not in answer, answer
        return answer

    def config(self, stream: str) -> Json:
        return dict(self.info(stream)["config"])

    def state(self, stream: str, body: Body = None) -> Json:
        return dict(self.info(stream, body)["state"])

    def sequences(self, stream: str) -> list[int]:
        """Return the sequences that are stored."""
        state = self.state(stream, {"deleted_details": True})
        deleted = set(state.get("deleted") or [])
        return [
            number
            for number in range(state["first_seq"], state["last_seq"] + 1)
            if state["messages"] and number not in deleted
        ]

    def wait_for_state(self, stream: str, condition: Callable[[Json], bool]) -> Json:
        """Ask for the state until it fulfils `condition`."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition(state := self.state(stream)):
            assert time.monotonic() < deadline, f"the state stays {state}"
            time.sleep(POLL_SECONDS)
        return state

    def get(self, stream: str, **request: Any) -> Json:
        """Return a stored message as STREAM.MSG.GET shows it."""
        answer = self.api(f"STREAM.MSG.GET.{stream}", request)
        assert "error" not in answer, answer
        return dict(answer["message"])

    def publish_message(self, subject: str, payload: bytes = b"", headers: Headers = None) -> Message:
        return self.request(subject, payload, headers)

    def publish_bytes(self, subject: str, payload: bytes = b"", headers: Headers = None) -> bytes:
        """Return the bytes of the acknowledgement."""
        return self.request(subject, payload, headers).data

    def publish(self, subject: str, payload: bytes = b"", headers: Headers = None) -> Json:
        """Return the acknowledgement."""
        return self.request(subject, payload, headers).json()

    def publish_error(self, subject: str, payload: bytes = b"", headers: Headers = None) -> tuple[int, int, str]:
        return error_of(self.publish(subject, payload, headers))

    def publish_code(self, subject: str, payload: bytes = b"", headers: Headers = None) -> int:
        """Return the error code of a refusal, 0 when the message was stored."""
        acknowledgement = self.publish(subject, payload, headers)
        return int(acknowledgement["error"]["err_code"]) if "error" in acknowledgement else 0


def header_block(headers: Headers) -> bytes:
    """Return the block; bytes are the lines between `NATS/1.0` and the empty line, each with its CRLF."""
    if headers is None:
        return b""
    lines = headers if isinstance(headers, bytes) else header_lines(headers)
    return b"NATS/1.0\r\n" + lines + b"\r\n"


def header_lines(headers: Mapping[str, str]) -> bytes:
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())


def encode_body(body: Body) -> bytes:
    if body is None:
        return b""
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def parse_message(frame: bytes) -> Message:
    line, _, rest = frame.partition(b"\r\n")
    words = line.decode().split(" ")
    assert words[0] in ("MSG", "HMSG"), f"expected a message, received {shown(frame)}"
    sizes = 2 if words[0] == "HMSG" else 1
    header_bytes = int(words[-2]) if sizes == 2 else 0
    reply = words[3] if len(words) - sizes == 4 else ""
    return Message(words[1], reply, rest[:header_bytes], rest[header_bytes:-2])


def subject_matcher(pattern: str) -> Callable[[str], bool]:
    expression = re.escape(pattern).replace(r"\*", r"[^.]+")
    expression = re.sub(r"^>$|(?<=\.)>$", ".+", expression)
    return lambda subject: re.fullmatch(expression, subject) is not None


def error_of(answer: Json) -> tuple[int, int, str]:
    assert "error" in answer, f"expected a refusal, received {answer}"
    error = answer["error"]
    return error["code"], error["err_code"], error.get("description", "")


def normal(value: Any) -> Any:
    """Return a JSON value with what differs from run to run replaced: times, ids, and the server's version."""
    if isinstance(value, dict):
        return {
            key: "..." if key in ("_nats.ver", "id", "rtt", "port") else normal(inner) for key, inner in value.items()
        }
    if isinstance(value, list):
        return [normal(inner) for inner in value]
    if isinstance(value, str) and value != ZERO_TIME and TIME.fullmatch(value):
        return "TIME"
    return value


# Fixtures


def start_jetstream_server(
    kind: str, folder: Path, store: Path | None = None, config: str | None = None, jetstream: str = ""
) -> ServerProcess:
    """Start a server whose store is `store` (by default below `folder`) with more lines for its jetstream block."""
    block = f'jetstream {{ store_dir: "{store or folder / "store"}"\n{jetstream} }}\n'
    return start_server_process(kind, folder, config=block + (config or ""))


@pytest.fixture(scope="module")
def js_server(server_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server with JetStream, shared by the tests of a module."""
    process = start_jetstream_server(server_kind, tmp_path_factory.mktemp(server_kind))
    yield process
    process.stop()


@pytest.fixture
def js(js_server: ServerProcess) -> Iterator[JetStream]:
    with JetStream(js_server) as jetstream:
        yield jetstream


@pytest.fixture
def start_jetstream(
    server_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., ServerProcess]]:
    """A function that starts a further server with JetStream (`store`, `config`, `jetstream`), stopped at the end."""
    processes: list[ServerProcess] = []

    def start(store: Path | None = None, config: str | None = None, jetstream: str = "") -> ServerProcess:
        folder = tmp_path_factory.mktemp(server_kind)
        processes.append(start_jetstream_server(server_kind, folder, store, config, jetstream))
        return processes[-1]

    yield start
    for process in processes:
        process.stop()


@pytest.fixture
def stream() -> str:
    """The name of a stream nobody else uses."""
    return f"S{next(_stream_numbers)}"
