"""`ClaimedAccounts`: the accounts that this server knows from claims, each as options of a configuration file.

An account is looked up when the first of its users comes in, and stays known. New claims for it replace the old ones at
once; claims that were deleted disable it.

Invariant: every account here was signed by a key this server trusts, and its claims were valid when they came.
"""

import time
from collections.abc import Callable
from threading import RLock

import msgspec

from jetlake.management.streams.context import SINGLE_REPLICA_TIER
from jetlake.server.claims import model
from jetlake.server.claims.engine_check import why_refused
from jetlake.server.claims.model import AccountClaims, ScopedKey, read_account
from jetlake.server.claims.permissions import limit_of
from jetlake.server.claims.resolvers import FetchError, Resolver
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.claims.validation import account_issues, blocks
from jetlake.server.configuration.latency import why_not_measured
from jetlake.server.options.accounts import Account, JetStreamAccountLimits, MessageTrace
from jetlake.server.options.imports import CHUNKED, ONE, RESPONSE_TIMEOUT_MS, STREAM, Export, LatencyReports
from jetlake.server.options.mappings import Mapping, MappingDestination
from jetlake.server.options.trust import TrustOptions

UNLIMITED = model.AccountLimits(subs=-1, data=-1, payload=-1, imports=-1, exports=-1, wildcards=True, conn=-1, leaf=-1)

RESPONSES = {"": ONE, "Singleton": ONE, "Stream": STREAM, "Chunked": CHUNKED}

ONLY_WITH_ACTIVATION: tuple[str, ...] = ()
"""An export that needs an activation names nobody who may import it without one."""

NANOSECONDS_PER_MILLISECOND = 1_000_000

REFETCH_S_MIN = 1.0
"""How long an expired account is not looked up again: its users may all try to come back at once."""


class UnknownAccountError(Exception):
    """There is no such account, or its claims are not valid; the message says why."""


class ClaimedAccount(msgspec.Struct, frozen=True, kw_only=True):
    """One account. `token` is empty for a system account whose claims have not been pushed yet."""

    claims: AccountClaims
    token: str
    options: Account
    # The keys that sign users, each with its template if it has one.
    signers: dict[str, ScopedKey | None]
    updated_unix_ns: int
    # Its claims were deleted: nobody may come in.
    is_disabled: bool = False

    @property
    def name(self) -> str:
        """What people call it."""
        return self.claims.name or self.claims.sub

    def is_expired(self, now_unix_s: float) -> bool:
        return self.is_disabled or 0 < self.claims.exp <= now_unix_s

    def revokes(self, key: str, issued_at_unix_s: int) -> bool:
        """Tell whether claims of a user no longer count."""
        return is_revoked(self.claims.nats.revocations, key, issued_at_unix_s)


