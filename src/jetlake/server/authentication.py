"""Who may come in: the decision over one CONNECT.

The engine holds the connection back, hands over what the client said, and acts on the verdict. All refusals look
the same on the wire and take the same time to compare, so a client learns nothing from them.
"""

import msgspec

from jetlake.server.options import Credentials

GLOBAL_ACCOUNT = "$G"
"""The account of everybody, where no accounts are configured."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """An admission: what the engine needs to know about the client from here on."""

    account: str = GLOBAL_ACCOUNT
    user: str = ""

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)


class Presented(msgspec.Struct, frozen=True, kw_only=True, rename={"password": "pass"}):
    """The part of a CONNECT that says who the client is."""

    user: str = ""
    password: str = ""
    auth_token: str = ""


class Authenticator:
    """Decides by one set of credentials that all clients share. With a token, user and password are not looked at."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def decide(self, connect: bytes) -> Verdict | None:
        """Return the verdict over the JSON object of a CONNECT; None = refused."""
        presented = read_presented(connect)
        if presented is None:
            return None
        wanted = self._credentials
        if wanted.token:
            return Verdict() if _equal(wanted.token, presented.auth_token) else None
        if not wanted.user:
            return Verdict(user=presented.user)
        # Both are compared in any case: the time taken must not tell a wrong user from a wrong password.
        user_matches = _equal(wanted.user, presented.user)
        password_matches = _equal(wanted.password, presented.password)
        return Verdict(user=presented.user) if user_matches and password_matches else None


def read_presented(connect: bytes) -> Presented | None:
    """Return what a CONNECT presents, None when it cannot be read. Keys match in any case, as in nats-server."""
    try:
        fields = msgspec.json.decode(connect or b"{}", type=dict[str, object])
        known = {key.lower(): value for key, value in fields.items() if value is not None}
        return msgspec.convert(known, Presented)
    except msgspec.MsgspecError:
        return None


def _equal(wanted: str, given: str) -> bool:
    # Only servers that compare anything pay for loading OpenSSL.
    from hmac import compare_digest

    return compare_digest(wanted.encode(), given.encode(errors="replace"))
