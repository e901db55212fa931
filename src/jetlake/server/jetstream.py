"""`JetStream`: streams and their API for one server, from its start to its end.

```python
jetstream = JetStream(engine, options=…, folder=store_folder, log=log)
jetstream.open()                # every stream takes messages once the engine starts
jetstream.update()              # requests are answered; again after every reload
jetstream.receive(request)      # by the thread that receives from the engine
jetstream.close()
```

The API is answered in every account: an account without JetStream gets that as an error.

Invariant: a request reaches management only through a subscription made here, and `close` returns when the last answer
has been given.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from jetlake._engine import Engine, EngineError, Request
from jetlake.errors import StartError
from jetlake.management.catalog.streams import StoreOptions, StreamCatalog
from jetlake.management.dispatch import DOMAIN_SUBJECTS
from jetlake.management.engine.protocols import ArchiveEvent, ConsumerEvent
from jetlake.management.manager import Manager
from jetlake.management.preview.subjects import SUBSCRIPTIONS as PREVIEW_SUBJECTS
from jetlake.management.requests.calls import API_PREFIX
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits
from jetlake.server.engine_errors import message_of
from jetlake.server.options import JetStreamAccountLimits, JetStreamOptions, ServerOptions
from jetlake.server.options.jetstream import DEFAULT_SYNC_INTERVAL_S
from jetlake.server.options.users import GLOBAL_ACCOUNT
from jetlake.server.store_folder import StoreFolder

if TYPE_CHECKING:
    from jetlake.monitoring.jsz import AccountUsage
    from jetlake.server.log import Log

NANOSECONDS_PER_SECOND = 1_000_000_000


class _Services(NamedTuple):
    """The subscriptions of one account, and what they are to."""

    subjects: tuple[str, ...]
    ids: list[int]


class JetStream:
    """Streams of one server. `options` returns those in force."""

    def __init__(
        self, engine: Engine, *, options: Callable[[], ServerOptions], folder: StoreFolder, log: "Log"
    ) -> None:
        self._engine = engine
        self._options = options
        self._folder = folder
        self._log = log
        self.catalog = StreamCatalog(engine)
        self.manager = Manager(engine, self.catalog, self._settings(), log.warning)
        # The subscriptions, by account.
        self._services: dict[str, _Services] = {}
        # All of them. The thread that receives from the engine only checks for membership, which the GIL makes safe.
        self._all_services: set[int] = set()
        # The accounts as the engine knows them: there may be thousands, and few of them change at a time.
        self._limited: dict[str, StreamAccountLimits] = {}

    def open(self) -> None:
        """Open every stream there is, before the engine starts. Raises `StartError`."""
        try:
            lines = self.catalog.open(self._folder.directory, store_options(self._options().jetstream, self._folder))
        except EngineError as error:
            raise StartError(f"The streams cannot be opened: {message_of(error)}") from error
        for line in [*lines, *self.manager.templates.open(self._folder.directory)]:
            self._log.warning(line)

    def update(self) -> None:
        """Answer by the options in force, in the accounts there are now."""
        options = self._options()
        settings = self._settings()
        self.manager.update(settings)
        known, self._limited = self._limited, settings.accounts
        changed = {name: limits for name, limits in settings.accounts.items() if known.get(name) != limits}
        self.catalog.limit(changed, settings.server)
        domain, system = options.jetstream.domain, options.access.system_account
        has_previews = options.jetstream.preview_dialects
        ordinary = subjects_of(domain, has_previews=has_previews, is_system=False)
        of_system = subjects_of(domain, has_previews=False, is_system=True)
        wanted = {name: of_system if name == system else ordinary for name in options.access.account_names()}
        for account in [name for name, services in self._services.items() if wanted.get(name) != services.subjects]:
            services = self._services.pop(account)
            for service in services.ids:
                self._engine.unsubscribe(service)
            self._all_services.difference_update(services.ids)
        for account in sorted(wanted.keys() - self._services.keys()):
            ids = [self._engine.subscribe_api(account, subject) for subject in wanted[account]]
            self._services[account] = _Services(wanted[account], ids)
            self._all_services.update(ids)
        self.manager.templates.listen(settings.accounts)

    def serves(self, service: int) -> bool:
        """Return whether a request to this service is one to the API."""
        return service in self._all_services or service in self.manager.templates.services

    def receive(self, request: Request) -> None:
        """Take a request, to answer it in another thread."""
        self.manager.receive(request)

    def note(self, event: ArchiveEvent | ConsumerEvent) -> None:
        """Take what the engine says about archives and consumers, to deal with it in another thread."""
        self.manager.note(event)

    def usages(self) -> "list[AccountUsage]":
        """Return what the accounts store, for monitoring."""
        # Most servers are never asked.
        from jetlake.server.monitoring.usages import account_usages

        return account_usages(self.catalog, self.manager.accounts, self._settings())

    def close(self) -> None:
        """Take no more requests, and wait for the one that is being answered."""
        self.manager.close()
        self.manager.join()

    def _settings(self) -> ManagementSettings:
        options = self._options()
        return ManagementSettings(
            server_name=options.server_name or self._engine.server_id,
            domain=options.jetstream.domain,
            is_strict=options.jetstream.strict,
            system_account=options.access.system_account,
            accounts=accounts_with_jetstream(options),
            preview_dialects=options.jetstream.preview_dialects,
            server=server_limits(options.jetstream, self._folder),
        )


@lru_cache
def subjects_of(domain: str, *, has_previews: bool, is_system: bool) -> tuple[str, ...]:
    """Return the subjects of the API in an account, with those of the preview dialects if they are served."""
    return (*api_subjects(domain, is_system=is_system), *(PREVIEW_SUBJECTS if has_previews else ()))


def api_subjects(domain: str, *, is_system: bool) -> list[str]:
    """Return the subjects of the API in an account. In the system account whatever is asked is refused."""
    subjects = [f"{API_PREFIX}>"]
    if domain:
        tails = (">",) if is_system else DOMAIN_SUBJECTS
        subjects += [f"$JS.{domain}.API.{tail}" for tail in tails]
    return subjects


def store_options(options: JetStreamOptions, folder: StoreFolder) -> StoreOptions:
    """Return the engine's storage options.

    An acknowledged message is on disk, unless the configuration asks for an interval: the risk is never the default.
    The files of remotes are read now: raises `ConfigurationError` if one cannot be read.
    """
    has_interval = options.sync_interval_s != DEFAULT_SYNC_INTERVAL_S
    return StoreOptions(
        sync_always=options.sync_always or not has_interval,
        sync_interval_ms=int(options.sync_interval_s * 1_000),
        domain=options.domain,
        long_ack_subjects=options.long_ack_subjects,
        memory_bytes_max=folder.memory_bytes_max,
        storage_bytes_max=folder.storage_bytes_max,
        buffered_messages_max=options.buffered_messages_max or 0,
        buffered_bytes_max=options.buffered_bytes_max or 0,
        batches_per_stream_max=options.batches_per_stream_max or 0,
        batches_max=options.batches_max or 0,
        batch_messages_max=options.batch_messages_max or 0,
        batch_idle_ms_max=int((options.batch_idle_s_max or 0) * 1_000),
        key=options.key,
        previous_key=options.previous_key,
        remotes=tuple(remote.for_engine() for remote in options.remotes),
    )


def accounts_with_jetstream(options: ServerOptions) -> dict[str, StreamAccountLimits]:
    """Return who may store how much: where no accounts are configured, everybody is in `$G`."""
    system = options.access.system_account
    accounts = [account for account in options.access.accounts if account.name != system]
    if not accounts and options.access.trust is None:
        return {GLOBAL_ACCOUNT: StreamAccountLimits()}
    return {account.name: _limits_of(account.jetstream) for account in accounts if account.jetstream is not None}


def server_limits(options: JetStreamOptions, folder: StoreFolder) -> ServerLimits:
    """Return what all accounts may use together. What the options leave open was found out at the start."""
    memory, storage = options.max_memory_bytes, options.max_storage_bytes
    return ServerLimits(
        max_memory=folder.memory_bytes_max if memory is None else memory,
        max_storage=folder.storage_bytes_max if storage is None else storage,
        duplicate_window_max_ns=int((options.duplicate_window_s or 0) * NANOSECONDS_PER_SECOND),
        max_ack_pending=options.max_acknowledgements_pending or 0,
        max_request_batch=options.max_request_batch or 0,
    )


@lru_cache
def _limits_of(limits: JetStreamAccountLimits) -> StreamAccountLimits:
    return StreamAccountLimits(
        max_memory=_or_unlimited(limits.max_memory_bytes),
        max_storage=_or_unlimited(limits.max_storage_bytes),
        max_streams=_or_unlimited(limits.max_streams),
        max_consumers=_or_unlimited(limits.max_consumers),
        max_ack_pending=_or_unlimited(limits.max_acknowledgements_pending),
        memory_max_stream_bytes=_or_unlimited(limits.memory_stream_bytes_max),
        storage_max_stream_bytes=_or_unlimited(limits.storage_stream_bytes_max),
        max_bytes_required=limits.stream_bytes_required,
        tiers=tuple((name, _limits_of(tier)) for name, tier in limits.tiers),
    )


def _or_unlimited(limit: int | None) -> int:
    return -1 if limit is None else limit
