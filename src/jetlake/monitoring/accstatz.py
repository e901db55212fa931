"""`/accstatz`: what each account does.

Accounts without a connection are left out unless `unused` asks for them.
"""

import msgspec

from jetlake.monitoring.parameters import QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.engine_reports import AccountStatistics, LeafLink
from jetlake.shared.go_text import time_text


class AccstatzOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the fields are those of a `$SYS.REQ.ACCOUNT.PING.STATZ` request."""

    accounts: list[str] = []
    include_unused: bool = False


class MessageFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Messages and their bytes."""

    msgs: int = 0
    bytes: int = 0


class DirectionFigures(MessageFigures, frozen=True, kw_only=True):
    """One direction of traffic: with clients, and with other servers, of which only leaf nodes and hubs exist here."""

    gateways: MessageFigures = MessageFigures()
    routes: MessageFigures = MessageFigures()
    leafs: MessageFigures = MessageFigures()


class AccountFigures(msgspec.Struct, kw_only=True):
    """One account; the fields are the keys of the page."""

    acc: str
    name: str
    conns: int
    leafnodes: int
    total_conns: int
    num_subscriptions: int
    sent: DirectionFigures
    received: DirectionFigures
    slow_consumers: int


class Accstatz(msgspec.Struct, kw_only=True):
    """The page."""

    server_id: str
    now: str
    account_statz: list[AccountFigures]


def options_of(parameters: QueryParameters) -> AccstatzOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    return AccstatzOptions(include_unused=parameters.boolean("unused"))


def build(source: MonitoredServer, options: AccstatzOptions) -> Accstatz:
    """Return the page."""
    links = source.leaf_links()
    linked = {link.account for link in links}
    return Accstatz(
        server_id=source.facts.server_id,
        now=time_text(source.now_unix_ns()),
        account_statz=[
            account_figures(account, name_of(source, account.name), links)
            for account in source.statistics().accounts
            if (not options.accounts or account.name in options.accounts)
            and (options.include_unused or account.connections or account.name in linked)
        ],
    )


def name_of(source: MonitoredServer, account: str) -> str:
    """Return what people call an account: in operator mode its claims say so."""
    claims = source.facts.claims
    return account if claims is None else claims.account_name(account)


def account_figures(account: AccountStatistics, name: str, links: list[LeafLink]) -> AccountFigures:
    """Return one account as the page shows it. Of `links`, those of the account count."""
    traffic = account.traffic
    own = [link for link in links if link.account == account.name]
    sent = MessageFigures(msgs=sum(link.out_messages for link in own), bytes=sum(link.out_bytes for link in own))
    received = MessageFigures(msgs=sum(link.in_messages for link in own), bytes=sum(link.in_bytes for link in own))
    return AccountFigures(
        acc=account.name,
        name=name,
        conns=account.connections,
        leafnodes=len(own),
        # Of all kinds, not of all times.
        total_conns=account.connections + len(own),
        num_subscriptions=account.subscriptions,
        sent=DirectionFigures(msgs=traffic.out_messages, bytes=traffic.out_bytes, leafs=sent),
        received=DirectionFigures(msgs=traffic.in_messages, bytes=traffic.in_bytes, leafs=received),
        slow_consumers=account.slow_consumers,
    )
