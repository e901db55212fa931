"""`/accstatz`: what each account does.

Accounts without a connection are left out unless `unused` asks for them.
"""

import msgspec

from jetlake.monitoring.parameters import Parameters
from jetlake.monitoring.readings import Source
from jetlake.shared.engine_reports import AccountStatistics
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
    """One direction of traffic: with clients, and with kinds of connections that do not exist here."""

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


def options_of(parameters: Parameters) -> AccstatzOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    return AccstatzOptions(include_unused=parameters.boolean("unused"))


def build(source: Source, options: AccstatzOptions) -> Accstatz:
    """Return the page."""
    return Accstatz(
        server_id=source.facts.server_id,
        now=time_text(source.now_unix_ns()),
        account_statz=[
            account_figures(account, name_of(source, account.name))
            for account in source.statistics().accounts
            if (not options.accounts or account.name in options.accounts)
            and (options.include_unused or account.connections)
        ],
    )


def name_of(source: Source, account: str) -> str:
    """Return what people call an account: in operator mode its claims say so."""
    claims = source.facts.claims
    return account if claims is None else claims.account_name(account)


def account_figures(account: AccountStatistics, name: str) -> AccountFigures:
    """Return one account as the page shows it."""
    traffic = account.traffic
    return AccountFigures(
        acc=account.name,
        name=name,
        conns=account.connections,
        leafnodes=0,
        # Of all kinds, not of all times.
        total_conns=account.connections,
        num_subscriptions=account.subscriptions,
        sent=DirectionFigures(msgs=traffic.out_messages, bytes=traffic.out_bytes),
        received=DirectionFigures(msgs=traffic.in_messages, bytes=traffic.in_bytes),
        slow_consumers=account.slow_consumers,
    )
