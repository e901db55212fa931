"""Accounts and their users: the part of the options that decides about a client.

An account is a space of subjects of its own. `$G` is there always and takes everybody who was not put elsewhere; the
system account, `$SYS` unless another was chosen, gets reports about the server itself and may query it.
"""

import msgspec

from jetlake.config import EngineImports, EngineMapping, EngineMappingDestination
from jetlake.errors import ConfigurationError
from jetlake.server.options.callout import CalloutOptions
from jetlake.server.options.imports import Export, Import, for_engine
from jetlake.server.options.mappings import Mapping
from jetlake.server.options.trust import TrustOptions
from jetlake.server.options.users import GLOBAL_ACCOUNT, SYSTEM_ACCOUNT, User


class Credentials(msgspec.Struct, frozen=True, kw_only=True):
    """What every client must present. With a token, user and password are not looked at, as in nats-server."""

    user: str = ""
    password: str = ""
    token: str = ""

    @property
    def required(self) -> bool:
        return bool(self.user or self.token)

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; secrets must not.
        shown = [name for name in ("user", "password", "token") if getattr(self, name)]
        return f"Credentials(given: {', '.join(shown) or 'none'})"


class JetStreamAccountLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What an account may store; None = no limit but the server's."""

    max_memory_bytes: int | None = None
    max_storage_bytes: int | None = None
    max_streams: int | None = None
    max_consumers: int | None = None
    max_acknowledgements_pending: int | None = None
    memory_stream_bytes_max: int | None = None
    storage_stream_bytes_max: int | None = None
    # Streams without a size limit of their own are refused.
    stream_bytes_required: bool = False
    # The limits of each tier, by name, where claims have tiers: then the others are those of streams without replicas.
    tiers: "tuple[tuple[str, JetStreamAccountLimits], ...]" = ()


class MessageTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Where messages with a trace context are reported, and how many of a hundred."""

    destination: str
    sampling_percent: int = 100


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One account. Limits that are None are the server's; `jetstream` None = this account stores nothing."""

    name: str
    max_connections: int | None = None
    # Servers that may connect as leaf nodes; those that this one connects to are not counted.
    max_leafnodes: int | None = None
    # Per connection, and so is the next.
    max_subscriptions: int | None = None
    max_payload_bytes: int | None = None
    jetstream: JetStreamAccountLimits | None = None
    message_trace: MessageTrace | None = None
    mappings: tuple[Mapping, ...] = ()
    exports: tuple[Export, ...] = ()
    imports: tuple[Import, ...] = ()


class AccessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides about a client. Nothing here = everybody comes in, to `$G`."""

    credentials: Credentials = Credentials()
    users: tuple[User, ...] = ()
    accounts: tuple[Account, ...] = ()
    # Those of `$G`; every other account has its own.
    mappings: tuple[Mapping, ...] = ()
    # The user that clients without credentials become; empty = they are refused.
    no_auth_user: str = ""
    # Where clients come in if nobody needs to log in; leaf nodes may have another one.
    default_account: str = GLOBAL_ACCOUNT
    # Empty = there is none.
    system_account: str = SYSTEM_ACCOUNT
    # Users come from certificates.
    map_certificates: bool = False
    # Where only the system account has users, everybody else still comes in without credentials.
    only_system_users: bool = False
    # Operator mode: users and accounts come with claims; None = they are those above.
    trust: TrustOptions | None = None
    # A service decides about clients; None = there is none. In operator mode claims say so.
    callout: CalloutOptions | None = None

    def __post_init__(self) -> None:
        if self.no_auth_user and not any(user.name == self.no_auth_user for user in self.users):
            where = (
                "not present as user or nkey in authorization block or account configuration"
                if self.users
                else "present, but users/nkeys are not defined"
            )
            raise ConfigurationError(f'no_auth_user: "{self.no_auth_user}" {where}')

    @property
    def required(self) -> bool:
        """Tell whether a client must be asked about at all."""
        return self.credentials.required or bool(self.users) or self.trust is not None or self.callout is not None

    @property
    def admits_strangers(self) -> bool:
        """Tell whether a client without credentials comes in although others need some."""
        return bool(self.no_auth_user) or self.only_system_users

    @property
    def signs_nonce(self) -> bool:
        return self.trust is not None or any(user.nkey for user in self.users)

    def engine_mappings(self) -> dict[str, tuple[EngineMapping, ...]]:
        """Return the mappings of all accounts that have some, by name."""
        by_account = {GLOBAL_ACCOUNT: self.mappings} | {account.name: account.mappings for account in self.accounts}
        return {
            name: tuple(_for_engine(mapping) for mapping in mappings)
            for name, mappings in by_account.items()
            if mappings
        }

    def engine_imports(self) -> dict[str, EngineImports]:
        """Return what accounts see of others, for those that see something."""
        exports = {account.name: account.exports for account in self.accounts}
        return {account.name: for_engine(account.imports, exports) for account in self.accounts if account.imports}

    def account_names(self) -> list[str]:
        """Return every account there is, `$G` and the system account included."""
        names = [GLOBAL_ACCOUNT, *(account.name for account in self.accounts)]
        if self.system_account and self.system_account not in names:
            names.append(self.system_account)
        return names


def _for_engine(mapping: Mapping) -> EngineMapping:
    return EngineMapping(
        source=mapping.source,
        destinations=tuple(
            EngineMappingDestination(subject=destination.subject, weight_percent=destination.weight_percent)
            for destination in mapping.destinations
            # This server is in no cluster.
            if not destination.cluster
        ),
    )
