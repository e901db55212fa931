"""What the accounts store, for the pages of monitoring.

Asked by threads other than the one that decides, so a stream may go while it is looked at; then it is not shown.
"""

import time
from functools import partial
from typing import Any

from jetlake.management.catalog.streams import RESTORING, StreamCatalog
from jetlake.management.consumers.info import describe_consumer
from jetlake.management.endpoints.account import AccountEndpoints
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.info import describe_state
from jetlake.management.wire.error_codes import RequestError
from jetlake.monitoring.jsz import UNLIMITED, AccountUsage


def account_usages(
    catalog: StreamCatalog, accounts: AccountEndpoints, settings: ManagementSettings
) -> list[AccountUsage]:
    """Return what each account with JetStream stores, by name. Asks the engine about every stream."""
    return [_usage_of(name, catalog, accounts, settings) for name in sorted(settings.accounts)]


def _usage_of(
    account: str, catalog: StreamCatalog, accounts: AccountEndpoints, settings: ManagementSettings
) -> AccountUsage:
    held = {"memory": 0, "file": 0}
    messages = consumers = 0
    descriptions: list[dict[str, Any]] = []
    configs = catalog.streams_of(account)
    for name in list(configs.names):
        try:
            stream, state = catalog.find(account, name), catalog.state(account, name)
        except RequestError:
            continue
        held[stream.config.storage] += state.bytes
        messages += state.messages
        count = catalog.consumer_count(account, name)
        consumers += count
        descriptions.append(
            {
                "name": name,
                "created": stream.created,
                "cluster": {"leader": settings.server_name},
                # Written only where it is shown.
                "config": stream.config.to_json,
                "state": describe_state(stream, state, consumers=count),
                # Asked about only where they are shown.
                "consumer_detail": partial(_describe_consumers, catalog, account, name, is_direct=False),
                "direct_consumer_detail": partial(_describe_consumers, catalog, account, name, is_direct=True),
            }
        )
    limits, figures = settings.accounts[account], accounts.figures(account)
    return AccountUsage(
        name=account,
        memory_bytes=held["memory"],
        storage_bytes=held["file"],
        reserved_memory_bytes=UNLIMITED if limits.max_memory < 0 else limits.max_memory,
        reserved_storage_bytes=UNLIMITED if limits.max_storage < 0 else limits.max_storage,
        stream_memory_bytes_max=configs.reserved_bytes("memory"),
        stream_storage_bytes_max=configs.reserved_bytes("file"),
        api_total=figures.total,
        api_errors=figures.errors,
        message_count=messages,
        message_bytes=sum(held.values()),
        consumer_count=consumers,
        streams=tuple(descriptions),
        offline=_not_opened(account, catalog),
    )


def _not_opened(account: str, catalog: StreamCatalog) -> tuple[str, ...]:
    """Return the streams of an account that could not be opened; one that is being restored only takes its time."""
    offline = catalog.offline_of(account).copy()
    return tuple(sorted(name for name, reason in offline.items() if reason != RESTORING))


def _describe_consumers(catalog: StreamCatalog, account: str, stream: str, *, is_direct: bool) -> list[dict[str, Any]]:
    """Return the descriptions of the consumers of a stream, of either kind, by name."""
    consumers = catalog.consumers.of(account, stream)
    descriptions = []
    for name in sorted(consumers):
        consumer = consumers.get(name)
        if consumer is None or consumer.config.direct is not is_direct:
            continue
        try:
            state = catalog.consumers.state(account, stream, name)
        except RequestError:
            continue
        descriptions.append(describe_consumer(stream, consumer, state, time.time_ns(), shows_versions=False))
    return descriptions
