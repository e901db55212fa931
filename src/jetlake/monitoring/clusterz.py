"""`/routez`, `/gatewayz`, `/raftz` and `/ipqueuesz`: what only servers of a cluster have.

This server stands alone, so the pages are empty, but they are there, with nats-server's keys: a poller that reads them
on every server must not fail on this one.
"""

from typing import Any

import msgspec

from jetlake.monitoring.parameters import QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.go_text import time_text

NO_RAFT = "No Raft nodes registered"


class StandaloneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be asked for changes nothing in an empty list."""


class Routez(msgspec.Struct, kw_only=True):
    """Connections to servers of the same cluster."""

    server_id: str
    server_name: str
    now: str
    num_routes: int = 0
    routes: list[Any] = []


class Gatewayz(msgspec.Struct, kw_only=True):
    """Connections to other clusters."""

    server_id: str
    now: str
    outbound_gateways: dict[str, Any] = {}
    inbound_gateways: dict[str, Any] = {}


def routez_options(parameters: QueryParameters) -> StandaloneOptions:
    """Check the parameters of `/routez`. Raises `PageError`."""
    parameters.subscriptions()
    return StandaloneOptions()


def gatewayz_options(parameters: QueryParameters) -> StandaloneOptions:
    """Check the parameters of `/gatewayz`. Raises `PageError`."""
    parameters.subscriptions()
    parameters.boolean("accs")
    return StandaloneOptions()


def ipqueuesz_options(parameters: QueryParameters) -> StandaloneOptions:
    """Check the parameters of `/ipqueuesz`. Raises `PageError`."""
    parameters.boolean("all")
    return StandaloneOptions()


def build_routez(source: MonitoredServer, _options: StandaloneOptions) -> Routez:
    """Return the page."""
    facts = source.facts
    return Routez(server_id=facts.server_id, server_name=facts.server_name, now=time_text(source.now_unix_ns()))


def build_gatewayz(source: MonitoredServer, _options: StandaloneOptions) -> Gatewayz:
    """Return the page."""
    return Gatewayz(server_id=source.facts.server_id, now=time_text(source.now_unix_ns()))


def build_nothing(_source: MonitoredServer, _options: StandaloneOptions) -> dict[str, Any]:
    """Return an empty page: `/ipqueuesz` and the reply to `RAFTZ`."""
    return {}
