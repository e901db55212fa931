"""Messages as people write and read them: bodies with templates, headers, and what is printed of one that came.

| in a body, a subject or a header | becomes |
|---|---|
| `{{Count}}` | the number of the message, from 1 |
| `{{ID}}` | a unique id |
| `{{Time}}`, `{{TimeStamp}}` | the time of day; the time as RFC 3339 |
| `{{Unix}}`, `{{UnixNano}}` | seconds, nanoseconds since 1970 |
| `{{Random 10 100}}` | letters and digits, at least 10 and at most 100 |

Invariant: text that is not a template stays as it is.
"""

import base64
import random
import re
import shlex
import string
import subprocess
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import typer

from jetlake.errors import ClientError, reason_of
from jetlake.presentation.cells import safe

if TYPE_CHECKING:
    from nats.aio.msg import Msg

RANDOM_LETTERS_MAX = 10_000_000
"""For {{Random}}: more than any server takes as one message."""

TRANSLATE_S_MAX = 30.0
"""For a command that translates one message."""

_TEMPLATE = re.compile(r"\{\{\s*\.?(Count|ID|TimeStamp|Time|UnixNano|Unix|Random\s+(\d+)\s+(\d+))\s*\}\}")


def filled(text: str, count: int) -> str:
    """Return a text with its templates filled in for the message of this number."""

    def value(found: re.Match[str]) -> str:
        if found[2] is not None:
            low, high = sorted((int(found[2]), int(found[3])))
            if high > RANDOM_LETTERS_MAX:
                raise ClientError(f"{found[0]} is too long: at most {RANDOM_LETTERS_MAX:,} letters")
            return "".join(random.choices(string.ascii_letters + string.digits, k=random.randint(low, high)))
        now = datetime.now().astimezone()
        return {
            "Count": lambda: str(count),
            "ID": lambda: uuid4().hex,
            "Time": lambda: now.strftime("%H:%M:%S"),
            "TimeStamp": lambda: now.isoformat(timespec="seconds"),
            "Unix": lambda: str(int(time.time())),
            "UnixNano": lambda: str(time.time_ns()),
        }[found[1]]()

    return _TEMPLATE.sub(value, text) if "{{" in text else text


def read_headers(pairs: list[str] | None, count: int = 1) -> dict[str, str] | None:
    """Return headers written as `Name:Value`; None when there are none."""
    headers = {}
    for pair in pairs or []:
        name, colon, value = pair.partition(":")
        if not colon or not name.strip():
            raise typer.BadParameter(f"{pair!r} is not a header: write Name:Value")
        headers[name.strip()] = filled(value.strip(), count)
    return headers or None


def read_bodies(body: str | None, *, by_line: bool, force: bool) -> list[bytes | str]:
    """Return the payloads of a line: the one given as text, for templates, or standard input as it is."""
    if body is not None and not force:
        return [body]
    if sys.stdin.isatty() and not force:
        return [""]
    content = sys.stdin.buffer.read()
    return list(content.splitlines()) if by_line else [content]


def payload_of(body: bytes | str, count: int, *, templates: bool) -> bytes:
    """Return what is sent: templates are filled in texts of the line only."""
    if isinstance(body, bytes):
        return body
    return (filled(body, count) if templates else body).encode()


def translated(payload: bytes, command: str, subject: str) -> bytes:
    """Return what a command makes of a payload; {{Subject}} in it is the message's. Raises `ClientError`."""
    words = [word.replace("{{Subject}}", subject) for word in shlex.split(command)]
    try:
        done = subprocess.run(words, input=payload, capture_output=True, check=False, timeout=TRANSLATE_S_MAX)
    except OSError as error:
        raise ClientError(f"cannot run {command!r}: {reason_of(error)}") from error
    except subprocess.TimeoutExpired as error:
        raise ClientError(f"{command!r} did not end within {TRANSLATE_S_MAX:g} s") from error
    if done.returncode != 0:
        raise ClientError(f"{command!r} ended with {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def is_stored(message: "Msg") -> bool:
    """Tell whether a message comes from a consumer, and so has a stream and a sequence."""
    return message.reply.startswith("$JS.ACK.")


def message_facts(message: "Msg") -> dict[str, Any]:
    """Return a message for JSON: `data` if it is text, else `data_base64`."""
    facts: dict[str, Any] = {"subject": message.subject}
    if is_stored(message):
        metadata = message.metadata
        facts |= {
            "stream": metadata.stream,
            "sequence": metadata.sequence.stream,
            "consumer": metadata.consumer,
            "consumer_sequence": metadata.sequence.consumer,
            "deliveries": metadata.num_delivered,
            "pending": metadata.num_pending,
            "time": metadata.timestamp.isoformat(),
        }
    elif message.reply:
        facts["reply"] = message.reply
    if message.headers:
        facts["headers"] = dict(message.headers)
    return facts | data_facts(message.data)


def data_facts(payload: bytes) -> dict[str, str]:
    """Return a payload for JSON."""
    try:
        return {"data": payload.decode()}
    except UnicodeDecodeError:
        return {"data_base64": base64.b64encode(payload).decode()}


def message_head(message: "Msg", number: int) -> str:
    """Return the line above a message."""
    if is_stored(message):
        metadata = message.metadata
        return (
            f"[#{number}] {metadata.timestamp.astimezone():%H:%M:%S} subj: {message.subject} / "
            f"stream: {metadata.stream} / seq: {metadata.sequence.stream} / tries: {metadata.num_delivered} / "
            f"pending: {metadata.num_pending}"
        )
    reply = f' with reply "{message.reply}"' if message.reply else ""
    return f'[#{number}] Received on "{message.subject}"{reply}'


def print_payload(payload: bytes) -> None:
    """Print a payload byte for byte, and a line end."""
    sys.stdout.flush()
    sys.stdout.buffer.write(payload + b"\n")
    sys.stdout.buffer.flush()


def print_headers(headers: dict[str, str] | None) -> None:
    """Print headers, one on each line."""
    for name, value in (headers or {}).items():
        typer.echo(f"{safe(name)}: {safe(value)}")
