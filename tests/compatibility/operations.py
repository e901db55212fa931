"""Generated operation sequences for the differential tests: mostly valid, some with a few mistakes in them.

A script is what one connection sends. Subscription ids that start with `q` are members of queue groups, all others are
plain: `answers.py` relies on that to compare servers which choose members at random. Everything follows from the seed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

OPERATIONS_MAX = 14
PIECES_MAX = 8


@dataclass(frozen=True)
class Script:
    """What one connection does. `connect` holds the CONNECT options or is None to begin without CONNECT.

    The operations are sent as one sequence of bytes, cut at `cuts`, with pauses between the pieces when `paused`, so
    that the server reads them one by one. With `observed` another connection subscribes to everything meanwhile.
    """

    connect: dict[str, bool | int] | None
    operations: tuple[bytes, ...]
    cuts: tuple[int, ...]
    paused: bool
    observed: bool

    @property
    def pieces(self) -> list[bytes]:
        data = b"".join(self.operations)
        bounds = sorted({0, len(data), *(cut for cut in self.cuts if cut < len(data))})
        return [data[start:end] for start, end in itertools.pairwise(bounds)]

    def __str__(self) -> str:
        head = f"    connect={self.connect} cuts={self.cuts} paused={self.paused} observed={self.observed}"
        return "\n".join([head, *(f"    {operation!r}" for operation in self.operations)])


PATTERNS = [b"a", b"a.b", b"a.*", b"a.>", b">", b"*", b"*.b", b"a.b.c", b"b", b"*.*", b"r", b"r.*"]
ODD_PATTERNS = [
    b"a..b",
    b".a",
    b"a.",
    b"a.>.b",
    b"a*",
    b"*.>b",
    b"",
    b"\xff.\x00",
    b"x" * 500,
    b"t." * 40 + b"t",
    b"_R_.a",
]
LITERALS = [b"a", b"a", b"a.b", b"a.b", b"b", b"a.b.c", b"c.b", b"nobody.there"]
ODD_LITERALS = [
    *ODD_PATTERNS,
    b"a.*",
    b">",
    b"*",
    b"a.>",
    b"$SYS.a",
    b"$JS.API.INFO",
    b"_GR_.a",
    b"$NRG.a.b",
    b"$NRG",
    b"_GR_",
    b'a"b',
    b"_INBOX.a",
]
REPLIES = [b"r", b"r.1", b"a", b"b"]
ODD_REPLIES = [b"_R_.a", b"_R_", b"$JS.ACK.a", b"$JS.ACK", b"_GR_.a", b"..", b"*", b">", b"\xff", b"r" * 300]
PLAIN_SIDS = [b"1", b"2", b"3", b"4", b"sid", b"005"]
QUEUE_SIDS = [b"q1", b"q2", b"q3"]
GROUPS = [b"g", b"g", b"h"]
ODD_GROUPS = [b"_sys_", b"*", b"g..", b"\x00"]
PAYLOADS = [b"", b"x", b"hello", b"PING\r\n", b"\r\n", b"\x00\xff", b"MSG a 1 0\r\n\r\n", b"p" * 700]
HEADERS = [b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\nA: b\r\n\r\n", b"NATS/1.0 503\r\n\r\n", b"", b"any bytes", b"\r\n"]
MAXIMA = [b"1", b"2", b"3", b"02", b"10", b"0", b"-1", b"x", b"999999999", b"1234567890"]
BLANKS = [b" ", b" ", b" ", b" ", b" ", b" ", b"\t", b"  ", b" \t "]
LINE_ENDS = [b"\r\n"] * 8 + [b"\n", b" \r\n", b"\t \n"]
HARMLESS_LINES = [
    b"PING\r\n",
    b"pInG\r\n",
    b"PING\n",
    b"PINGxyz\r\n",
    b"PONG\r\n",
    b"+OK\r\n",
    b"+okay\n",
    b"INFO {}\r\n",
    b'CONNECT {"verbose":false,"pedantic":false}\r\n',
    b'CONNECT {"verbose":true}\r\n',
    b'CONNECT{"echo":false}\r\n',
    b'connect\t{"echo":true, "Headers":true, "no_responders":true}\n',
    b'CONNECT {"headers":false,"no_responders":false}\r\n',
    b"CONNECT null\r\n",
]

FATAL_LINES = [
    b"INFO x\r\n",
    b"-ERR\r\n",
    b"\r\n",
    b" PING\r\n",
    b"MSG a 1 0\r\n\r\n",
    b"LS+ a\r\n",
    b"RS+ $G a\r\n",
    b"A+ $G\r\n",
    b'CONNECT {"protocol":2}\r\n',
    b'CONNECT {"account":"x"}\r\n',
    b'CONNECT {"headers":false,"no_responders":true}\r\n',
    b'CONNECT {"verbose":1}\r\n',
    b"CONNECT {\r\n",
    b"CONNECT \r\n",
    b"SUB\r\n",
    b"SUB " + b"x" * 5000 + b" 1\r\n",
    b"PUB a " + b"0" * 4097 + b"\r\n",
    b"PUB a 1048577\r\n",
    b"HPUB a 1 1048577\r\n",
    b"HPUB a 2 1\r\n",
    b"NONSENSE\r\n",
]

LINE_FEED_AS_ARGUMENT = re.compile(rb"((h?pub|(un)?sub)[ \t]+|(connect|info)[ \t]*)\n", re.IGNORECASE)
QUEUE_MEMBER = re.compile(rb"[ \t]q\d")


def is_answered_by_accident(operation: bytes) -> bool:
    """Whether nats-server's answer follows from how its parser is written, so that no other server should copy it.

    - A line feed where the first argument should begin is part of the argument.
    - A carriage return inside a control line cuts the line's last byte off, or not, depending on how the line is read.

    Left out of the lists above for the same reason: HMSG with an empty payload, which is taken for a message to the
    empty subject, and `-ERR x`, after which what has been read already is still carried out.
    """
    line, end, _ = operation.partition(b"\n")
    carriage_return_inside = b"\r" in line.removesuffix(b"\r" if end else b"")
    return carriage_return_inside or LINE_FEED_AS_ARGUMENT.match(operation) is not None


class Generator:
    """Draws scripts from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def script(self) -> Script:
        connect = self._connect()
        mistakes = self._random.choice([0, 0, 0, 1, 1, 2])
        operations = [self._subscribe() for _ in range(self._random.randint(0, 4))]
        operations += [self._operation(connect) for _ in range(self._random.randint(1, OPERATIONS_MAX))]
        for _ in range(mistakes):
            position = self._random.randrange(len(operations))
            mistaken = self._mistaken(operations[position])
            # Members keep their ids, see above.
            if not is_answered_by_accident(mistaken) and not QUEUE_MEMBER.search(operations[position]):
                operations[position] = mistaken
        size = len(b"".join(operations))
        cuts = {self._random.randint(1, size) for _ in range(self._random.randrange(PIECES_MAX))} if size else set()
        return Script(connect, tuple(operations), tuple(sorted(cuts)), self._chance(0.2), self._chance(0.3))

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _pick(self, usual: list[bytes], odd: list[bytes]) -> bytes:
        return self._random.choice(odd if self._chance(0.06) else usual)

    def _connect(self) -> dict[str, bool | int] | None:
        if self._chance(0.05):
            return None
        headers = self._chance(0.8)
        return {
            "verbose": self._chance(0.3),
            "pedantic": self._chance(0.3),
            "echo": self._chance(0.8),
            "headers": headers,
            "no_responders": headers and self._chance(0.7),
            "protocol": self._random.randint(0, 1),
        }

    def _operation(self, connect: dict[str, bool | int] | None) -> bytes:
        kinds: list[Callable[[], bytes]] = [self._subscribe, self._publish, self._publish_header, self._unsubscribe]
        if self._chance(0.06):
            return self._random.choice(HARMLESS_LINES)
        # A header from a client without headers ends the connection, so it is tried now and then only.
        with_header = 3 if connect and connect["headers"] else 0.1
        return self._random.choices(kinds, weights=[4, 7, with_header, 2])[0]()

    def _line(self, name: bytes, arguments: list[bytes]) -> bytes:
        if self._chance(0.1):
            name = bytes(self._random.choice([byte, byte ^ 0x20]) for byte in name)
        blank = self._random.choice(BLANKS)
        return name + blank + blank.join(arguments) + self._random.choice(LINE_ENDS)

    def _subscribe(self) -> bytes:
        subject = self._pick(PATTERNS, ODD_PATTERNS)
        if self._chance(0.25):
            return self._line(b"SUB", [subject, self._pick(GROUPS, ODD_GROUPS), self._random.choice(QUEUE_SIDS)])
        return self._line(b"SUB", [subject, self._random.choice(PLAIN_SIDS)])

    def _unsubscribe(self) -> bytes:
        arguments = [self._random.choice(PLAIN_SIDS + QUEUE_SIDS[:1])]
        if self._chance(0.7):
            arguments.append(self._random.choice(MAXIMA))
        return self._line(b"UNSUB", arguments)

    def _target(self) -> list[bytes]:
        target = [self._pick(LITERALS, ODD_LITERALS)]
        if self._chance(0.4):
            target.append(self._pick(REPLIES, ODD_REPLIES))
        return target

    def _size(self, size: int) -> bytes:
        return b"0" * self._random.choice([0, 0, 0, 0, 0, 1, 3]) + b"%d" % size

    def _publish(self) -> bytes:
        payload = self._random.choice(PAYLOADS)
        return self._line(b"PUB", [*self._target(), self._size(len(payload))]) + payload + b"\r\n"

    def _publish_header(self) -> bytes:
        header, payload = self._random.choice(HEADERS), self._random.choice(PAYLOADS)
        sizes = [self._size(len(header)), self._size(len(header) + len(payload))]
        return self._line(b"HPUB", [*self._target(), *sizes]) + header + payload + b"\r\n"

    def _mistaken(self, operation: bytes) -> bytes:
        """The operation with one mistake in it."""
        mistakes = [self._mistaken_byte, self._mistaken_word, self._mistaken_size, self._fatal_line]
        return self._random.choices(mistakes, weights=[4, 4, 3, 2])[0](operation)

    def _fatal_line(self, _: bytes) -> bytes:
        return self._random.choice(FATAL_LINES)

    def _mistaken_byte(self, operation: bytes) -> bytes:
        position = self._random.randrange(len(operation) + 1)
        special = self._random.choice(b" \t\r\n.*>0\x00\xff")
        byte = bytes([special if self._chance(0.6) else self._random.randrange(256)])
        removed = self._random.choice([0, 0, 1, 1, 2])
        return operation[:position] + (byte if self._chance(0.7) else b"") + operation[position + removed :]

    def _mistaken_word(self, operation: bytes) -> bytes:
        """Drop, repeat, add or exchange a word of the control line."""
        line, end, rest = operation.partition(b"\n")
        words = line.split(b" ")
        position = self._random.randrange(len(words))
        replacement = self._random.choice(
            [[], words[position : position + 1] * 2, [b"0", words[position]], [self._random.choice(ODD_LITERALS)]]
        )
        return b" ".join(words[:position] + replacement + words[position + 1 :]) + end + rest

    def _mistaken_size(self, operation: bytes) -> bytes:
        """Exchange the last word of the control line, which is a size or a subscription id."""
        line, end, rest = operation.partition(b"\n")
        words = line.split(b" ")
        number = int(words[-1]) if words[-1].strip().isdigit() and len(words[-1]) < 10 else 1
        wrong = [
            b"%d" % (number + 1),
            b"%d" % (number - 1),
            b"-1",
            b"+1",
            b"x",
            b"1" * 10,
            b"0" * 9,
            b"1048577",
            b"1e1",
        ]
        carriage_return = b"\r" if line.endswith(b"\r") else b""
        return b" ".join([*words[:-1], self._random.choice(wrong) + carriage_return]) + end + rest


def smaller_scripts(script: Script) -> list[Script]:
    """The script with something left out, to find the smallest one that still shows a difference."""
    smaller = []
    for position in range(len(script.operations)):
        operations = script.operations[:position] + script.operations[position + 1 :]
        smaller.append(replace(script, operations=operations))
    if script.cuts:
        smaller.append(replace(script, cuts=(), paused=False))
    if script.observed:
        smaller.append(replace(script, observed=False))
    return smaller
