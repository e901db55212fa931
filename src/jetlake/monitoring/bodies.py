"""Every body by its name, with the options it takes: what the system account asks for and what the pages show.

```python
body = bodies.answer("CONNZ", source, b'{"sort": "subs", "limit": 10}')     # JSON, ready for the envelope
```

Invariant: `BODIES` is the whole list; pages and requests are built by the same functions, so they cannot disagree.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from jetlake.monitoring import (
    accountz,
    accstatz,
    clusterz,
    connz,
    diagnostics,
    healthz,
    jsz,
    leafz,
    statsz,
    subsz,
    varz,
)
from jetlake.monitoring.parameters import UnreadableOptionsError
from jetlake.monitoring.readings import MonitoredServer


class BodyBuilder(msgspec.Struct, frozen=True):
    """How one body is made: options in, struct out."""

    options: type[msgspec.Struct]
    # The type of the options differs from body to body; `options` above says which it is.
    build: Callable[[MonitoredServer, Any], Any]


class AccountBody(BodyBuilder, frozen=True):
    """A body about one account. `narrow` returns the options confined to it, whatever the request said."""

    narrow: Callable[[Any, str], Any]


BODIES = {
    "ACCOUNTZ": BodyBuilder(accountz.AccountzOptions, accountz.build),
    "CONNZ": BodyBuilder(connz.ConnzOptions, connz.build),
    "EXPVARZ": BodyBuilder(diagnostics.VariablesOptions, diagnostics.build_variables),
    "GATEWAYZ": BodyBuilder(clusterz.StandaloneOptions, clusterz.build_gatewayz),
    "HEALTHZ": BodyBuilder(healthz.HealthzOptions, healthz.build),
    "IPQUEUESZ": BodyBuilder(clusterz.StandaloneOptions, clusterz.build_nothing),
    "JSZ": BodyBuilder(jsz.JszOptions, jsz.build),
    "LEAFZ": BodyBuilder(leafz.LeafzOptions, leafz.build),
    "RAFTZ": BodyBuilder(clusterz.StandaloneOptions, clusterz.build_nothing),
    "ROUTEZ": BodyBuilder(clusterz.StandaloneOptions, clusterz.build_routez),
    "STATSZ": BodyBuilder(statsz.StatszOptions, statsz.build),
    "SUBSZ": BodyBuilder(subsz.SubszOptions, subsz.build),
    "VARZ": BodyBuilder(varz.VarzOptions, varz.build),
}
"""What `$SYS.REQ.SERVER.*` can ask for."""

ACCOUNT_BODIES = {
    "CONNZ": AccountBody(connz.ConnzOptions, connz.build, lambda options, account: replace(options, acc=account)),
    "INFO": AccountBody(
        accountz.AccountzOptions, accountz.build_account, lambda options, account: replace(options, account=account)
    ),
    "JSZ": AccountBody(jsz.JszOptions, jsz.build_account, lambda options, account: replace(options, account=account)),
    "LEAFZ": AccountBody(leafz.LeafzOptions, leafz.build, lambda options, account: replace(options, account=account)),
    "STATZ": AccountBody(
        accstatz.AccstatzOptions,
        accstatz.build,
        lambda options, account: replace(options, accounts=[account], include_unused=True),
    ),
    "SUBSZ": AccountBody(
        subsz.SubszOptions,
        subsz.build,
        lambda options, account: replace(options, account=account, subscriptions=True),
    ),
}
"""What `$SYS.REQ.ACCOUNT.<account>.*` can ask for."""


def answer(name: str, source: MonitoredServer, request: bytes) -> bytes:
    """Return the JSON of a body for the options in a request; an empty request asks for the defaults.

    Raises `PageError` with the text for the caller (`UnreadableOptionsError` when the request is not valid JSON of
    these options), and `KeyError` for a name that is not in `BODIES`.
    """
    body = BODIES[name]
    return msgspec.json.encode(body.build(source, _read(body.options, request)))


def answer_account(name: str, account: str, source: MonitoredServer, request: bytes) -> bytes:
    """Return the JSON of a body about one account. Raises as `answer` does, `KeyError` for `ACCOUNT_BODIES`."""
    body = ACCOUNT_BODIES[name]
    options = body.narrow(_read(body.options, request), account)
    return msgspec.json.encode(body.build(source, options))


def _read(options: type[msgspec.Struct], request: bytes) -> msgspec.Struct:
    try:
        return msgspec.json.decode(request, type=options) if request.strip() else options()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnreadableOptionsError(f"the options of the request cannot be read: {error}") from error
