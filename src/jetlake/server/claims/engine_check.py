"""Checks with the engine itself, before its options change, whether it accepts a part of an account's claims.

Claims come while a server runs, from many accounts; the engine gets its options as a whole. So the claims of one
account must not make the engine refuse all of them.
"""

from jetlake._engine import EngineError, check_options
from jetlake.config import EngineOptions
from jetlake.server.addresses import DEFAULT_HOST, DEFAULT_PORT
from jetlake.server.engine_errors import message_of
from jetlake.server.options.accounts import AccessOptions, Account

NO_REMOTES = b"[]"


def why_refused(account: Account) -> str:
    """Return why the engine would refuse the mappings and imports of an account; empty = it would not."""
    access = AccessOptions(accounts=(account,))
    options = EngineOptions(
        host=DEFAULT_HOST, port=DEFAULT_PORT, mappings=access.engine_mappings(), imports=access.engine_imports()
    )
    try:
        check_options(options.to_json(), NO_REMOTES)
    except EngineError as error:
        return message_of(error)
    return ""
