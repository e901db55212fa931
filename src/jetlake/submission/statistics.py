"""What a sender has done, and what waits: for `jetlake submission status`, and for Prometheus.

The sender writes it to a file of its spool now and then, so that it can be looked at without a connection.

Invariant: counters only grow while a sender runs; they begin at 0 when it starts.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from jetlake.submission.message import PRIORITIES

FILE_NAME = ".statistics.json"
FILE_MODE = 0o600


class SenderStatistics(msgspec.Struct, kw_only=True):
    """Figures of one sender."""

    pid: int = 0
    started_unix_s: float = 0.0
    written_unix_s: float = 0.0
    connected: bool = False
    # By priority.
    spooled: list[int] = msgspec.field(default_factory=lambda: [0] * PRIORITIES)
    # Of the message that waits longest; 0 when none does.
    oldest_s: float = 0.0
    delivered: int = 0
    # Of those: a stream had it already.
    duplicates: int = 0
    # Unreliable ones, each published once.
    published: int = 0
    retries: int = 0
    expired: int = 0
    # Unreadable, too large, or tried too often.
    rejected: int = 0
    # What the disk refused: files that could not be rewritten or removed.
    disk_errors: int = 0
    last_error: str = ""

    def write(self, folder: Path) -> None:
        """Write the file of a spool; a full disk must not stop sending."""
        unfinished = folder / f".submit-{FILE_NAME}.{os.getpid()}"
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(msgspec.json.encode(self))
            unfinished.replace(folder / FILE_NAME)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()


def read(folder: Path) -> SenderStatistics | None:
    """Return the figures of the sender of a spool; None if there never was one."""
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=SenderStatistics)
    except (OSError, msgspec.DecodeError):
        return None


def prometheus_text(statistics: SenderStatistics) -> str:
    """Return the figures in Prometheus' text format."""
    lines: list[str] = []

    def add(name: str, kind: str, text: str, samples: dict[str, float]) -> None:
        full = f"jetlake_submission_{name}"
        lines.extend((f"# HELP {full} {text}", f"# TYPE {full} {kind}"))
        lines.extend(f"{full}{labels} {value}" for labels, value in samples.items())

    spooled = {f'{{priority="{number}"}}': float(count) for number, count in enumerate(statistics.spooled)}
    add("spooled_messages", "gauge", "Messages that wait.", spooled)
    add("oldest_message_seconds", "gauge", "Age of the message that waits longest.", {"": statistics.oldest_s})
    add("connected", "gauge", "1 if the sender has a connection, else 0.", {"": int(statistics.connected)})
    for name, text, value in (
        ("delivered_total", "Reliable messages that a stream acknowledged.", statistics.delivered),
        ("duplicates_total", "Acknowledged messages that the stream had already.", statistics.duplicates),
        ("published_total", "Unreliable messages that were published.", statistics.published),
        ("retries_total", "Tries that were not acknowledged.", statistics.retries),
        ("expired_total", "Messages whose time to live was over.", statistics.expired),
        ("rejected_total", "Messages that could not be delivered and were moved aside.", statistics.rejected),
        ("disk_errors_total", "Files that the disk refused to change.", statistics.disk_errors),
    ):
        add(name, "counter", text, {"": value})
    return "\n".join([*lines, ""])
