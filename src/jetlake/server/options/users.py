"""A user of a server: how it proves who it is, and what it may publish and subscribe to.

Invariant: a `User` has either a password (which may be empty) or a public key (`nkey`), and its name is unique among
all users of all accounts.
"""

import msgspec

GLOBAL_ACCOUNT = "$G"
"""The account of everybody who was not put into another one."""

SYSTEM_ACCOUNT = "$SYS"

STANDARD, WEBSOCKET = "STANDARD", "WEBSOCKET"
"""The ways in which clients connect: TCP, and WebSocket."""

LEAF, LEAF_WEBSOCKET = "LEAFNODE", "LEAFNODE_WS"
"""The same for leaf nodes."""

LEAF_TYPES = frozenset({LEAF, LEAF_WEBSOCKET})

CONNECTION_TYPES = frozenset({STANDARD, WEBSOCKET, *LEAF_TYPES, "MQTT", "MQTT_WS", "INPROCESS"})
"""nats-server's ways to connect, as the configuration of a user names them."""

UNLIMITED = -1
"""For the two numbers of `ResponsePermissions`."""


class SubjectPermissions(msgspec.Struct, frozen=True, kw_only=True):
    """Which subjects are allowed and which are not; deny wins. `allow` None = all, empty = none.

    An entry for subscriptions may name a queue after a blank: `orders.> workers`.
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()


class ResponsePermissions(msgspec.Struct, frozen=True, kw_only=True):
    """A right to answer: a message with a reply subject allows `count_max` publications to it within `expires_ms`."""

    count_max: int = 1
    expires_ms: int = 120_000


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may do. With `responses`, everything that `publish` does not allow by name is only an answer."""

    publish: SubjectPermissions = SubjectPermissions()
    subscribe: SubjectPermissions = SubjectPermissions()
    responses: ResponsePermissions | None = None


class User(msgspec.Struct, frozen=True, kw_only=True):
    """One user. `permissions` None = everything is allowed; `connection_types` empty = every way to connect."""

    # The user name, or the public key of one that signs.
    name: str
    # Plain or a bcrypt hash; of no meaning for a key.
    password: str = ""
    nkey: bool = False
    account: str = GLOBAL_ACCOUNT
    permissions: Permissions | None = None
    connection_types: frozenset[str] = frozenset()

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; secrets must not.
        return f"User({self.name!r} of {self.account!r})"

    def may_connect_as(self, connection_type: str) -> bool:
        assert connection_type in CONNECTION_TYPES
        return not self.connection_types or connection_type in self.connection_types
