"""The block `auth_callout` in `authorization`: a service that decides about clients."""

from jetlake.server.configuration.section import Section
from jetlake.server.nkeys import is_public_account_key, is_public_curve_key
from jetlake.server.options.accounts import Account
from jetlake.server.options.callout import CalloutOptions
from jetlake.server.options.users import GLOBAL_ACCOUNT


def read_callout(authorization: Section) -> CalloutOptions | None:
    """Return the service that decides; None = there is none, or a mistake was noted."""
    section = authorization.section("auth_callout", "auth_hook")
    if section is None:
        return None
    issuer = section.text("issuer") or ""
    account = section.text("account", "acc") or GLOBAL_ACCOUNT
    auth_users = section.texts("auth_users", "users") or ()
    xkey = section.text("xkey", "key") or ""
    allowed_accounts = section.texts("allowed_accounts") or ()
    section.finish()
    if not issuer:
        section.error(None, "Authorization callouts require an issuer to be specified: the public key of an account")
    elif not is_public_account_key(issuer):
        section.error(
            section.node("issuer"),
            f'Expected callout user to be a valid public account nkey, got "{issuer}": it begins with A',
        )
    elif not auth_users:
        section.error(
            None, "Authorization callouts require authorized users to be specified: name those the service logs in as"
        )
    elif xkey and not is_public_curve_key(xkey):
        section.error(
            section.node("xkey", "key"),
            f'Expected callout xkey to be a valid public xkey, got "{xkey}": it begins with X',
        )
    else:
        return CalloutOptions(
            issuer=issuer, account=account, auth_users=auth_users, xkey=xkey, allowed_accounts=allowed_accounts
        )
    return None


def check_callout(authorization: Section, callout: CalloutOptions, accounts: list[Account], *, has_trust: bool) -> None:
    """Report what does not fit the rest of the file."""
    if has_trust:
        authorization.error(
            None,
            "operators do not allow authorization callouts to be configured directly: "
            "put `authorization` into the claims of the account",
        )
    known = {account.name for account in accounts}
    for name in callout.allowed_accounts:
        if name not in known:
            authorization.error(
                None, f'auth_callout allowed account "{name}" not found in configured accounts; add it to `accounts`'
            )
