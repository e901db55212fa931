"""The block `jetstream`: of the whole server, and of one account."""

import msgspec

from jetlake.server.configuration import unsupported
from jetlake.server.configuration.document import kind_of
from jetlake.server.configuration.remotes import read_remotes
from jetlake.server.configuration.section import Section
from jetlake.server.options.accounts import JetStreamAccountLimits
from jetlake.server.options.jetstream import JetStreamOptions

ON_WORDS = frozenset({"enabled", "enable"})
OFF_WORDS = frozenset({"disabled", "disable"})

CLUSTER_KEYS = (
    "unique_tag",
    "extension_hint",
    "max_outstanding_catchup",
    "meta_compact",
    "meta_compact_size",
    "meta_compact_sync",
    "request_queue_limit",
    "info_queue_limit",
    "max_concurrent_io",
    "cipher",
)
"""They tune clusters, or insides that this server does not have."""


def read_jetstream(section: Section) -> JetStreamOptions:
    """Return JetStream's options from the top level of a file."""
    store_directory = section.path("store_dir", "storedir") or ""
    enabled = _read_switch(section)
    node = section.node("jetstream")
    if node is None or not isinstance(node.data, dict):
        return JetStreamOptions(enabled=bool(enabled), store_directory=store_directory)
    inner = Section(node, section.problems)
    own_directory = inner.path("store_dir", "store", "storedir") or ""
    if store_directory and own_directory:
        section.error(inner.node("store_dir", "store", "storedir"), "Duplicate 'store_dir' configuration")
    options = JetStreamOptions(
        enabled=inner.switch("enabled", "enable") is not False,
        store_directory=own_directory or store_directory,
        max_memory_bytes=_limit_of(inner.size("max_memory_store", "max_mem_store", "max_mem")),
        max_storage_bytes=_limit_of(inner.size("max_file_store", "max_file")),
        domain=inner.text("domain") or "",
        key=inner.text("key", "ek", "encryption_key") or "",
        previous_key=inner.text("prev_key", "prev_ek", "prev_encryption_key") or "",
        strict=inner.switch("strict") is not False,
        preview_dialects=inner.switch("preview_dialects") is not False,
        buffered_bytes_max=inner.size("max_buffered_size"),
        buffered_messages_max=inner.integer("max_buffered_msgs"),
    )
    options = msgspec.structs.replace(options, remotes=read_remotes(inner, own_domain=options.domain))
    options = _read_sync(inner, options)
    options = _read_limits(inner, options)
    inner.refuse(unsupported.JETSTREAM)
    inner.accept(*CLUSTER_KEYS)
    inner.finish()
    return options


def read_account_jetstream(section: Section) -> JetStreamAccountLimits | None:
    """Return what an account may store; None = nothing."""
    enabled = _read_switch(section)
    inner = section.section("jetstream") if enabled is None and section.node("jetstream") else None
    if inner is None:
        return JetStreamAccountLimits() if enabled else None
    limits = JetStreamAccountLimits(
        max_memory_bytes=_limit_of(inner.integer("max_memory", "max_mem", "mem", "memory")),
        max_storage_bytes=_limit_of(inner.integer("max_store", "max_file", "max_disk", "store", "disk")),
        max_streams=_limit_of(inner.integer("max_streams", "streams")),
        max_consumers=_limit_of(inner.integer("max_consumers", "consumers")),
        max_acknowledgements_pending=_limit_of(inner.integer("max_ack_pending")),
        memory_stream_bytes_max=_limit_of(inner.integer("memory_max_stream_bytes", "mem_max_stream_bytes")),
        storage_stream_bytes_max=_limit_of(inner.integer("store_max_stream_bytes", "disk_max_stream_bytes")),
        stream_bytes_required=bool(inner.switch("max_bytes_required", "max_stream_bytes", "max_bytes")),
    )
    if inner.text("cluster_traffic") not in (None, "", "system", "owner"):
        section.error(inner.node("cluster_traffic"), '"cluster_traffic" must be system or owner')
    inner.finish()
    return limits


def _read_switch(section: Section) -> bool | None:
    """Return the value of a `jetstream` that is not a map; None = it is a map, or not there."""
    node = section.node("jetstream")
    if node is None or isinstance(node.data, dict):
        return None
    if isinstance(node.data, bool):
        return node.data
    word = node.data.lower() if isinstance(node.data, str) else ""
    if word in ON_WORDS | OFF_WORDS:
        return word in ON_WORDS
    section.error(node, f'"jetstream" must be a map, true, false, enabled or disabled, not {kind_of(node.data)}')
    return False


def _read_sync(section: Section, options: JetStreamOptions) -> JetStreamOptions:
    names = ("sync_interval", "sync")
    node = section.node(*names)
    if node is not None and isinstance(node.data, str) and node.data.lower() == "always":
        return msgspec.structs.replace(options, sync_always=True)
    interval_s = section.duration_s(*names)
    return options if interval_s is None else msgspec.structs.replace(options, sync_interval_s=interval_s)


def _read_limits(section: Section, options: JetStreamOptions) -> JetStreamOptions:
    inner = section.section("limits")
    if inner is None:
        return options
    options = msgspec.structs.replace(
        options,
        max_acknowledgements_pending=_limit_of(inner.integer("max_ack_pending")) or None,
        max_request_batch=_limit_of(inner.integer("max_request_batch")) or None,
        duplicate_window_s=inner.strict_duration_s("duplicate_window") or None,
    )
    batch = inner.section("batch")
    if batch is not None:
        options = msgspec.structs.replace(
            options,
            batches_per_stream_max=_limit_of(batch.integer("max_inflight_per_stream")) or None,
            batches_max=_limit_of(batch.integer("max_inflight_total")) or None,
            batch_messages_max=_limit_of(batch.integer("max_msgs")) or None,
            batch_idle_s_max=batch.strict_duration_s("timeout") or None,
        )
        batch.finish()
    inner.accept("max_ha_assets")
    inner.finish()
    return options


def _limit_of(number: int | None) -> int | None:
    """Negative numbers mean no limit, as in nats-server."""
    return None if number is None or number < 0 else number
