"""Frames: parses the messages in a piece of what a server sent, many at a time.

nats-py handles each message by itself, which costs more than most programs do with it. Here one call parses everything
that one read returned. No sockets.

```python
reader = FrameReader()
for subject, reply, headers, payload in reader.feed(connection.receive()):
    ...
```

Invariant: bytes that are not a whole frame yet wait in `_rest`, at most one frame of them; in whatever pieces the bytes
are fed, the same messages come out.
"""

from typing import TypeAlias

from jetlake.errors import ClientError

__all__ = ["FrameReader", "Message", "header_value", "status_of"]

Message: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""Subject, reply, the whole block of headers (empty without one), payload."""

LINE_BYTES_MAX = 64 * 1024
"""A line that does not end within this many bytes does not come from a NATS server."""

PAYLOAD_BYTES_MAX = 64 * 1024 * 1024
"""The largest payload any server can be set to; a larger size is a broken line."""

HEADS_KEPT_MAX = 256
"""Beginnings of lines kept; a client that subscribes to more subjects than that has them parsed each time."""

COMPLAINTS_MAX = 100
"""Errors of a server kept until the caller reads them."""

_LINE_END = b"\r\n"
_MESSAGE = ord("M")
_MESSAGE_WITH_HEADERS = ord("H")


class FrameReader:
    """Takes apart what one connection receives."""

    def __init__(self, rest: bytes = b"") -> None:
        self._rest = rest
        # Subject and reply by the beginning of a line.
        self._known: dict[bytes, tuple[bytes, bytes]] = {}
        # PINGs that wait for a PONG, PONGs that came, and what the server complained of, since they were last read.
        self.pings = 0
        self.pongs = 0
        self.complaints: list[str] = []

    def take_rest(self) -> bytes:
        """Return and forget the bytes that are not a whole frame yet."""
        rest, self._rest = self._rest, b""
        return rest

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that are complete. Raises `ClientError` for bytes that are not NATS."""
        buffer = self._rest + data if self._rest else data
        messages: list[Message] = []
        known = self._known
        position, size = 0, len(buffer)
        while (line_end := buffer.find(_LINE_END, position)) >= 0:
            kind = buffer[position]
            if kind == _MESSAGE:
                # What stands before the size is the same for all messages on one subject.
                space = buffer.rfind(b" ", position, line_end)
                head = buffer[position + 4 : space]
                subject, reply = known.get(head) or self._remember(head)
                start = line_end + 2
                try:
                    end = start + int(buffer[space + 1 : line_end])
                except ValueError as error:
                    raise ClientError("the other end is not a NATS server: a message has no size") from error
                if not start <= end <= start + PAYLOAD_BYTES_MAX:
                    raise ClientError("the other end is not a NATS server: the size of a message is impossible")
                if end + 2 > size:
                    break
                messages.append((subject, reply, b"", buffer[start:end]))
                position = end + 2
            elif kind == _MESSAGE_WITH_HEADERS:
                words = buffer[position + 5 : line_end].split()
                start = line_end + 2
                end = start + _size_of(words[-1:])
                if end + 2 > size:
                    break
                body = start + _size_of(words[-2:-1])
                reply = words[2] if len(words) > 4 else b""
                messages.append((words[0], reply, buffer[start:body], buffer[body:end]))
                position = end + 2
            else:
                self._note(buffer[position:line_end])
                position = line_end + 2
        self._rest = buffer[position:]
        if line_end < 0 and len(self._rest) > LINE_BYTES_MAX:
            raise ClientError("the other end is not a NATS server: a line of it has no end")
        return messages

    def _remember(self, head: bytes) -> tuple[bytes, bytes]:
        words = head.split()
        if len(words) < 2:
            raise ClientError("the other end is not a NATS server: a message has no subject")
        parts = (words[0], words[2] if len(words) > 2 else b"")
        if len(self._known) >= HEADS_KEPT_MAX:
            self._known.clear()
        self._known[head] = parts
        return parts

    def _note(self, line: bytes) -> None:
        word = line.partition(b" ")[0].upper()
        if word == b"PING":
            self.pings += 1
        elif word == b"PONG":
            self.pongs += 1
        elif word == b"-ERR" and len(self.complaints) < COMPLAINTS_MAX:
            self.complaints.append(line[5:].decode(errors="replace").strip("' "))


def _size_of(words: list[bytes]) -> int:
    try:
        size = int(words[0])
    except (IndexError, ValueError) as error:
        raise ClientError("the other end is not a NATS server: a message has no size") from error
    if not 0 <= size <= PAYLOAD_BYTES_MAX:
        raise ClientError(f"the other end announced a message of {size} bytes: it is not a NATS server")
    return size


def header_value(headers: bytes, name: bytes) -> str:
    """Return the first value of a header in a block, empty if it is not there; names are compared as they are."""
    at = headers.find(b"\r\n" + name + b":")
    if at < 0:
        return ""
    start = at + len(name) + 3
    return headers[start : headers.find(_LINE_END, start)].strip().decode(errors="replace")


def status_of(headers: bytes) -> str:
    """Return the number after `NATS/1.0`; empty on an ordinary message."""
    line = headers.split(_LINE_END, 1)[0].removeprefix(b"NATS/1.0").strip()
    return line.split(b" ")[0].decode(errors="replace")
