"""What of the block `leafnodes` changes when a configuration is read again, and what cannot.

As in nats-server: hubs may be added, removed, disabled and enabled, and certificates and compression may change. A
remote is the same one if its URLs, its account and its credentials are the same.

Invariant: an error names the field and never shows a password, a token or a seed.
"""

from collections.abc import Callable

from jetlake.errors import ConfigurationError
from jetlake.server.authentication.verdict import REDACTED
from jetlake.server.options.leafnodes import LeafListenerOptions, LeafOptions, LeafRemote
from jetlake.server.options.users import User

NO_LISTENER = LeafListenerOptions(port=0)

RESTART = "restart the server for this change"

LISTENER_FIELDS: tuple[tuple[str, Callable[[LeafListenerOptions], object]], ...] = (
    ("Host", lambda listener: listener.host),
    ("Port", lambda listener: listener.port),
    ("Account", lambda listener: listener.authorization.default_account),
    ("AuthTimeout", lambda listener: listener.auth_timeout_s),
    ("TLSTimeout", lambda listener: listener.tls_timeout_s),
    ("TLSMap", lambda listener: listener.tls is not None and listener.tls.map_users),
    ("TLSPinnedCerts", lambda listener: () if listener.tls is None else listener.tls.pinned_certificates),
    # Whether there is TLS at all is known to the leaf nodes that are connected.
    ("TLSConfig", lambda listener: "disabled" if listener.tls is None else "enabled"),
    ("Advertise", lambda listener: listener.advertise),
    ("NoAdvertise", lambda listener: listener.no_advertise),
    ("MinVersion", lambda listener: listener.min_version),
    ("IsolateLeafnodeInterest", lambda listener: listener.isolate),
)
"""Settings of the listener that cannot change, by nats-server's names; its users are compared separately."""

REMOTE_FIELDS: tuple[tuple[str, Callable[[LeafRemote], object]], ...] = (
    ("NoRandomize", lambda remote: remote.no_randomize),
    ("TLSTimeout", lambda remote: 0.0 if remote.tls is None else remote.tls.timeout_s),
    ("Hub", lambda remote: remote.hub),
    ("DenyImports", lambda remote: list(remote.deny_imports)),
    ("DenyExports", lambda remote: list(remote.deny_exports)),
    ("FirstInfoTimeout", lambda remote: f"{remote.first_info_timeout_s:g}s"),
    ("DialTimeout", lambda remote: f"{remote.dial_timeout_s:g}s"),
    ("Websocket.Compression", lambda remote: remote.websocket_compress),
    ("Websocket.NoMasking", lambda remote: remote.websocket_no_masking),
    ("LocalIsolation", lambda remote: remote.isolate),
    ("RequestIsolation", lambda remote: remote.request_isolation),
    ("IgnoreDiscoveredServers", lambda remote: remote.ignore_discovered_servers),
)
"""What of a remote cannot change."""


def plan_leaf_reload(before: LeafOptions | None, after: LeafOptions | None) -> list[str]:
    """Return a line for each change. Raises `ConfigurationError` when something changed that cannot."""
    old, new = before or LeafOptions(), after or LeafOptions()
    _check_block(old, new)
    old_listener, new_listener = old.listener or NO_LISTENER, new.listener or NO_LISTENER
    lines = []
    if _handshake_first(old_listener) != _handshake_first(new_listener):
        lines.append(f"TLS HandshakeFirst value is: {_shown(_handshake_first(new_listener) is not None)}")
    if old_listener.compression != new_listener.compression:
        lines.append(f"Compression value is: {new_listener.compression}")
    remotes = {remote.identity: remote for remote in new.remotes}
    known = {remote.identity: remote for remote in old.remotes}
    for identity, remote in known.items():
        kept = remotes.get(identity)
        lines += [f"Remote {remote.name} removed"] if kept is None else _changes(remote, kept)
    lines += [f"Remote {remote.name} added" for identity, remote in remotes.items() if identity not in known]
    return [f"Reloaded: LeafNode {line}" for line in lines]


def _check_block(old: LeafOptions, new: LeafOptions) -> None:
    old_listener, new_listener = old.listener or NO_LISTENER, new.listener or NO_LISTENER
    if _users_of(old_listener) != _users_of(new_listener):
        raise _refused(f'field "Users": old={REDACTED}, new={REDACTED}')
    for name, get in LISTENER_FIELDS:
        if get(old_listener) != get(new_listener):
            raise _refused(f'field "{name}": old={_shown(get(old_listener))}, new={_shown(get(new_listener))}')
    if old.reconnect_s != new.reconnect_s:
        raise _refused(f'field "ReconnectInterval": old={old.reconnect_s:g}s, new={new.reconnect_s:g}s')


def _changes(old: LeafRemote, new: LeafRemote) -> list[str]:
    """Return what changed in a remote. Raises `ConfigurationError` when it cannot."""
    for name, get in REMOTE_FIELDS:
        if get(old) != get(new):
            raise _refused(f'remote {new.name}: field "{name}": old={_shown(get(old))}, new={_shown(get(new))}')
    lines = []
    old_first, new_first = (each.tls is not None and each.tls.handshake_first for each in (old, new))
    if old_first != new_first:
        lines.append(f"Remote {new.name} TLS HandshakeFirst value is: {_shown(new_first)}")
    if old.compression != new.compression:
        lines.append(f"Remote {new.name} Compression value is: {new.compression}")
    if old.disabled != new.disabled:
        lines.append(f"Remote {new.name} Disabled value is: {_shown(new.disabled)}")
    return lines


def _users_of(listener: LeafListenerOptions) -> frozenset[User]:
    """Return who may come in, in whatever order they are listed."""
    return frozenset(listener.authorization.users)


def _handshake_first(listener: LeafListenerOptions) -> int | None:
    return None if listener.tls is None else listener.tls.handshake_first_ms


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(reason: str) -> ConfigurationError:
    return ConfigurationError(f"config reload not supported for LeafNode: {reason}; {RESTART}")
