"""`Recorder`: keeps every message that is published to a server, so that a test can assert on it.

```python
with Recorder(server) as published:
    place_order(server.url, 42)
    published.assert_published("orders.*", count=1)
```

It subscribes to `>` (or to a given subject) on a plain socket and reads in a thread, so it works with any client. While
it records, requests to subjects without a responder are not refused at once, because the recorder is subscribed.

Invariant: an assertion sees everything that a client had flushed before it.
"""

import json
import re
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

import msgspec

from jetlake.errors import ClientError, ConfigurationError
from jetlake.shared.subjects import matches

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Published", "Recorder"]

MESSAGES_MAX = 1_000_000
"""Messages that are kept: more in one test are a mistake, and must not take all memory."""

ANSWER_S_MAX = 10.0
"""How long the server may take to answer a PING, on a machine that is busy with other tests."""

WAIT_S = 5.0
"""How long an assertion waits for messages that are still on their way."""

RECEIVE_BYTES = 65_536

SHOWN_MAX = 20
"""Messages that a failed assertion shows."""

_TO_WHOM = rb"(?P<subject>\S+) \S+ (?:(?P<reply>\S+) )?"
_PLAIN_HEAD = re.compile(rb"MSG " + _TO_WHOM + rb"(?P<headers>)(?P<size>\d+)\r\n")
# Of its own, so that the length of the headers is not taken for a reply.
_HEAD_WITH_HEADERS = re.compile(rb"HMSG " + _TO_WHOM + rb"(?P<headers>\d+) (?P<size>\d+)\r\n")
_LINE = re.compile(rb"([^\r\n]*)\r\n")


class ReachableServer(Protocol):
    """A running `jetlake.Server`, or something like it."""

    @property
    def url(self) -> str: ...

    def login(self) -> dict[str, str]: ...


class Published(msgspec.Struct, frozen=True):
    """One message that was published."""

    subject: str
    data: bytes
    headers: dict[str, str] = {}
    reply: str = ""

    def text(self) -> str:
        """Return the payload as text."""
        return self.data.decode()

    def json(self) -> Any:
        """Return the payload as the JSON value it is."""
        return msgspec.json.decode(self.data)


