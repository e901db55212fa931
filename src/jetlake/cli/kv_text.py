"""What `jetlake kv` prints of buckets, entries and values."""

import base64
from typing import Any

from jetlake.kv.bucket import BucketStatus
from jetlake.kv.config import BucketConfig
from jetlake.kv.entry import Entry
from jetlake.presentation.cells import Bytes, Cell, Nanoseconds
from jetlake.presentation.quantities import SECOND

UNLIMITED = "unlimited"


def status_facts(status: BucketStatus) -> dict[str, dict[str, Cell]]:
    """Return how a bucket stands, for `print_facts`."""
    state: dict[str, Cell] = {
        "values": status.values,
        "keys": status.keys,
        "size": Bytes(status.bytes),
        "last revision": status.last_revision,
    }
    return {"Configuration": config_facts(status.config), "State": state}


def config_facts(config: BucketConfig) -> dict[str, Cell]:
    """Return what a bucket is like; what is not set is left out."""
    return {
        "bucket": config.bucket,
        "description": config.description or None,
        "history": config.history,
        "TTL": Nanoseconds(round(config.ttl_s * SECOND)) if config.ttl_s else UNLIMITED,
        "max value size": Bytes(config.max_value_bytes) if config.max_value_bytes >= 0 else UNLIMITED,
        "max bucket size": Bytes(config.max_bytes) if config.max_bytes >= 0 else UNLIMITED,
        "storage": config.storage,
        "replicas": config.replicas,
        "compression": config.compression or None,
        "TTL of keys": config.key_ttl,
        "TTL of markers": Nanoseconds(round(config.limit_marker_ttl_s * SECOND)) if config.limit_marker_ttl_s else None,
        "direct get": config.allow_direct,
        "republish to": config.republish.destination if config.republish else None,
        "mirror of": config.mirror.bucket if config.mirror else None,
        "sources": ", ".join(source.bucket for source in config.sources) or None,
        "metadata": ", ".join(f"{key}={value}" for key, value in config.metadata.items()) or None,
    }


def status_json(status: BucketStatus) -> dict[str, Any]:
    """Return how a bucket stands, for `print_json`."""
    return {
        "bucket": status.bucket,
        "values": status.values,
        "keys": status.keys,
        "bytes": status.bytes,
        "last_revision": status.last_revision,
        "config": status.config,
    }


def entry_json(entry: Entry[bytes]) -> dict[str, Any]:
    """Return an entry for `print_json`; a value that is not text is in base64, under another name."""
    made: dict[str, Any] = {
        "bucket": entry.bucket,
        "key": entry.key,
        "revision": entry.revision,
        "created": entry.created.isoformat(),
        "operation": str(entry.operation),
    }
    if entry.value is not None:
        try:
            made["value"] = entry.value.decode()
        except UnicodeDecodeError:
            made["value_base64"] = base64.b64encode(entry.value).decode()
    elif entry.size_bytes:
        made["size_bytes"] = entry.size_bytes
    return made


def shown_value(value: bytes | None) -> str:
    """Return a value for a person: text as it is, anything else in base64."""
    if value is None:
        return ""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
    is_text = all(letter.isprintable() or letter in "\n\r\t" for letter in text)
    return text if is_text else base64.b64encode(value).decode()


def shortened(text: str, width_max: int) -> str:
    """Return a text on one line, its middle left out if it is long."""
    line = text.replace("\n", "⏎").replace("\t", " ")
    if len(line) <= width_max:
        return line
    half = (width_max - 1) // 2
    return f"{line[:half]}…{line[-half:]}"
