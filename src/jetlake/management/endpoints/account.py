"""`$JS.API.INFO`: what an account uses, what it may use, and how often it has asked.

Invariant: a request is counted after its answer is made, so the numbers in an answer do not include it.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import msgspec

from jetlake.management.catalog.streams import StreamCatalog
from jetlake.management.requests.calls import Call
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.context import SINGLE_REPLICA_TIER, StreamAccountLimits
from jetlake.management.wire.api_level import API_LEVEL
from jetlake.management.wire.error_codes import RequestError

NO_LIMITS = StreamAccountLimits(
    max_memory=0,
    max_storage=0,
    max_streams=0,
    max_consumers=0,
    max_ack_pending=0,
    memory_max_stream_bytes=0,
    storage_max_stream_bytes=0,
)
"""Stands where an account has limits for each tier, and none for all."""


class ApiFigures(msgspec.Struct):
    """How many requests an account has made since the start, and how many were refused."""

    total: int = 0
    errors: int = 0


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the streams of an account hold, in bytes."""

    memory: int = 0
    storage: int = 0
    messages: int = 0


class AccountEndpoints:
    """The endpoint, with what it works on, and the counting of requests."""

    def __init__(self, catalog: StreamCatalog, settings: Callable[[], ManagementSettings]) -> None:
        self._catalog = catalog
        self._settings = settings
        self._figures: dict[str, ApiFigures] = {}
        # Requests that only read are answered beside others of their account.
        self._counting = Lock()

    def note(self, account: str, *, is_error: bool) -> None:
        """Count a request that was answered."""
        with self._counting:
            figures = self._figures.setdefault(account, ApiFigures())
            figures.total += 1
            figures.errors += is_error

    def figures(self, account: str) -> ApiFigures:
        """Return how often an account has asked this server or the engine, which reports failures only."""
        figures = self._figures.get(account, ApiFigures())
        misses = self._catalog.misses(account)
        return ApiFigures(total=figures.total + misses, errors=figures.errors + misses)

    def usage(self, account: str) -> Usage:
        """Return what the streams of an account hold, but those that go meanwhile. Asks the engine about each."""
        held = {"memory": 0, "file": 0}
        messages = 0
        streams = self._catalog.streams_of(account)
        for name in list(streams.names):
            config = streams.get(name)
            try:
                state = self._catalog.state(account, name)
            except RequestError:
                continue
            if config is not None:
                held[config.storage] += state.bytes
                messages += state.messages
        return Usage(memory=held["memory"], storage=held["file"], messages=messages)

    def info(self, call: Call) -> dict[str, Any]:
        """Return all about the account. A body is not looked at."""
        settings = self._settings()
        streams = self._catalog.streams_of(call.account)
        usage = self.usage(call.account)
        limits = settings.accounts[call.account]
        used = {
            "memory": usage.memory,
            "storage": usage.storage,
            "reserved_memory": streams.reserved_bytes("memory"),
            "reserved_storage": streams.reserved_bytes("file"),
            "streams": len(streams),
            "consumers": sum(len(self._catalog.consumers.of(call.account, name)) for name in list(streams.names)),
        }
        answer: dict[str, Any] = {**used, "limits": _describe_limits(NO_LIMITS if limits.tiers else limits)}
        if settings.domain:
            answer["domain"] = settings.domain
        figures = self.figures(call.account)
        answer["api"] = {"level": API_LEVEL, "total": figures.total, "errors": figures.errors}
        if limits.tiers:
            answer["tiers"] = _describe_tiers(limits, used)
        return answer


def _describe_tiers(limits: StreamAccountLimits, used: dict[str, int]) -> dict[str, Any]:
    """Return what is used of each tier: all streams of one server have no replicas."""
    unused = dict.fromkeys(used, 0)
    tiers = {name: {**unused, "limits": _describe_limits(tier)} for name, tier in limits.tiers}
    if used["streams"] or SINGLE_REPLICA_TIER in tiers:
        own = tiers.get(SINGLE_REPLICA_TIER, {"limits": _describe_limits(NO_LIMITS)})
        tiers[SINGLE_REPLICA_TIER] = {**used, "limits": own["limits"]}
    return tiers


def _describe_limits(limits: StreamAccountLimits) -> dict[str, Any]:
    return {
        "max_memory": limits.max_memory,
        "max_storage": limits.max_storage,
        "max_streams": limits.max_streams,
        "max_consumers": limits.max_consumers,
        "max_ack_pending": limits.max_ack_pending,
        "memory_max_stream_bytes": limits.memory_max_stream_bytes,
        "storage_max_stream_bytes": limits.storage_max_stream_bytes,
        "max_bytes_required": limits.max_bytes_required,
    }
