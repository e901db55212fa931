"""Whether the engine takes a part of an account's claims, asked of the engine itself before it is told.

Claims come while a server runs, from many accounts; options are told to the engine as a whole. So what one account
claims must not be the reason that the engine refuses all of them.
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