class ClaimedAccounts:
    """The accounts of one server. Any thread may call; `on_added` is called without the lock, by the one that asked."""

    def __init__(
        self,
        trust: TrustOptions,
        resolver: Resolver,
        *,
        on_added: Callable[[], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._trust = trust
        self.resolver = resolver
        self._on_added = on_added
        self._clock = clock
        self._lock = RLock()
        self._accounts: dict[str, ClaimedAccount] = {}
        # Counts changes, for those who keep something that was made of all accounts.
        self.version = 0

    def known(self) -> list[ClaimedAccount]:
        """Return the accounts that have been looked up, by their keys."""
        with self._lock:
            return [self._accounts[key] for key in sorted(self._accounts)]

    def find(self, key: str) -> ClaimedAccount | None:
        """Return an account that is known; None = it is not."""
        return self._accounts.get(key)

    def look_up(self, key: str) -> ClaimedAccount:
        """Return an account, from where claims are kept if need be. Raises `UnknownAccountError`."""
        known = self._accounts.get(key)
        now = self._clock()
        if known is not None and not known.is_expired(now):
            return known
        if known is not None and now - known.updated_unix_ns / 1e9 < REFETCH_S_MIN:
            raise UnknownAccountError("account has expired")
        try:
            token = self.resolver.fetch(key)
        except (FetchError, OSError) as error:
            raise UnknownAccountError(f"account claims cannot be fetched: {error}") from error
        if not token:
            raise UnknownAccountError("account claims not found")
        if known is not None and known.token == token and not known.is_disabled:
            raise UnknownAccountError("account has expired")
        account = self.adopt(key, token)
        self._on_added()
        return account

    def verify(self, token: str) -> AccountClaims:
        """Return claims that count. Raises `UnknownAccountError`."""
        try:
            claims = read_account(token)
        except InvalidTokenError as error:
            raise UnknownAccountError(str(error)) from error
        self.check_signer(claims)
        issues = account_issues(claims, self._clock())
        if blocks(issues, with_times=True):
            raise UnknownAccountError(f"account claims are not valid: {'; '.join(each.description for each in issues)}")
        return claims

    def check_signer(self, claims: AccountClaims) -> None:
        """Refuse claims that a stranger has signed. Raises `UnknownAccountError`."""
        if claims.iss not in self._trust.keys:
            raise UnknownAccountError("account claims are not signed by a trusted operator")

    def adopt(self, key: str, token: str) -> ClaimedAccount:
        """Know an account by these claims from now on. Raises `UnknownAccountError`, and then nothing has changed."""
        claims = self.verify(token)
        if claims.sub != key:
            raise UnknownAccountError("account claims are those of another account")
        return self._put(self._account(claims, token))

    def adopt_unclaimed(self, key: str, issuer: str) -> ClaimedAccount:
        """Add a system account without claims, so that a user can log in and push them."""
        claims = AccountClaims(sub=key, iss=issuer, nats=model.AccountClaimBody(limits=UNLIMITED))
        return self._put(self._account(claims, ""))

    def disable(self, key: str) -> bool:
        """Let no more clients into an account, and return whether it was known."""
        with self._lock:
            account = self._accounts.get(key)
            if account is None:
                return False
            self._put(
                msgspec.structs.replace(
                    account, is_disabled=True, options=Account(name=key), updated_unix_ns=self._now_unix_ns()
                )
            )
            return True

    def touch(self) -> None:
        """Have everything made again that was made of all accounts."""
        with self._lock:
            self.version += 1

    def forget(self, key: str) -> None:
        """Know an account no more; the next of its users has it looked up."""
        with self._lock:
            self._accounts.pop(key, None)
            self.version += 1

    def _put(self, account: ClaimedAccount) -> ClaimedAccount:
        with self._lock:
            self._accounts[account.claims.sub] = account
            self.version += 1
            return account

    def _account(self, claims: AccountClaims, token: str) -> ClaimedAccount:
        own: dict[str, ScopedKey | None] = {} if claims.iss in self._trust.strict_keys else {claims.sub: None}
        scopes = {key.key if isinstance(key, ScopedKey) else key: key for key in claims.nats.signing_keys}
        return ClaimedAccount(
            claims=claims,
            token=token,
            options=options_of(claims),
            signers={**own, **{name: key if isinstance(key, ScopedKey) else None for name, key in scopes.items()}},
            updated_unix_ns=self._now_unix_ns(),
        )

    def _now_unix_ns(self) -> int:
        return int(self._clock() * 1e9)


def is_revoked(revocations: dict[str, int], key: str, issued_at_unix_s: int) -> bool:
    """Tell whether what was issued to a key then no longer counts: it, or everything (`*`), is revoked up to a time."""
    return any(each in revocations and revocations[each] >= issued_at_unix_s for each in (key, "*"))


def options_of(claims: AccountClaims) -> Account:
    """Return an account as a configuration file would have it."""
    limits, trace = claims.nats.limits, claims.nats.trace
    return Account(
        name=claims.sub,
        max_connections=limit_of(limits.conn),
        max_leafnodes=limit_of(limits.leaf),
        max_subscriptions=limit_of(limits.subs),
        max_payload_bytes=limit_of(limits.payload),
        jetstream=_jetstream_of(limits),
        message_trace=None
        if trace is None
        else MessageTrace(destination=trace.dest, sampling_percent=trace.sampling or 100),
        mappings=tuple(mapping for mapping in _mappings_of(claims) if is_usable(mapping)),
        exports=_exports_of(claims.nats),
    )


def unusable_mappings(claims: AccountClaims) -> list[str]:
    """Return the sources of mappings that make no sense, which have no effect."""
    return [mapping.source for mapping in _mappings_of(claims) if not is_usable(mapping)]


def is_usable(mapping: Mapping) -> bool:
    """Tell whether a mapping makes sense."""
    # Only accounts with mappings pay for this import.
    from jetlake.management.subjects.transform import TransformError, check_mapping

    try:
        for destination in mapping.destinations:
            check_mapping(mapping.source, destination.subject)
    except TransformError:
        return False
    has_duplicates = len({(each.subject, each.cluster) for each in mapping.destinations}) < len(mapping.destinations)
    return not has_duplicates and not why_refused(Account(name="", mappings=(mapping,)))


def _mappings_of(claims: AccountClaims) -> list[Mapping]:
    return [
        Mapping(
            source=source,
            destinations=tuple(
                MappingDestination(subject=each.subject, weight_percent=each.weight or 100, cluster=each.cluster)
                for each in targets
            ),
        )
        for source, targets in claims.nats.mappings.items()
    ]


def _exports_of(account: model.AccountClaimBody) -> tuple[Export, ...]:
    exports = tuple(
        Export(
            subject=each.subject,
            is_service=each.type == "service",
            accounts=ONLY_WITH_ACTIVATION if each.token_req else None,
            account_token_position=each.account_token_position,
            responses=RESPONSES.get(each.response_type, ONE),
            response_timeout_ms=max(1, each.response_threshold // NANOSECONDS_PER_MILLISECOND)
            if each.response_threshold
            else RESPONSE_TIMEOUT_MS,
            latency=_latency_of(each),
            allow_trace=each.allow_trace,
        )
        for each in account.exports
    )
    # An export that cannot be measured still counts, as on nats-server.
    return tuple(
        msgspec.structs.replace(export, latency=None)
        if export.latency is not None and why_not_measured(export, exports)
        else export
        for export in exports
    )


def _latency_of(export: model.ExportClaim) -> LatencyReports | None:
    wanted = export.service_latency
    if wanted is None or export.type != "service":
        return None
    # A text asks for those requests whose headers do.
    percent = wanted.sampling if isinstance(wanted.sampling, int) else 0
    return LatencyReports(subject=wanted.results, sampling_percent=percent)


def _jetstream_of(limits: model.AccountLimits) -> JetStreamAccountLimits | None:
    tiers = limits.tiered_limits
    if tiers:
        if not any(tier.enabled for tier in tiers.values()):
            return None
        # An account that has only tiers with replicas may store nothing here.
        own = _stored_by(tiers.get(SINGLE_REPLICA_TIER, model.JetStreamLimits()))
        return msgspec.structs.replace(own, tiers=tuple((name, _stored_by(tier)) for name, tier in tiers.items()))
    return _stored_by(limits) if limits.enabled else None


def _stored_by(stored: model.JetStreamLimits) -> JetStreamAccountLimits:
    return JetStreamAccountLimits(
        max_memory_bytes=_or_unlimited(stored.mem_storage),
        max_storage_bytes=_or_unlimited(stored.disk_storage),
        max_streams=limit_of(stored.streams),
        max_consumers=limit_of(stored.consumer),
        max_acknowledgements_pending=_size_of(stored.max_ack_pending),
        memory_stream_bytes_max=_size_of(stored.mem_max_stream_bytes),
        storage_stream_bytes_max=_size_of(stored.disk_max_stream_bytes),
        stream_bytes_required=stored.max_bytes_required,
    )


def _or_unlimited(number: int) -> int | None:
    return None if number < 0 else number


def _size_of(number: int) -> int | None:
    """Of these limits 0 is unlimited, too."""
    return number if number > 0 else None
