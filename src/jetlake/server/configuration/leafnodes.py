"""The block `leafnodes`: the listener for leaf nodes, and the hubs that this server is a leaf node of.

```text
leafnodes {
  listen: "0.0.0.0:7422"
  authorization { user: edge, password: secret, account: EDGE }
  remotes: [ { url: "tls://hub.example.com", credentials: "edge.creds", account: EDGE } ]
}
```

Without a port there is no listener, whatever else the block says, as in nats-server.
"""

import re

from jetlake.server.addresses import PORT_MAX, RANDOM_PORT
from jetlake.server.authentication.passwords import HASH_ADVICE, is_usable
from jetlake.server.configuration.leaf_compression import read_compression
from jetlake.server.configuration.leaf_remotes import read_leaf_remotes
from jetlake.server.configuration.quantities import host_and_port
from jetlake.server.configuration.section import Section
from jetlake.server.configuration.tls import read_tls
from jetlake.server.configuration.users import PROXY_REASON
from jetlake.server.nkeys import is_public_account_key, is_public_user_key
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.leafnodes import (
    DIAL_TIMEOUT_S,
    RECONNECT_S,
    LeafAuthorization,
    LeafListenerOptions,
    LeafOptions,
    LeafRemote,
)
from jetlake.server.options.users import GLOBAL_ACCOUNT, User
from jetlake.shared.listener_urls import join_address

AUTH_TIMEOUT_S_HIGH = 60
"""Above this a number of seconds is more likely a duration that was written without quotes."""

MIN_VERSION = (2, 8, 0)
"""The first nats-server that says its version when it connects as a leaf node."""

VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(-[^+\s]+)?(\+\S+)?")

WRITE_POLICIES = ("default", "close", "retry")

ACCOUNT_KEY_ADVICE = (
    "operator mode requires account nkeys in remotes: add an `account` to each remote of `leafnodes`, a public key of "
    "56 letters and digits that begins with A"
)


def read_leafnodes(section: Section, access: AccessOptions) -> LeafOptions | None:
    """Return what the block asks for; None if it asks for nothing."""
    inner = section.section("leafnodes", "leaf")
    if inner is None:
        return None
    dial_timeout_s = inner.duration_s("dial_timeout") or 0.0
    remotes = read_leaf_remotes(inner, dial_timeout_s if dial_timeout_s > 0 else DIAL_TIMEOUT_S)
    reconnect_s = inner.duration_s("reconnect", "reconnect_delay", "reconnect_interval") or 0.0
    listener = _read_listener(inner)
    without_effect = _read_write_deadline(inner)
    inner.finish()
    _check_accounts(inner, listener, remotes, access)
    if listener is None and not remotes:
        return None
    return LeafOptions(
        listener=listener,
        remotes=remotes,
        reconnect_s=reconnect_s if reconnect_s > 0 else RECONNECT_S,
        without_effect=without_effect,
    )


def _read_listener(section: Section) -> LeafListenerOptions | None:
    """Return where leaf nodes connect; None without a port."""
    host, port = _read_address(section)
    authorization, auth_timeout_s = _read_authorization(section)
    listener = LeafListenerOptions(
        host=host,
        port=max(port, 0),
        advertise=_read_advertise(section, max(port, 0)),
        no_advertise=bool(section.switch("no_advertise")),
        tls=read_tls(section, allow_plain=False),
        authorization=authorization,
        auth_timeout_s=auth_timeout_s,
        compression=read_compression(section),
        isolate=bool(section.switch("isolate_leafnode_interest", "isolate")),
        min_version=_read_min_version(section),
    )
    return None if port == 0 else listener


def _read_address(section: Section) -> tuple[str, int]:
    """Return host and port: RANDOM_PORT = any free one, 0 = none is given."""
    host, port = section.address("listen") or ("", 0)
    port = section.integer("port", lowest=RANDOM_PORT, highest=PORT_MAX) or port
    if not RANDOM_PORT <= port <= PORT_MAX:
        node = section.node("listen")
        section.error(node, f'"listen" has the port {port}: it must be at most {PORT_MAX}, or -1 for a random one')
        port = 0
    return section.host("host", "net") or host, port


def _read_advertise(section: Section, listener_port: int) -> str:
    """Return `host:port` to tell leaf nodes; empty = the listener's own. Without a port it is that of the listener."""
    text = section.text("leafnode_advertise", "advertise")
    if not text:
        return ""
    node = section.node("leafnode_advertise", "advertise")
    try:
        host, port = host_and_port(text if ":" in text else f"{text}:0")
    except ValueError as error:
        section.error(node, f'"advertise": {text!r} {error}')
        return ""
    port = port if port > 0 else listener_port
    if not host or not 0 < port <= PORT_MAX:
        section.error(node, f'"advertise" is {text!r}: write the host and the port that leaf nodes reach, host:port')
        return ""
    return join_address(host, port)


def _read_min_version(section: Section) -> str:
    version = section.text("min_version", "minimum_version")
    if not version:
        return ""
    node = section.node("min_version", "minimum_version")
    parts = VERSION.fullmatch(version)
    if parts is None:
        section.error(node, f'invalid leafnode\'s minimum version: "{version}" is not one such as "2.10.0"')
        return ""
    if tuple(map(int, parts.groups()[:3])) < MIN_VERSION:
        section.error(node, f'the minimum version should be at least 2.8.0, not "{version}"')
        return ""
    return version


