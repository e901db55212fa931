"""The consumers of a restored archive: checked and created in steps, each short enough for one turn of a lane.

```python
consumers = yield from read_consumers(archived, call, stream, settings)   # changes nothing
yield from make_consumers(catalog.consumers, account, stream, restore_id, consumers)  # durable when it has ended
```

An archive may have tens of thousands of them, and other requests of the account are answered between two steps.

Invariant: a consumer of an archive is created only if the user who restores it could have created it by a request. Both
raise `RequestError`; what `make_consumers` has created until then is left to its caller, which cancels the restore.
"""

from collections.abc import Generator, Sequence

import msgspec

from jetlake.management.catalog.consumers import ConsumerCatalog
from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.context import ConsumerContext
from jetlake.management.consumers.defaults import with_defaults
from jetlake.management.consumers.options import check_options
from jetlake.management.consumers.requests import check_stored
from jetlake.management.consumers.stream_consumers import StreamConsumers
from jetlake.management.consumers.validation import check_config
from jetlake.management.requests.calls import Call, Steps
from jetlake.management.requests.rights import check_consumer_targets
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.context import StreamAccountLimits
from jetlake.management.wire.error_codes import ErrorCode, RequestError

CONSUMERS_PER_STEP = 20
"""Consumers that are checked or made in one turn; each takes about a millisecond."""

CONSUMERS_PER_SYNC = 500
"""Consumers that become durable together: a sync for each step would take longer than the steps."""


class ArchivedConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer as the engine has found it in an archive: its configuration and its state are JSON."""

    name: str
    config: str
    state: str


_ARCHIVED = msgspec.json.Decoder(ArchivedConsumer)


class ReadyConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer of an archive that may be made."""

    name: str
    config: ConsumerConfig
    state: bytes


def read_consumers(
    archived: Sequence[msgspec.Raw], call: Call, stream: StreamConfig, settings: ManagementSettings
) -> Generator[None, None, list[ReadyConsumer]]:
    """Return the consumers if the user who requested the restore may create all of them."""
    context = ConsumerContext(
        stream=stream,
        consumers=StreamConsumers(),
        account=settings.accounts.get(call.account, StreamAccountLimits()),
        server=settings.server,
        has_interest=lambda _: True,
    )
    consumers = []
    for number, each in enumerate(archived, 1):
        consumers.append(_read(_ARCHIVED.decode(each), call, context))
        if number % CONSUMERS_PER_STEP == 0:
            yield
    return consumers


def make_consumers(
    catalog: ConsumerCatalog, account: str, stream: StreamConfig, restore_id: str, consumers: Sequence[ReadyConsumer]
) -> Steps:
    """Make the consumers, which go on where they were when they were archived. They do not deliver yet."""
    for number, each in enumerate(consumers, 1):
        catalog.restore(account, stream.name, restore_id, each.name, each.config, each.state)
        if number % CONSUMERS_PER_SYNC == 0:
            catalog.commit_restored(restore_id)
        if number % CONSUMERS_PER_STEP == 0:
            yield
    catalog.commit_restored(restore_id)


def _read(archived: ArchivedConsumer, call: Call, context: ConsumerContext) -> ReadyConsumer:
    try:
        config = with_defaults(ConsumerConfig.from_json(archived.config.encode()), context, is_pedantic=False)
        if {config.durable_name, config.name} - {"", archived.name}:
            raise RequestError(ErrorCode.CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT)
        check_config(config, context)
        check_options(config)
        check_stored(archived.name, config, context)
        check_consumer_targets(call, config)
    except RequestError as error:
        reason = f"consumer {archived.name}: {error.description}"
        raise RequestError(ErrorCode.STREAM_RESTORE, err=reason) from error
    return ReadyConsumer(name=archived.name, config=config, state=archived.state.encode())
