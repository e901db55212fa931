"""What a client shows about itself: the fields of its CONNECT, its certificates, and the nonce it was given."""

import msgspec

from jetlake.server.authentication.verdict import REDACTED
from jetlake.server.options.users import STANDARD

OTHER_NAMES = {"password": "pass", "signature": "sig", "language": "lang"}
"""What CONNECT calls fields that have another name here."""


class Presented(msgspec.Struct, frozen=True, kw_only=True, rename=OTHER_NAMES):
    """The part of a CONNECT that says who the client is."""

    user: str = ""
    password: str = ""
    auth_token: str = ""
    nkey: str = ""
    signature: str = ""
    jwt: str = ""
    # What the client calls itself, its library and the protocol it speaks.
    name: str = ""
    language: str = ""
    version: str = ""
    protocol: int = 0

    @property
    def claimed_user(self) -> str:
        """The user that the client says it is, as it may be shown; empty = it does not say, or shows claims."""
        return self.nkey or self.user or (REDACTED if self.auth_token and not self.jwt else "")

    @property
    def anonymous(self) -> bool:
        """Tell whether the client says nothing about who it is; a key alone counts only where keys are looked at."""
        return not (self.user or self.password or self.auth_token)

    def __repr__(self) -> str:
        # It may end up in a traceback; secrets must not.
        return "Presented(…)"


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """One client that asks to come in: its credentials as JSON, its nonce, and what its handshake showed."""

    connect: bytes
    nonce: str = ""
    # JSON; empty without TLS.
    tls: bytes = b""
    # One of `CONNECTION_TYPES`.
    connection_type: str = STANDARD
    # With its port.
    remote_address: str = ""
    connection_id: int = 0
    # In operator mode, of a client that is in and is asked about again: what it was admitted with.
    admitted: str = ""

    @property
    def host(self) -> str:
        """The address without its port."""
        return self.remote_address.rpartition(":")[0].strip("[]")

    def __repr__(self) -> str:
        return "Login(…)"


class Handshake(msgspec.Struct, frozen=True):
    """What the TLS handshake showed; certificates are base64 of DER, the client's own first."""

    version: str = ""
    cipher: str = ""
    certificates: tuple[bytes, ...] = ()


def read_presented(connect: bytes) -> Presented | None:
    """Return what a CONNECT presents, None when it cannot be read. Keys match in any case, as in nats-server."""
    try:
        fields = msgspec.json.decode(connect or b"{}", type=dict[str, object])
        known = {key.lower(): value for key, value in fields.items() if value is not None}
        return msgspec.convert(known, Presented)
    except msgspec.MsgspecError:
        return None


def client_certificate(tls: bytes) -> bytes | None:
    """Return the client's own certificate as DER; None = it showed none."""
    if not tls:
        return None
    certificates = msgspec.json.decode(tls, type=Handshake).certificates
    return certificates[0] if certificates else None