def _read_write_deadline(section: Section) -> tuple[str, ...]:
    """Return the keys that are given and have no effect: leaf connections have the write deadline of the server."""
    policy = section.text("write_timeout")
    if policy is not None and policy not in WRITE_POLICIES:
        section.error(section.node("write_timeout"), "write_timeout must be 'default', 'close' or 'retry'")
    section.duration_s("write_deadline")
    return tuple(name for name in ("write_deadline", "write_timeout") if section.node(name) is not None)


def _read_authorization(section: Section) -> tuple[LeafAuthorization, float]:
    """Return who may come in as a leaf node, and how many seconds they have to log in (0 = the default)."""
    inner = section.section("authorization")
    if inner is None:
        return LeafAuthorization(), 0.0
    name, password, key = inner.text("user", "username"), inner.text("pass", "password"), inner.text("nkey")
    account = inner.text("account") or GLOBAL_ACCOUNT
    listed = _read_users(inner)
    timeout_s = _read_timeout(inner)
    _refuse_proxy(inner)
    inner.finish()
    node = section.node("authorization")
    if key and not is_public_user_key(key):
        inner.error(inner.node("nkey"), "Not a valid public nkey for leafnode authorization: it begins with U")
        key = None
    if password is not None and not is_usable(password):
        inner.error(inner.node("pass", "password"), f"The password is not a bcrypt hash: {HASH_ADVICE}")
    if listed and name:
        section.error(node, "can not have a single user/pass and a users array; list the user there")
    if listed and key:
        section.error(node, "can not have a single nkey and a users array; remove one of them")
    if name and key:
        section.error(node, "can not have a single user/pass and a single nkey; remove one of them")
    if password and not name:
        section.error(node, "a password is given without its user: add the user")
    users = listed
    if name:
        users = (User(name=name, password=password or "", account=account),)
    elif key:
        users = (User(name=key, nkey=True, account=account),)
    return LeafAuthorization(users=users, default_account=account), timeout_s


def _read_users(section: Section) -> tuple[User, ...]:
    """Return the users of the list; each may have an account of its own."""
    node, entries = section.node("users"), section.sections("users")
    if entries is None:
        return ()
    if node is not None and node.data == []:
        # nats-server would let everybody in, which the author of the file surely did not mean.
        section.error(node, '"users" is empty: remove it to let in the users of the server, or add a user')
    users: dict[str, User] = {}
    for entry in entries:
        name, password = entry.text("user", "username") or "", entry.text("pass", "password") or ""
        account = entry.text("account") or GLOBAL_ACCOUNT
        _refuse_proxy(entry)
        entry.finish()
        if not name:
            entry.error(None, "User entry requires a user")
        elif name in users:
            section.error(node, f'duplicate user "{name}" detected in leafnode authorization; remove one of them')
        elif not is_usable(password):
            entry.error(None, f'The password of user "{name}" is not a bcrypt hash: {HASH_ADVICE}')
        users[name] = User(name=name, password=password, account=account)
    return tuple(users.values())


def _read_timeout(section: Section) -> float:
    timeout_s = section.seconds("timeout") or 0.0
    node = section.node("timeout")
    if node is not None and timeout_s > AUTH_TIMEOUT_S_HIGH:
        section.problems.warning(
            node.position,
            f'invalid use of field "timeout": {timeout_s:g} seconds is high, consider keeping it under '
            f"{AUTH_TIMEOUT_S_HIGH} seconds; a duration without quotes counts as seconds, write '1m' instead of 1m",
        )
    return max(timeout_s, 0.0)


def _refuse_proxy(section: Section) -> None:
    if section.switch("proxy_required"):
        section.error(section.node("proxy_required"), f'"proxy_required" is not supported {PROXY_REASON}')


def _check_accounts(
    section: Section, listener: LeafListenerOptions | None, remotes: tuple[LeafRemote, ...], access: AccessOptions
) -> None:
    """Report accounts that are not there. They are known only when the rest of the file is read."""
    authorization = LeafAuthorization() if listener is None else listener.authorization
    bound = {authorization.default_account, *(user.account for user in authorization.users)}
    if access.trust is None:
        known = set(access.account_names())
        for key, accounts in (("authorization", bound), ("remotes", {remote.account for remote in remotes})):
            for account in sorted(accounts - known):
                what = key.removesuffix("s")
                section.error(
                    section.node(key),
                    f'cannot find local account "{account}" specified in leafnode {what}; add it to accounts',
                )
        return
    if len(authorization.users) > 1:
        section.error(
            section.node("authorization"),
            "operator mode does not allow specifying users in leafnode config: let leaf nodes log in with credentials",
        )
    if not all(account == GLOBAL_ACCOUNT or is_public_account_key(account) for account in bound):
        section.error(
            section.node("authorization"),
            "operator mode and non account nkeys are incompatible: name the account by its public key, A…",
        )
    if not all(is_public_account_key(remote.account) for remote in remotes):
        section.error(section.node("remotes"), ACCOUNT_KEY_ADVICE)
