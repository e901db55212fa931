"""What the accounts store, for the pages of monitoring.

Asked by threads other than the one that decides, so a stream may go while it is looked at; then it is not shown.
"""

from typing import Any

from jetlake.management.account_info import AccountEndpoints
from jetlake.management.catalog import Catalog
from jetlake.management.error_codes import ApiError
from jetlake.management.settings import ManagementSettings
from jetlake.management.stream_info import describe_state
from jetlake.monitoring.jsz import UNLIMITED, AccountUsage


def account_usages(catalog: Catalog, accounts: AccountEndpoints, settings: ManagementSettings) -> list[AccountUsage]:
    """Return what each account with JetStream stores, by name. Asks the engine about every stream."""
    return [_usage_of(name, catalog, accounts, settings) for name in sorted(settings.accounts)]


def _usage_of(account: str, catalog: Catalog, accounts: AccountEndpoints, settings: ManagementSettings) -> AccountUsage:
    held = {"memory": 0, "file": 0}
    messages = 0
    descriptions: list[dict[str, Any]] = []
    configs = catalog.streams_of(account)
    for name in list(configs.names):
        try:
            stream, state = catalog.find(account, name), catalog.state(account, name)
        except ApiError:
            continue
        held[stream.config.storage] += state.bytes
        messages += state.messages
        descriptions.append(
            {
                "name": name,
                "created": stream.created,
                "cluster": {"leader": settings.server_name},
                # Written only where it is shown.
                "config": stream.config.to_json,
                "state": describe_state(stream, state),
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
        streams=tuple(descriptions),
    )