class Recorder:
    """Records from `start` to `stop`; a context manager."""

    def __init__(self, server: ReachableServer, subjects: "Sequence[str]" = (">",)) -> None:
        if not subjects:
            raise ConfigurationError('nothing would be recorded: give subjects, such as ["orders.>"]')
        self._server = server
        self._subjects = tuple(subjects)
        self._messages: list[Published] = []
        self._pongs = 0
        self._failure = ""
        self._changed = threading.Condition()
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Subscribe. Returns when the server knows of it. Raises `ClientError`."""
        address = urlsplit(self._server.url)
        try:
            self._socket = socket.create_connection((address.hostname or "", address.port or 0), ANSWER_S_MAX)
        except OSError as error:
            raise ClientError(f"cannot record at {self._server.url}: {error}; is the server running?") from error
        login = {"auth_token" if name == "token" else name: word for name, word in self._server.login().items()}
        if "password" in login:
            login["pass"] = login.pop("password")
        options = {"verbose": False, "pedantic": False, "headers": True, "protocol": 1, "name": "jetlake recorder"}
        lines = [f"CONNECT {json.dumps(options | login)}\r\n"]
        lines += [f"SUB {subject} {number}\r\n" for number, subject in enumerate(self._subjects, 1)]
        self._socket.settimeout(None)
        self._socket.sendall("".join(lines).encode())
        self._thread = threading.Thread(target=self._read, args=(self._socket,), name="jetlake-recorder", daemon=True)
        self._thread.start()
        self._synchronise()
        return self

    def stop(self) -> None:
        """End the recording; what was recorded stays. Harmless when repeated."""
        if self._socket is None or self._thread is None:
            return
        # The server may have gone first.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(ANSWER_S_MAX)
        self._socket.close()
        self._socket = self._thread = None

    def messages(self, pattern: str = ">") -> list[Published]:
        """Return what was published so far on subjects that a pattern with `*` and `>` means, in order."""
        self._synchronise()
        with self._changed:
            return self._matching(pattern)

    def wait_for(self, pattern: str, count: int = 1, *, timeout_s: float = WAIT_S) -> list[Published]:
        """Wait until at least `count` messages were published, and return them. Raises `AssertionError`."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while len(found := self._matching(pattern)) < count and not self._failure:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not self._changed.wait(left_s):
                    break
        if len(found) < count:
            raise AssertionError(self._explanation(pattern, f"{count} or more", found))
        return found

    def assert_published(
        self, pattern: str, *, count: int | None = None, data: object = None, timeout_s: float = WAIT_S
    ) -> list[Published]:
        """Assert that messages were published, and return them; waits up to `timeout_s` for them.

        `count` is exact; without it one or more will do. `data` must be the payload of one of them: bytes, text, or a
        value that its JSON equals.
        """
        if count == 0:
            self.assert_not_published(pattern)
            return []
        self.wait_for(pattern, count or 1, timeout_s=timeout_s)
        found = self.messages(pattern)
        if count is not None and len(found) != count:
            raise AssertionError(self._explanation(pattern, str(count), found))
        if data is not None and not any(_is_payload(message, data) for message in found):
            raise AssertionError(self._explanation(pattern, f"one with the payload {data!r}", found))
        return found

    def assert_not_published(self, pattern: str = ">") -> None:
        """Assert that nothing was published on these subjects so far."""
        found = self.messages(pattern)
        if found:
            raise AssertionError(self._explanation(pattern, "none", found))

    def clear(self) -> None:
        """Forget what was recorded so far."""
        self._synchronise()
        with self._changed:
            self._messages.clear()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()

    def _matching(self, pattern: str) -> list[Published]:
        return [message for message in self._messages if matches(pattern, message.subject)]

    def _synchronise(self) -> None:
        """Wait until everything that the server had before this call has been read."""
        if self._socket is None:
            return
        with self._changed:
            wanted = self._pongs + 1
        try:
            self._socket.sendall(b"PING\r\n")
        except OSError as error:
            raise ClientError(f"the recorder has lost {self._server.url}: {error}") from error
        with self._changed:
            if not self._changed.wait_for(lambda: self._pongs >= wanted or self._failure, ANSWER_S_MAX):
                raise ClientError(f"{self._server.url} did not answer the recorder within {ANSWER_S_MAX:g} s")
            if self._failure and self._pongs < wanted:
                raise ClientError(f"the recorder has lost {self._server.url}: {self._failure}")

    def _read(self, connection: socket.socket) -> None:
        buffer = bytearray()
        while True:
            try:
                received = connection.recv(RECEIVE_BYTES)
            except OSError as error:
                received, reason = b"", str(error)
            else:
                reason = "the connection was closed"
            if not received:
                with self._changed:
                    self._failure = self._failure or reason
                    self._changed.notify_all()
                return
            buffer += received
            with self._changed:
                self._read_frames(buffer, connection)
                self._changed.notify_all()

    def _read_frames(self, buffer: bytearray, connection: socket.socket) -> None:
        """Take everything that is complete out of the buffer."""
        position = 0
        while True:
            head = _PLAIN_HEAD.match(buffer, position) or _HEAD_WITH_HEADERS.match(buffer, position)
            if head is not None:
                end = head.end() + int(head["size"])
                if len(buffer) < end + 2:
                    break
                self._keep(head, bytes(buffer[head.end() : end]))
                position = end + 2
                continue
            line = _LINE.match(buffer, position)
            if line is None:
                break
            position = line.end()
            if line[1] == b"PING":
                connection.sendall(b"PONG\r\n")
            elif line[1] == b"PONG":
                self._pongs += 1
            elif line[1].startswith(b"-ERR"):
                self._failure = line[1].decode(errors="replace")
        del buffer[:position]

    def _keep(self, head: "re.Match[bytes]", content: bytes) -> None:
        if len(self._messages) >= MESSAGES_MAX:
            self._failure = f"more than {MESSAGES_MAX:,} messages were published: record fewer subjects"
            return
        headers_bytes = int(head["headers"] or 0)
        self._messages.append(
            Published(
                subject=head["subject"].decode(errors="replace"),
                data=content[headers_bytes:],
                headers=_headers(content[:headers_bytes]),
                reply=(head["reply"] or b"").decode(errors="replace"),
            )
        )

    def _explanation(self, pattern: str, wanted: str, found: list[Published]) -> str:
        shown = found or self._messages
        lines = [f"  {message.subject}: {message.data[:60]!r}" for message in shown[:SHOWN_MAX]]
        if len(shown) > SHOWN_MAX:
            lines.append(f"  and {len(shown) - SHOWN_MAX:,} more")
        which = "they are" if found else "on other subjects there are"
        rest = f"; {which}:\n" + "\n".join(lines) if lines else "; nothing at all was published"
        failure = f" ({self._failure})" if self._failure else ""
        return f"expected {wanted} published on {pattern!r}, found {len(found)}{failure}{rest}"


def _headers(block: bytes) -> dict[str, str]:
    lines = block.decode(errors="replace").split("\r\n")[1:]
    return {name.strip(): value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}


def _is_payload(message: Published, wanted: object) -> bool:
    if isinstance(wanted, bytes):
        return message.data == wanted
    if isinstance(wanted, str):
        return message.data == wanted.encode()
    try:
        return bool(message.json() == wanted)
    except msgspec.DecodeError:
        return False
