"""What accounts share by their claims: exports, and those imports that count.

An import counts if the other account is known and exports the subject: to everybody, to the account whose name is at a
certain position of the subject, or to accounts with an activation that it has signed for them, and has not revoked.

Invariant: what is returned can be given to the engine as it is. An import that does not count is left out; the account
still works, as on nats-server.
"""

from collections.abc import Mapping

import msgspec

from jetlake.server.claims import model
from jetlake.server.claims.accounts import ClaimedAccount, is_revoked
from jetlake.server.claims.engine_check import why_refused
from jetlake.server.claims.model import read_activation
from jetlake.server.claims.sharing import import_issues
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.claims.validation import blocks
from jetlake.server.configuration.exports import find_duplicate, leads_back, may_import
from jetlake.server.options.accounts import Account
from jetlake.server.options.imports import Import, find_export


class SharedAccounts(msgspec.Struct, frozen=True):
    """Accounts with what they share, and when the first account or activation expires; None = none does."""

    accounts: tuple[Account, ...]
    next_expiry_unix_s: int | None
    # A line for each import that does not count.
    refused: tuple[str, ...]


def share(known: list[ClaimedAccount], now_unix_s: float) -> SharedAccounts:
    """Return the options of accounts, with exports and imports."""
    claimed = {account.claims.sub: account for account in known}
    options = {key: account.options for key, account in claimed.items()}
    expiries = [account.claims.exp for account in known if account.claims.exp > now_unix_s]
    refused: list[str] = []
    for key, account in claimed.items():
        for each in () if account.is_disabled else account.claims.nats.imports:
            wanted = _import_of(each)
            exporter = claimed.get(each.account)
            reason = _refusal(account, each, wanted, exporter, options, now_unix_s)
            if reason:
                refused.append(
                    f'Account {key} ({account.name}): the import of "{each.subject}" does not count: {reason}'
                )
                continue
            options[key] = msgspec.structs.replace(options[key], imports=(*options[key].imports, wanted))
            expiry = read_activation(each.token).exp if each.token else 0
            # What everybody may import needs none, so one that has expired changes nothing any more.
            if expiry > now_unix_s:
                expiries.append(expiry)
    return SharedAccounts(tuple(options.values()), min(expiries, default=None), tuple(refused))


def _refusal(
    account: ClaimedAccount,
    each: model.ImportClaim,
    wanted: Import,
    exporter: ClaimedAccount | None,
    options: Mapping[str, Account],
    now_unix_s: float,
) -> str:
    """Return why an import does not count; empty = it does."""
    if exporter is None or exporter.is_expired(now_unix_s):
        return f"account {each.account} is not known"
    exports = options[exporter.claims.sub].exports
    export = find_export(wanted, exports)
    if export is None:
        return f"account {each.account} does not export it"
    claimed = exporter.claims.nats.exports[exports.index(export)]
    if claimed.token_req and not claimed.account_token_position:
        if not _activates(account, each, exporter, claimed, now_unix_s):
            return "it needs an activation that is valid"
    elif not may_import(account.claims.sub, wanted, exports):
        return f"account {each.account} does not export it to this one"
    if leads_back(account.claims.sub, wanted, dict(options), frozenset()):
        return "it would lead back to this account"
    if find_duplicate(wanted, options[account.claims.sub].imports) is not None:
        return "it is imported twice"
    return why_refused(Account(name="", imports=(wanted,)))


def _activates(
    account: ClaimedAccount,
    each: model.ImportClaim,
    exporter: ClaimedAccount,
    export: model.ExportClaim,
    now_unix_s: float,
) -> bool:
    """Tell whether the token of an import is of the exporter, for this account, and still counts."""
    if not each.token or blocks(import_issues(each, account.claims.sub), with_times=True):
        return False
    try:
        activation = read_activation(each.token)
    except InvalidTokenError:
        return False
    if activation.nats.issuer_account:
        is_signed = activation.nats.issuer_account == exporter.claims.sub and activation.iss in exporter.signers
    else:
        is_signed = activation.iss == exporter.claims.sub
    is_now = activation.nbf <= now_unix_s and (not activation.exp or now_unix_s < activation.exp)
    return is_signed and is_now and not is_revoked(export.revocations, activation.sub, activation.iat)


def _import_of(each: model.ImportClaim) -> Import:
    """Return an import as a file would have it: old claims name the subjects of services the other way round."""
    is_service = each.type == "service"
    subject, local_subject = each.subject, each.local_subject
    if not local_subject and is_service:
        subject, local_subject = each.to or each.subject, each.subject
    elif not local_subject:
        local_subject = f"{each.to.removesuffix('.')}.{each.subject}" if each.to else each.subject
    return Import(
        account=each.account,
        subject=subject,
        local_subject=local_subject,
        is_service=is_service,
        share=each.share,
        allow_trace=each.allow_trace,
    )
