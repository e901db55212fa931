"""`/accountz`: which accounts there are, and one of them in detail.

Invariant: a detail shows counts, times and what an operator has claimed in public, never a user or a password.
"""

import msgspec

from jetlake.monitoring.claims_facts import ShownIssue
from jetlake.monitoring.parameters import PageError, QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.monitoring.sharing_facts import ShownDestination, ShownExport, ShownImport
from jetlake.monitoring.subsz import LookupFigures, lookup_figures
from jetlake.shared.go_text import time_text

NANOSECONDS_PER_SECOND = 1_000_000_000


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
    mappings: dict[str, list[ShownDestination]] = {}
    exports: list[ShownExport] = []
    imports: list[ShownImport] = []
    jwt: str = ""
    issuer_key: str = ""
    name_tag: str
    tags: list[str] = []
    decoded_jwt: msgspec.Raw | None = None
    validation_result_jwt: list[ShownIssue] = []
    revoked_user: dict[str, str] = {}
    sublist_stats: LookupFigures


class Accountz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The page: the names, or one account."""

    server_id: str
    now: str
    system_account: str = ""
    accounts: list[str] = []
    account_detail: AccountInformation | None = None


def options_of(parameters: QueryParameters) -> AccountzOptions:
    """Return the options that the parameters of the page ask for."""
    return AccountzOptions(account=parameters.text("acc"))


def build(source: MonitoredServer, options: AccountzOptions) -> Accountz:
    """Return the page. Raises `PageError`."""
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


def build_account(source: MonitoredServer, options: AccountzOptions) -> AccountInformation:
    """Return one account, for `$SYS.REQ.ACCOUNT.*.INFO` too. Raises `PageError`."""
    facts, links = source.facts, source.leaf_links()
    for account in source.statistics().accounts:
        if account.name == options.account:
            information = AccountInformation(
                account_name=account.name,
                update_time=time_text(facts.config_loaded_unix_ns),
                is_system=account.name == facts.system_account,
                expired=False,
                complete=True,
                jetstream_enabled=facts.jetstream is not None and account.name in facts.jetstream.accounts,
                leafnode_connections=sum(link.account == account.name for link in links),
                client_connections=account.connections,
                subscriptions=account.subscriptions,
                name_tag=account.name,
                sublist_stats=lookup_figures([account]),
            )
            if sharing := facts.sharing.get(account.name):
                information.mappings = sharing.mappings
                information.exports = sharing.exports
                information.imports = sharing.imports
            _add_claims(information, source)
            return information
    raise PageError(f"Account {options.account} does not exist")


def _add_claims(information: AccountInformation, source: MonitoredServer) -> None:
    """Add what the operator claims about an account, in operator mode."""
    claims = source.facts.claims
    account = None if claims is None else claims.account(information.account_name)
    if account is None:
        return
    information.update_time = time_text(account.updated_unix_ns)
    information.expired = account.is_expired
    information.jwt = account.jwt
    information.issuer_key = account.issuer_key
    information.name_tag = account.name
    information.tags = account.tags
    information.decoded_jwt = account.claims
    information.validation_result_jwt = account.issues
    information.revoked_user = {
        key: time_text(revoked_unix_s * NANOSECONDS_PER_SECOND) for key, revoked_unix_s in account.revoked_users.items()
    }
