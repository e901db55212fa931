"""`/subsz`: how subjects are looked up, and which client subscribes to which.

The engine keeps one cache of routes per worker and account and counts only what a miss costs anyway. So `num_matches`
is the number of messages that were routed, the hit rate is the part of them that walked no tree, and the fan-out is
that of the walks.
"""

from typing import Self

import msgspec

from jetlake.monitoring.parameters import Integer, PageError, QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.engine_reports import AccountStatistics, Subscription, SubscriptionQuery
from jetlake.shared.go_text import time_text
from jetlake.shared.subjects import is_literal

LIMIT_DEFAULT = 1024


class SubszOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the fields are those of a `$SYS.REQ.SERVER.*.SUBSZ` request."""

    offset: Integer = 0
    limit: Integer = 0
    subscriptions: bool = False
    account: str = ""
    test: str = ""


class SubscriptionDetail(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One subscription; the fields are the keys of the page."""

    account: str = ""
    account_tag: str = ""
    subject: str
    qgroup: str = ""
    sid: str
    msgs: int
    max: int = 0
    cid: int

    @classmethod
    def of(cls, subscription: Subscription, *, with_account: bool = False) -> Self:
        """Return how a list shows it; lists of one connection do not repeat its account."""
        account = subscription.account if with_account else ""
        return cls(
            account=account,
            account_tag=account,
            subject=subscription.subject,
            qgroup=subscription.queue,
            sid=subscription.sid,
            msgs=subscription.delivered,
            max=subscription.delivered_max,
            cid=subscription.connection_id,
        )


class LookupFigures(msgspec.Struct, kw_only=True):
    """How subjects were looked up, in one account or in all of them."""

    num_subscriptions: int
    num_cache: int
    num_inserts: int
    num_removes: int
    num_matches: int
    cache_hit_rate: float
    max_fanout: int
    avg_fanout: float


class Subsz(msgspec.Struct, kw_only=True):
    """The page. `subscriptions_list` is there only when it was asked for and is not empty."""

    server_id: str
    now: str
    num_subscriptions: int
    num_cache: int
    num_inserts: int
    num_removes: int
    num_matches: int
    cache_hit_rate: float
    max_fanout: int
    avg_fanout: float
    total: int
    offset: int
    limit: int
    subscriptions_list: list[SubscriptionDetail] | msgspec.UnsetType = msgspec.UNSET


def options_of(parameters: QueryParameters) -> SubszOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    return SubszOptions(
        subscriptions=parameters.boolean("subs"),
        offset=parameters.integer("offset"),
        limit=parameters.integer("limit"),
        account=parameters.text("acc"),
        test=parameters.text("test"),
    )


def build(source: MonitoredServer, options: SubszOptions) -> Subsz:
    """Return the page. Raises `PageError`."""
    if options.test and not is_literal(options.test):
        raise PageError(f"invalid test subject, must be valid publish subject: {options.test}")
    offset = max(options.offset, 0)
    limit = options.limit if options.limit > 0 else LIMIT_DEFAULT
    accounts = [
        account for account in source.statistics().accounts if not options.account or account.name == options.account
    ]
    page = Subsz(
        **msgspec.structs.asdict(lookup_figures(accounts)),
        server_id=source.facts.server_id,
        now=time_text(source.now_unix_ns()),
        total=0,
        offset=offset,
        limit=limit,
    )
    if options.subscriptions:
        listed = source.subscriptions(
            SubscriptionQuery(account=options.account, subject=options.test, offset=offset, limit=limit)
        )
        page.total = listed.total
        if listed.subscriptions:
            page.subscriptions_list = [SubscriptionDetail.of(each, with_account=True) for each in listed.subscriptions]
    return page


def lookup_figures(accounts: list[AccountStatistics]) -> LookupFigures:
    """Return the figures of these accounts together."""
    walks = sum(account.routing.walks for account in accounts)
    matches = max(walks, sum(account.traffic.in_messages for account in accounts))
    fanout_total = sum(account.routing.fanout_total for account in accounts)
    return LookupFigures(
        num_subscriptions=sum(account.subscriptions for account in accounts),
        num_cache=0,
        num_inserts=sum(account.routing.inserts for account in accounts),
        num_removes=sum(account.routing.removes for account in accounts),
        num_matches=matches,
        cache_hit_rate=(matches - walks) / matches if matches else 0,
        max_fanout=max((account.routing.fanout_max for account in accounts), default=0),
        avg_fanout=fanout_total / walks if walks else 0,
    )
