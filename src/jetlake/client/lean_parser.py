"""`LeanParser`: reads the protocol for a connection of nats-py, and hands chosen subscriptions their messages at once.

nats-py parses every message with two regular expressions, decodes its headers into a dictionary, puts it on a queue
and wakes a task: some 60 µs per message. Reading all keys of a bucket or the chunks of an object needs none of that.
A subscription with a receiver or a sink gets the bytes of its messages from inside the parser, which costs some 2 µs;
all other subscriptions work as before.

```python
parser = LeanParser.of(client)
parser.receivers[sid] = on_message
```

Invariant: between two calls of `parse`, either `_rest` holds the beginning of a line and no message is under way, or
`_head` is the message whose body is being collected in `_parts`, and `_missing_bytes` is what is still to come of it.
"""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from nats.aio.client import Client

__all__ = ["LeanParser", "RawMessage", "Receiver", "Sink"]

Receiver = Callable[[bytes, bytes, bytes, bytes], None]
"""Gets subject, reply, the whole block of headers (empty without one) and the payload. Must not raise."""

RawMessage = tuple[bytes, bytes, bytes, bytes]
"""Subject, reply, headers and payload of a message."""


class Sink(Protocol):
    """Where the messages of a subscription are collected; `notify` is called once for all that one read has brought."""

    messages: list[RawMessage]

    def notify(self) -> None: ...


Head = tuple[bytes, bytes, bytes, int, int]
"""Subject, sid, reply, bytes of headers, and bytes of headers and payload together."""

LINE_BYTES_MAX = 64 * 1024
"""A protocol line that does not end within this many bytes does not come from a NATS server."""

_LINE_END = b"\r\n"
_M, _H = ord("M"), ord("H")


