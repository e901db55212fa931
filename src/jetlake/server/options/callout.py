"""A service that decides about clients, as the block `auth_callout` of a configuration file names it."""

import msgspec

from jetlake.server.options.users import GLOBAL_ACCOUNT


class CalloutOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Who decides, and about whom. In operator mode the claims of an account say the same about that account."""

    # The public key of an account, which signs the users that the service admits.
    issuer: str
    # Where requests are published and the service listens.
    account: str = GLOBAL_ACCOUNT
    # Users that log in by the configuration alone: the service itself is one of them.
    auth_users: tuple[str, ...]
    # The public curve key of the service; empty = requests are not encrypted.
    xkey: str = ""
    # Users of other accounts log in by the configuration alone; empty = the service decides about all accounts.
    allowed_accounts: tuple[str, ...] = ()
