"""`Delegation`: a client that a service decides about, the account to ask it in, and what the service gets."""

import msgspec

from jetlake.server.authentication.presented import Presented
from jetlake.server.options.users import Permissions, SubjectPermissions

CALLOUT_SUBJECT = "$SYS.REQ.USER.AUTH"
"""Where a service is asked. Nobody in its account may publish there: only servers ask."""


class Delegation(msgspec.Struct, frozen=True, kw_only=True):
    """What the rules of a server say about a client that a service is to decide about."""

    # The account of the service.
    account: str
    # Whom requests are about: the key that is to sign users.
    issuer: str
    # The curve key of the service; empty = it is asked in plain text.
    xkey: str = ""
    # What the client shows, with the user that it is without saying so.
    presented: Presented = Presented()
    # How the client may be shown.
    user: str = ""
    # The name and the tags in the claims with which the client came, in operator mode.
    name: str = ""
    tags: tuple[str, ...] = ()


def without_callout(permissions: Permissions | None) -> Permissions:
    """Return what a user in the account of a service may do: everything it might, except for asking the service."""
    given = permissions or Permissions()
    publish = given.publish
    if CALLOUT_SUBJECT in publish.deny:
        return given
    denied = SubjectPermissions(allow=publish.allow, deny=(*publish.deny, CALLOUT_SUBJECT))
    return msgspec.structs.replace(given, publish=denied)