class LeanParser:
    """Takes the place of nats-py's own parser on one connection."""

    def __init__(self, client: "Client") -> None:
        self._client: Any = client
        self.receivers: dict[bytes, Receiver] = {}
        self.sinks: dict[bytes, Sink] = {}
        # The `Channel` that uses it, of which there is one for each connection.
        self.channel: Any = None
        self._rest = b""
        self._head: Head | None = None
        self._parts: list[bytes] = []
        self._missing_bytes = 0

    @classmethod
    def of(cls, client: "Client") -> "LeanParser":
        """Return the parser of a connection, which from now on is one of these."""
        current = client._ps  # noqa: SLF001
        if isinstance(current, cls):
            return current
        parser = cls(client)
        # Between two reads it holds the beginning of a line, or of a body that it has read the line of.
        parser._adopt(current)
        client._ps = parser  # type: ignore[assignment]  # noqa: SLF001
        return parser

    def _adopt(self, old: Any) -> None:
        from nats.protocol.parser import AWAITING_MSG_PAYLOAD

        if old.state != AWAITING_MSG_PAYLOAD:
            self._rest = bytes(old.buf)
            return
        argument = old.msg_arg
        sid = str(argument["sid"]).encode()
        self._head = (bytes(argument["subject"]), sid, bytes(argument["reply"]), old.header_needed, old.needed)
        self._parts = [bytes(old.buf)]
        self._missing_bytes = old.needed + len(_LINE_END) - len(old.buf)

    def reset(self) -> None:
        """Forget what was read of a connection that is gone; nats-py calls this before it reconnects."""
        self._rest = b""
        self._head = None
        self._parts = []
        self._missing_bytes = 0

    async def parse(self, data: bytes = b"") -> None:
        """Take the next bytes of the socket; nats-py calls this after every read."""
        start = 0
        if self._head is not None:
            if len(data) < self._missing_bytes:
                self._parts.append(data)
                self._missing_bytes -= len(data)
                return
            start = self._missing_bytes
            self._parts.append(data[:start])
            head, body = self._head, b"".join(self._parts)
            self._head, self._parts = None, []
            await self._deliver(head, body)
        elif self._rest:
            data = self._rest + data
            self._rest = b""
        await self._parse_from(data, start)

    async def _parse_from(self, data: bytes, start: int) -> None:
        """Go through what was read. This is the loop that has to be fast, so it calls as little as it can."""
        sinks, receivers = self.sinks, self.receivers
        length, find = len(data), data.find
        # Look up the sink again after every await: its reader may have taken the list.
        last_sid, append = b"", None
        touched: list[Sink] = []
        count = count_bytes = 0
        try:
            while start < length:
                line_end = find(_LINE_END, start)
                if line_end < 0:
                    self._keep_rest(data[start:])
                    return
                first = data[start]
                if first != _H and first != _M:
                    await self._obey(data[start:line_end])
                    start = line_end + 2
                    last_sid = b""
                    continue
                words = data[start:line_end].split(b" ")
                if first == _H and len(words) == 6:
                    # How servers write what consumers deliver; everything else takes the longer way.
                    _, subject, sid, reply, header_text, total_text = words
                    header_bytes, total_bytes = int(header_text), int(total_text)
                else:
                    subject, sid, reply, header_bytes, total_bytes = _head_of(data[start:line_end].split())
                body = line_end + 2
                end = body + total_bytes
                if end + 2 > length:
                    self._head = (subject, sid, reply, header_bytes, total_bytes)
                    self._parts = [data[body:]]
                    self._missing_bytes = end + 2 - length
                    return
                start = end + 2
                split = body + header_bytes
                if sid != last_sid:
                    last_sid, append = sid, None
                    sink = sinks.get(sid)
                    if sink is not None:
                        append = sink.messages.append
                        touched.append(sink)
                if append is not None:
                    count += 1
                    count_bytes += end - split
                    append((subject, reply, data[body:split], data[split:end]))
                    continue
                receiver = receivers.get(sid)
                if receiver is None:
                    headers = data[body:split] or None
                    await self._client._process_msg(int(sid), subject, reply, data[split:end], headers)  # noqa: SLF001
                    last_sid = b""
                    continue
                count += 1
                count_bytes += end - split
                receiver(subject, reply, data[body:split], data[split:end])
        except ValueError as error:
            raise _protocol_error("malformed message") from error
        finally:
            self._client.stats["in_msgs"] += count
            self._client.stats["in_bytes"] += count_bytes
            for sink in touched:
                sink.notify()

    def _keep_rest(self, rest: bytes) -> None:
        """Keep the beginning of a line until the next read."""
        if len(rest) > LINE_BYTES_MAX:
            raise _protocol_error("a line has no end")
        self._rest = rest

    async def _deliver(self, head: Head, body: bytes) -> None:
        subject, sid, reply, header_bytes, total_bytes = head
        headers, payload = body[:header_bytes], body[header_bytes:total_bytes]
        sink, receiver = self.sinks.get(sid), self.receivers.get(sid)
        if sink is None and receiver is None:
            await self._client._process_msg(int(sid), subject, reply, payload, headers or None)  # noqa: SLF001
            return
        self._client.stats["in_msgs"] += 1
        self._client.stats["in_bytes"] += len(payload)
        if sink is not None:
            sink.messages.append((subject, reply, headers, payload))
            sink.notify()
        elif receiver is not None:
            receiver(subject, reply, headers, payload)

    async def _obey(self, line: bytes) -> None:
        """Do what a line says that is not a message."""
        word, _, rest = line.partition(b" ")
        match word.strip().upper():
            case b"PING":
                await self._client._process_ping()  # noqa: SLF001
            case b"PONG":
                await self._client._process_pong()  # noqa: SLF001
            case b"INFO":
                await self._client._process_info(json.loads(rest))  # noqa: SLF001
            case b"-ERR":
                await self._client._process_err(rest.decode(errors="replace").strip().lower())  # noqa: SLF001
            case b"+OK" | b"":
                pass
            case _:
                raise _protocol_error(f"unknown line {line[:40]!r}")


def _head_of(words: list[bytes]) -> Head:
    """Return the head of a message from the words of its line. Raises `ValueError` for sizes that are not numbers."""
    if words[0] == b"HMSG" and len(words) in (5, 6):
        return words[1], words[2], words[3] if len(words) == 6 else b"", int(words[-2]), int(words[-1])
    if words[0] == b"MSG" and len(words) in (4, 5):
        return words[1], words[2], words[3] if len(words) == 5 else b"", 0, int(words[-1])
    raise _protocol_error(f"unknown line {b' '.join(words)[:40]!r}")


def _protocol_error(reason: str) -> Exception:
    from nats.errors import ProtocolError

    return ProtocolError(f"nats: {reason}")
