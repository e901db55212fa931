"""What JetStream may use and where it stores."""

import os

import msgspec

from jetlake.server.options.remotes import Remote

DEFAULT_SYNC_INTERVAL_S = 120.0


class JetStreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """JetStream of a whole server. Limits that are None are chosen by what the machine has."""

    enabled: bool = False
    # Empty = `default_store_directory()`, whose loss at a reboot is warned about.
    store_directory: str = ""
    max_memory_bytes: int | None = None
    max_storage_bytes: int | None = None
    domain: str = ""
    # What is stored is encrypted with the key; what the previous one opens is put under it. Empty = neither.
    key: str = ""
    previous_key: str = ""
    # How long what was acknowledged may wait to reach the disk.
    sync_interval_s: float = DEFAULT_SYNC_INTERVAL_S
    # Nothing is acknowledged before it has reached the disk.
    sync_always: bool = False
    # Requests with unknown fields are refused.
    strict: bool = True
    # Requests in the dialects of 2019 and 2020 are answered.
    preview_dialects: bool = True
    # Subjects of acknowledgements name domain and account.
    long_ack_subjects: bool = False
    # What no consumer or stream may exceed, whatever it asks for; None = no such limit.
    max_acknowledgements_pending: int | None = None
    max_request_batch: int | None = None
    duplicate_window_s: float | None = None
    # What may wait in memory to be stored, per stream.
    buffered_bytes_max: int | None = None
    buffered_messages_max: int | None = None
    # Of atomic batches: those that are open, per stream and in all, their messages, and how long one may be idle.
    batches_per_stream_max: int | None = None
    batches_max: int | None = None
    batch_messages_max: int | None = None
    batch_idle_s_max: float | None = None
    # Other servers, and accounts of this one, that streams may be copied from.
    remotes: tuple[Remote, ...] = ()


def default_store_directory() -> str:
    """Return the folder JetStream stores in when none is given: the same as nats-server's."""
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", "nats")  # noqa: S108 - warned about in the log
