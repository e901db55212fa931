"""`/jsz`: what JetStream stores and how it is configured.

`MonitoredServer.usages` is the one place where streams plug in: everything else on this page, in `/varz`, `/healthz`
and `/metrics` is computed from what it returns.

Invariant: with JetStream off the page has the same keys, `disabled` and zeros.
"""

from typing import Any

import msgspec

from jetlake.monitoring.facts import JetStreamFacts
from jetlake.monitoring.parameters import Integer, PageError, QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.go_text import time_text

API_LEVEL = 5
"""The level of the JetStream API that is announced in INFO too."""

LIMIT_DEFAULT = 1024

UNLIMITED = 2**64 - 1
"""What an account without a limit reserves, as nats-server prints it."""


class JszOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the fields are those of a `$SYS.REQ.SERVER.*.JSZ` request."""

    account: str = ""
    accounts: bool = False
    streams: bool = False
    consumer: bool = False
    direct_consumer: bool = False
    config: bool = False
    leader_only: bool = False
    offset: Integer = 0
    limit: Integer = 0
    raft: bool = False
    stream_leader_only: bool = False


class ApiSummary(msgspec.Struct, kw_only=True):
    """Requests to the JetStream API."""

    level: int = 0
    total: int = 0
    errors: int = 0


class JetStreamConfiguration(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What JetStream may use; the fields are the keys of the page."""

    max_memory: int
    max_storage: int
    store_dir: str = ""
    sync_interval: int = 0
    sync_always: bool = False
    domain: str = ""
    unique_tag: str = ""
    strict: bool = False


class JetStreamFigures(msgspec.Struct, kw_only=True):
    """What JetStream uses, of the server or of one account."""

    memory: int
    storage: int
    reserved_memory: int
    reserved_storage: int
    accounts: int
    ha_assets: int
    api: ApiSummary


class AccountUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What one account stores.

    A stream is shown as the dictionary its own module makes of it, where `config` is a function that writes it, and
    `consumer_detail` and `direct_consumer_detail` are functions that describe its consumers.
    """

    name: str
    memory_bytes: int = 0
    storage_bytes: int = 0
    # What the account may store.
    reserved_memory_bytes: int = UNLIMITED
    reserved_storage_bytes: int = UNLIMITED
    # What its streams may grow to together, those without a bound not counted.
    stream_memory_bytes_max: int = 0
    stream_storage_bytes_max: int = 0
    api_total: int = 0
    api_errors: int = 0
    message_count: int = 0
    message_bytes: int = 0
    consumer_count: int = 0
    streams: tuple[dict[str, Any], ...] = ()
    # Streams that are on disk and could not be opened, by name.
    offline: tuple[str, ...] = ()


class AccountDetail(msgspec.Struct, kw_only=True):
    """One account; the fields are the keys of the page."""

    name: str
    id: str
    memory: int
    storage: int
    reserved_memory: int
    reserved_storage: int
    accounts: int
    ha_assets: int
    api: ApiSummary
    stream_detail: list[dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET


class Jsz(msgspec.Struct, kw_only=True):
    """The page."""

    memory: int
    storage: int
    reserved_memory: int
    reserved_storage: int
    accounts: int
    ha_assets: int
    api: ApiSummary
    server_id: str
    now: str
    disabled: bool | msgspec.UnsetType = msgspec.UNSET
    config: JetStreamConfiguration
    limits: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    streams: int = 0
    consumers: int = 0
    messages: int = 0
    bytes: int = 0
    account_details: list[AccountDetail] | msgspec.UnsetType = msgspec.UNSET
    total: int = 0


def account_usages(source: MonitoredServer) -> list[AccountUsage]:
    """Return what each account with JetStream stores, by name."""
    jetstream = source.facts.jetstream
    if jetstream is None:
        return []
    if source.usages is None:
        return [AccountUsage(name=name) for name in sorted(jetstream.accounts)]
    return source.usages()


def options_of(parameters: QueryParameters) -> JszOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    return JszOptions(
        accounts=parameters.boolean("accounts"),
        streams=parameters.boolean("streams"),
        consumer=parameters.boolean("consumers"),
        direct_consumer=parameters.boolean("direct-consumers"),
        config=parameters.boolean("config"),
        offset=parameters.integer("offset"),
        limit=parameters.integer("limit"),
        leader_only=parameters.boolean("leader-only"),
        raft=parameters.boolean("raft"),
        stream_leader_only=parameters.boolean("stream-leader-only"),
        account=parameters.text("acc"),
    )


def build(source: MonitoredServer, options: JszOptions) -> Jsz:
    """Return the page. Raises `PageError`."""
    jetstream = source.facts.jetstream
    if jetstream is None and options.leader_only:
        raise PageError("filtered response: not leader")
    usages = account_usages(source)
    page = Jsz(
        **msgspec.structs.asdict(figures(source, usages)),
        server_id=source.facts.server_id,
        now=time_text(source.now_unix_ns()),
        config=configuration(jetstream),
        total=len(usages),
    )
    if jetstream is None:
        page.disabled = True
        return page
    page.limits = jetstream.limits
    page.streams = sum(len(usage.streams) for usage in usages)
    page.consumers = sum(usage.consumer_count for usage in usages)
    page.messages = sum(usage.message_count for usage in usages)
    page.bytes = sum(usage.message_bytes for usage in usages)
    details = [_detail(usage, options) for usage in _choose(usages, options)]
    if details:
        page.account_details = details
    return page


def build_account(source: MonitoredServer, options: JszOptions) -> AccountDetail:
    """Return the part of one account, for `$SYS.REQ.ACCOUNT.*.JSZ`. Raises `PageError`."""
    if source.facts.jetstream is None:
        raise PageError("jetstream not enabled")
    for usage in account_usages(source):
        if usage.name == options.account:
            return _detail(usage, options)
    known = any(account.name == options.account for account in source.statistics().accounts)
    reason = "not jetstream enabled" if known else "not found"
    raise PageError(f'account "{options.account}" {reason}')


def figures(source: MonitoredServer, usages: list[AccountUsage]) -> JetStreamFigures:
    """Return what JetStream uses as a whole."""
    return JetStreamFigures(
        memory=sum(usage.memory_bytes for usage in usages),
        storage=sum(usage.storage_bytes for usage in usages),
        reserved_memory=sum(usage.stream_memory_bytes_max for usage in usages),
        reserved_storage=sum(usage.stream_storage_bytes_max for usage in usages),
        accounts=len(usages),
        ha_assets=0,
        api=ApiSummary(
            level=0 if source.facts.jetstream is None else API_LEVEL,
            total=sum(usage.api_total for usage in usages),
            errors=sum(usage.api_errors for usage in usages),
        ),
    )


def configuration(jetstream: JetStreamFacts | None) -> JetStreamConfiguration:
    """Return how JetStream is configured; zeros when it is off."""
    if jetstream is None:
        return JetStreamConfiguration(max_memory=0, max_storage=0)
    return JetStreamConfiguration(
        max_memory=jetstream.max_memory_bytes,
        max_storage=jetstream.max_storage_bytes,
        store_dir=jetstream.store_directory,
        sync_interval=jetstream.sync_interval_ns,
        sync_always=jetstream.sync_always,
        domain=jetstream.domain,
        unique_tag=jetstream.unique_tag,
        strict=jetstream.strict,
    )


def _choose(usages: list[AccountUsage], options: JszOptions) -> list[AccountUsage]:
    named = [usage for usage in usages if usage.name == options.account]
    if named:
        return named
    if not (options.accounts or ((options.streams or options.consumer) and not options.account)):
        return []
    if options.limit < 0:
        return usages
    offset = max(options.offset, 0)
    return usages[offset : offset + (options.limit or LIMIT_DEFAULT)]


def _detail(usage: AccountUsage, options: JszOptions) -> AccountDetail:
    detail = AccountDetail(
        name=usage.name,
        id=usage.name,
        memory=usage.memory_bytes,
        storage=usage.storage_bytes,
        reserved_memory=usage.reserved_memory_bytes,
        reserved_storage=usage.reserved_storage_bytes,
        accounts=0,
        ha_assets=0,
        api=ApiSummary(total=usage.api_total, errors=usage.api_errors),
    )
    if (options.streams or options.consumer) and usage.streams:
        detail.stream_detail = [_stream_detail(stream, options) for stream in usage.streams]
    return detail


def _stream_detail(stream: dict[str, Any], options: JszOptions) -> dict[str, Any]:
    detail = dict(stream)
    write_config = detail.pop("config", None)
    consumers = {key: detail.pop(key, None) for key in ("consumer_detail", "direct_consumer_detail")}
    if options.config and write_config is not None:
        # The configuration stands before the state.
        state = detail.pop("state")
        detail |= {"config": write_config(), "state": state}
    if not options.consumer:
        return detail
    for key, describe in consumers.items():
        if describe is None or (key == "direct_consumer_detail" and not options.direct_consumer):
            continue
        described = [_consumer_detail(consumer, options) for consumer in describe()]
        if described:
            detail[key] = described
    return detail


def _consumer_detail(consumer: dict[str, Any], options: JszOptions) -> dict[str, Any]:
    return consumer if options.config else {key: value for key, value in consumer.items() if key != "config"}
