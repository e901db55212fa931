"""Heads of HTTP requests that are wrong in every way that could be thought of, from a seed.

Each begins as a request for a page, with parameters, and is then damaged: bytes flipped, replaced and dropped, words
doubled and exchanged, line ends changed, escapes and numbers broken, control bytes, lines at and beyond the limits, the
end cut off. Some stay right: what is behind the parser gets its share.
"""

from __future__ import annotations

import random
from collections.abc import Callable

PATHS = [
    *["/", "/varz", "/connz", "/subsz", "/subscriptionsz", "/accountz", "/accstatz", "/jsz", "/healthz", "/routez"],
    *["/gatewayz", "/leafz", "/ipqueuesz", "/raftz", "/stacksz", "/debug/vars", "/metrics", "/none", "//varz/../connz"],
]
NAMES = [
    *["sort", "auth", "subs", "offset", "limit", "cid", "state", "user", "acc", "test", "unused", "accounts", "config"],
    *["streams", "consumers", "js-enabled-only", "stream", "consumer", "account", "details", "callback", "leader-only"],
]
VALUES = [
    *["", "0", "1", "-1", "true", "detail", "closed", "all", "any", "bytes_to", "stop", "$G", "a.b", "*", ">", "a..b"],
    *["9223372036854775807", "-9223372036854775808", "18446744073709551616", "9" * 400, "1e400", "0x7f", "+1", " 1"],
    *["%00", "%0d%0a", "%zz", "%", "%e2%80%a8", "%ff%fe", "é", "\U0001f600"],
]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PRI", "get", "G" * 300, "G\x00T", ""]
VERSIONS = [
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/1.9",
    "HTTP/2.0",
    "HTTP/0.9",
    "HTTP/1.",
    "HTTP/11",
    "http/1.1",
    "",
    "HTTP/1.1 x",
]
HEADERS = [
    *[
        "Host: x",
        "Host: y",
        "Host : x",
        "Host:",
        ": x",
        "no colon",
        " folded",
        "Accept: */*",
        "X-\x7f: y",
        "Expect: 100",
    ],
    *[
        "Content-Length: 18446744073709551616",
        "Content-Length: -1",
        "Transfer-Encoding: chunked",
        "Connection: upgrade",
    ],
]
LINE_ENDS = [b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r"]

LONG_BYTES = [100, 4_096, 16_384, 20_000]


class MalformedHeads:
    """An endless row of heads; the same seed makes the same row."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._damages: list[Callable[[bytearray], None]] = [
            self._replace,
            self._drop,
            self._insert,
            self._double,
            self._exchange,
            self._change_line_end,
            self._cut,
        ]

    def next(self) -> bytes:
        """Return the next head, or a part of one."""
        chance = self._random.random()
        if chance < 0.05:
            return self._random.randbytes(self._random.randrange(200))
        head = bytearray(self._request())
        if chance < 0.85:
            for _ in range(self._random.randrange(1, 4)):
                self._random.choice(self._damages)(head)
        return bytes(head)

    def _request(self) -> bytes:
        choice, chance = self._random.choice, self._random.random
        parameters = "&".join(f"{choice(NAMES)}={choice(VALUES)}" for _ in range(self._random.randrange(4)))
        target = choice(PATHS) + ("?" + parameters if parameters else "")
        if chance() < 0.002:
            target += choice("/?&=%x") * choice(LONG_BYTES)
        method = "GET" if chance() < 0.8 else choice(METHODS)
        version = "HTTP/1.1" if chance() < 0.8 else choice(VERSIONS)
        lines = [f"{method} {target} {version}", "Host: x"]
        lines += [choice(HEADERS) for _ in range(self._random.randrange(3))]
        if chance() < 0.002:
            lines += [choice(HEADERS)] * 101
        return "\r\n".join([*lines, "", ""]).encode()

    def _place(self, head: bytearray) -> int:
        return self._random.randrange(len(head) + 1)

    def _replace(self, head: bytearray) -> None:
        place = self._place(head)
        head[place : place + 1] = bytes([self._random.randrange(256)])

    def _drop(self, head: bytearray) -> None:
        place = self._place(head)
        del head[place : place + self._random.randrange(1, 6)]

    def _insert(self, head: bytearray) -> None:
        place = self._place(head)
        head[place:place] = self._random.choice(
            [b"\x00", b"\r", b"\n", b" ", b"\t", b"%", b"\xff", b"\x1b[0m", b"?", b"#"]
        )

    def _double(self, head: bytearray) -> None:
        place = self._place(head)
        head[place:place] = head[place : place + self._random.randrange(1, 20)]

    def _exchange(self, head: bytearray) -> None:
        words = bytes(head).split(b" ")
        one, other = self._random.randrange(len(words)), self._random.randrange(len(words))
        words[one], words[other] = words[other], words[one]
        head[:] = b" ".join(words)

    def _change_line_end(self, head: bytearray) -> None:
        lines = bytes(head).split(b"\r\n")
        head[:] = b"".join(line + self._random.choice(LINE_ENDS) for line in lines)

    def _cut(self, head: bytearray) -> None:
        del head[self._place(head) :]
