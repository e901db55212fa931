"""A message on its way: what a file of a spool says, in Choria's format.

```json
{"id":"ea89…","subject":"myapp.metrics","payload":"eyJjbnQiOjF9Cg==","reliable":true,"priority":4,
 "created":"2021-07-11T08:22:52.906612419Z","ttl":86400,"max_tries":100,"tries":0,
 "next_try":"0001-01-01T00:00:00Z","sender":"myapp","identity":"dev1.example.net","sign":false,"headers":null}
```

Invariant: a message that `check` lets pass can be published as it is: no header or subject of it can break the
protocol.
"""

import time
from typing import Any

import msgspec

from jetlake.client.timestamps import SECOND_NS, read_time, write_time
from jetlake.errors import ConfigurationError

PRIORITIES = 5
"""0 is the most urgent, 4 the least; each has a folder of its own."""

LOWEST_PRIORITY = PRIORITIES - 1

TTL_S_MAX = 31 * 86_400
DEFAULT_TTL_S = 7 * 86_400.0
DEFAULT_TRIES_MAX = 500

PAYLOAD_BYTES_MAX = 1_048_576 - 16_384
"""What a server takes in one message unless it is configured otherwise, less what headers may need."""

HEADERS_BYTES_MAX = 8_192
"""All headers of the user together."""

TEXT_BYTES_MAX = 512
"""An id, a subject, the name of a sender: more is not a name."""

RESERVED_HEADERS = ("choria", "nats")
"""How headers begin that the sender and the server set themselves."""

HEADER_NAME_LETTERS = frozenset("!#$%&'*+-.^_`|~")


class SpoolMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message; times are nanoseconds since 1970."""

    id: str
    subject: str
    payload: bytes
    reliable: bool = False
    priority: int = LOWEST_PRIORITY
    created_ns: int
    ttl_s: float = DEFAULT_TTL_S
    max_tries: int = DEFAULT_TRIES_MAX
    tries: int = 0
    # 0 = at once.
    next_try_ns: int = 0
    sender: str
    identity: str = ""
    sign: bool = False
    headers: dict[str, str] = {}

    @property
    def expires_ns(self) -> int:
        # A file may say any number; what is longer than allowed is refused elsewhere.
        return self.created_ns + int(min(max(self.ttl_s, 0.0), TTL_S_MAX) * SECOND_NS)

    def is_expired(self, now_ns: int) -> bool:
        return now_ns > self.expires_ns


class _File(msgspec.Struct, kw_only=True):
    """The JSON object of a file. Files of Choria 0.23 have neither `sign` nor `headers`."""

    id: str
    subject: str
    payload: bytes
    reliable: bool = False
    priority: int = LOWEST_PRIORITY
    created: str
    ttl: float
    max_tries: int = DEFAULT_TRIES_MAX
    tries: int = 0
    next_try: str = ""
    sender: str = ""
    identity: str = ""
    sign: bool = False
    headers: dict[str, str] | None = None


def encode(message: SpoolMessage) -> bytes:
    """Return the content of a file."""
    ttl: Any = int(message.ttl_s) if message.ttl_s == int(message.ttl_s) else message.ttl_s
    return msgspec.json.encode(
        {
            "id": message.id,
            "subject": message.subject,
            "payload": message.payload,
            "reliable": message.reliable,
            "priority": message.priority,
            "created": write_time(message.created_ns),
            "ttl": ttl,
            "max_tries": message.max_tries,
            "tries": message.tries,
            "next_try": write_time(message.next_try_ns),
            "sender": message.sender,
            "identity": message.identity,
            "sign": message.sign,
            "headers": message.headers or None,
        }
    )


def decode(content: bytes) -> SpoolMessage:
    """Return the message of a file. Raises `ConfigurationError` with what is wrong with it."""
    try:
        file = msgspec.json.decode(content, type=_File)
        return SpoolMessage(
            id=file.id,
            subject=file.subject,
            payload=file.payload,
            reliable=file.reliable,
            priority=file.priority,
            created_ns=read_time(file.created),
            ttl_s=file.ttl,
            max_tries=file.max_tries,
            tries=max(file.tries, 0),
            next_try_ns=read_time(file.next_try) if file.next_try else 0,
            sender=file.sender or file.identity,
            identity=file.identity,
            sign=file.sign,
            headers=file.headers or {},
        )
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ConfigurationError(f"the file is not a message: {error}") from error


def check(message: SpoolMessage, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX, now_ns: int | None = None) -> None:
    """Raise `ConfigurationError` for a message that cannot be delivered, with the reason and what to do."""
    check_subject(message.subject)
    if not message.payload:
        raise ConfigurationError("payload is empty: give at least one byte")
    if len(message.payload) > payload_bytes_max:
        raise ConfigurationError(
            f"payload has more than {payload_bytes_max:,} bytes: split it, or put it into an object store and submit "
            "its name"
        )
    if not 0 <= message.priority <= LOWEST_PRIORITY:
        raise ConfigurationError(f"priority is {message.priority}: give 0 (first) to {LOWEST_PRIORITY} (last)")
    if message.created_ns <= 0:
        raise ConfigurationError("created is not set: say when the message was made")
    if not 0 < message.ttl_s <= TTL_S_MAX:
        raise ConfigurationError(f"ttl is {message.ttl_s:g} s: give more than 0 and at most 31 days")
    if message.max_tries < 1:
        raise ConfigurationError(f"max_tries is {message.max_tries}: give at least 1")
    _check_name("id", message.id)
    _check_name("sender", message.sender)
    if message.identity:
        _check_name("identity", message.identity)
    _check_headers(message.headers)
    if message.is_expired(time.time_ns() if now_ns is None else now_ns):
        raise ConfigurationError("message has expired: its ttl is over")


def check_subject(subject: str) -> None:
    """Raise `ConfigurationError` for what cannot be published to."""
    tokens = subject.split(".")
    is_good = subject.isprintable() and not any(letter.isspace() for letter in subject) and all(tokens)
    if not subject or not is_good or any(token in ("*", ">") for token in tokens):
        raise ConfigurationError(
            f"subject is {subject[:60]!r}: write tokens with dots between them, without blanks and wildcards"
        )
    if len(subject.encode()) > TEXT_BYTES_MAX:
        raise ConfigurationError(f"subject has {len(subject.encode())} bytes: at most {TEXT_BYTES_MAX} are allowed")


def _check_name(what: str, text: str) -> None:
    is_good = bool(text) and text.isprintable() and (what != "id" or "/" not in text)
    if not is_good or len(text.encode()) > TEXT_BYTES_MAX:
        raise ConfigurationError(f"{what} is {text[:40]!r}: give 1 to {TEXT_BYTES_MAX} printable characters")


def _check_headers(headers: dict[str, str]) -> None:
    for name, value in headers.items():
        if not name or not all(_is_header_letter(letter) for letter in name):
            raise ConfigurationError(f"{name[:40]!r} cannot name a header: use letters, digits and -")
        if name.lower().startswith(RESERVED_HEADERS):
            raise ConfigurationError(f"header {name} is reserved: names must not begin with Choria or Nats")
        if not value.replace("\t", "").isprintable():
            raise ConfigurationError(f"header {name} has a line break or another control character in its value")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in headers.items())
    if size > HEADERS_BYTES_MAX:
        raise ConfigurationError(f"headers have {size:,} bytes, at most {HEADERS_BYTES_MAX:,} are allowed")


def _is_header_letter(letter: str) -> bool:
    return letter.isascii() and (letter.isalnum() or letter in HEADER_NAME_LETTERS)
