"""Settings that management needs from its server: its name, its domain, and the limits of accounts.

Rebuilt at every reload of the configuration, and replaced as a whole.
"""

import msgspec

from jetlake.management.streams.context import ServerLimits, StreamAccountLimits


class ManagementSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one server."""

    server_name: str
    domain: str = ""
    # Requests with unknown keys are refused.
    is_strict: bool = True
    # Empty = there is none.
    system_account: str = ""
    # The accounts that may store.
    accounts: dict[str, StreamAccountLimits] = {}
    # Requests in the dialects of 2019 and 2020 are answered.
    preview_dialects: bool = True
    # What is reserved is not looked at here: the catalog knows.
    server: ServerLimits = ServerLimits()
