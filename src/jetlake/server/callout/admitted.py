"""`Admitted`: what is kept of a client that a service has let in; the engine keeps it as the client's `details`.

In operator mode a change of claims is checked against it, so that the service need not be asked again.
"""

import msgspec

from jetlake.server.claims.model import UserClaims, read_user


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """The claims that a service issued, and where it was asked."""

    # The account of the service.
    account: str
    # The claims of the user, as the service signed them.
    user_jwt: str
    # The name and the tags in the claims with which the client came, in operator mode.
    name: str = ""
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()


def read_admitted(details: str) -> Admitted | None:
    """Return what the engine has kept of a client; None = no service has let it in."""
    # Claims that a client came in with are kept as they are, and begin otherwise.
    return msgspec.json.decode(details, type=Admitted) if details.startswith("{") else None


def read_admitted_user(details: str) -> UserClaims | None:
    """Return the user that a service has let in; None = no service has."""
    admitted = read_admitted(details)
    return None if admitted is None else read_user(admitted.user_jwt)
