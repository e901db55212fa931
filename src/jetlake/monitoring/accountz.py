"""`/accountz`: which accounts there are, and one of them in detail.

Invariant: a detail shows counts and times, never a user, a password or a key of the account.
"""

import msgspec

from jetlake.monitoring.go_text import time_text
from jetlake.monitoring.parameters import Parameters, RefusedError
from jetlake.monitoring.readings import Source
from jetlake.monitoring.subsz import LookupFigures, lookup_figures


class AccountzOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted; the field is that of a `$SYS.REQ.SERVER.*.ACCOUNTZ` request."""

    account: str = ""


class AccountInformation(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One account; the fields are the keys of the page."""

    account_name: str
    update_time: str
    is_system: bool = False
    expired: bool
    complete: bool
    jetstream_enabled: bool
    leafnode_connections: int
    client_connections: int
    subscriptions: int
    name_tag: str
    sublist_stats: LookupFigures


class Accountz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The page: the names, or one account."""

    server_id: str
    now: str
    system_account: str = ""
    accounts: list[str] = []
    account_detail: AccountInformation | None = None


def options_of(parameters: Parameters) -> AccountzOptions:
    """Return the options that the parameters of the page ask for."""
    return AccountzOptions(account=parameters.text("acc"))


def build(source: Source, options: AccountzOptions) -> Accountz:
    """Return the page. Raises `RefusedError`."""
    page = Accountz(
        server_id=source.facts.server_id,
        now=time_text(source.now_unix_ns()),
        system_account=source.facts.system_account,
    )
    if options.account:
        page.account_detail = build_account(source, options)
    else:
        page.accounts = [account.name for account in source.statistics().accounts]
    return page


def build_account(source: Source, options: AccountzOptions) -> AccountInformation:
    """Return one account, for `$SYS.REQ.ACCOUNT.*.INFO` too. Raises `RefusedError`."""
    facts = source.facts
    for account in source.statistics().accounts:
        if account.name == options.account:
            return AccountInformation(
                account_name=account.name,
                update_time=time_text(facts.config_loaded_unix_ns),
                is_system=account.name == facts.system_account,
                expired=False,
                complete=True,
                jetstream_enabled=facts.jetstream is not None and account.name in facts.jetstream.accounts,
                leafnode_connections=0,
                client_connections=account.connections,
                subscriptions=account.subscriptions,
                name_tag=account.name,
                sublist_stats=lookup_figures([account]),
            )
    raise RefusedError(f"Account {options.account} does not exist")
