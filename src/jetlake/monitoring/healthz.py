"""`/healthz`: may this server be sent clients, and is everything it stores there?

| answer               | when                                                                   |
|----------------------|------------------------------------------------------------------------|
| 200, `ok`            | it takes clients, and what was asked about is there                    |
| 400, `error`         | the question makes no sense: a stream without its account              |
| 404, `unavailable`   | the account, stream or consumer asked about is not there               |
| 500, `error`         | it takes no clients: it is leaving, or it has failed                   |
| 503, `unavailable`   | a stream, of those asked about, is on disk and could not be opened     |

With `details` the errors come as a list, each with its kind.
"""

from typing import Any

import msgspec

from jetlake.monitoring import jsz
from jetlake.monitoring.parameters import QueryParameters
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.go_text import quoted

OK, BAD_REQUEST, NOT_FOUND, FAILED, UNAVAILABLE = 200, 400, 404, 500, 503

NOT_READY = "failed to be ready for connections after 1ms: server"


class HealthzOptions(msgspec.Struct, frozen=True, kw_only=True, rename={
    "js_enabled": "js-enabled",
    "js_enabled_only": "js-enabled-only",
    "js_server_only": "js-server-only",
    "js_meta_only": "js-meta-only",
}):  # fmt: skip
    """What is wanted; the fields are those of a `$SYS.REQ.SERVER.*.HEALTHZ` request."""

    js_enabled: bool = False
    js_enabled_only: bool = False
    js_server_only: bool = False
    js_meta_only: bool = False
    account: str = ""
    stream: str = ""
    consumer: str = ""
    details: bool = False


class HealthError(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that is wrong."""

    type: str
    account: str = ""
    stream: str = ""
    consumer: str = ""
    error: str


class Healthz(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The page. Over HTTP the status code stands in the response itself and 0 leaves it out here."""

    status: str
    status_code: int = 0
    error: str = ""
    errors: list[HealthError] = []


def options_of(parameters: QueryParameters) -> HealthzOptions:
    """Return the options that the parameters of the page ask for. Raises `PageError`."""
    return HealthzOptions(
        js_enabled=parameters.boolean("js-enabled"),
        js_enabled_only=parameters.boolean("js-enabled-only"),
        js_server_only=parameters.boolean("js-server-only"),
        js_meta_only=parameters.boolean("js-meta-only"),
        details=parameters.boolean("details"),
        account=parameters.text("account"),
        stream=parameters.text("stream"),
        consumer=parameters.text("consumer"),
    )


def build(source: MonitoredServer, options: HealthzOptions) -> Healthz:
    """Return the page, its status code included."""
    code, errors = _examine(source, options)
    if not errors:
        return Healthz(status="ok", status_code=code)
    if options.details:
        return Healthz(status="error", status_code=code, errors=errors)
    status = "unavailable" if code in (NOT_FOUND, UNAVAILABLE) else "error"
    return Healthz(status=status, status_code=code, error=errors[0].error)


def _examine(source: MonitoredServer, options: HealthzOptions) -> tuple[int, list[HealthError]]:
    if options.stream and not options.account:
        return BAD_REQUEST, [_bad_request("account", "stream")]
    if options.consumer and not options.stream:
        return BAD_REQUEST, [_bad_request("stream", "consumer")]
    if not source.facts.accepts_clients:
        return FAILED, [HealthError(type="CONNECTION", error=NOT_READY)]
    if options.js_server_only or source.facts.jetstream is None or options.js_enabled_only or options.js_enabled:
        return OK, []
    # An account counts as there once it stores something.
    usages = [usage for usage in jsz.account_usages(source) if usage.streams or usage.offline]
    asked = [usage for usage in usages if options.account in ("", usage.name)]
    if broken := [error for usage in asked for error in _not_opened(usage, options.stream)]:
        return UNAVAILABLE, broken
    missing = _find_missing(asked, options)
    return (NOT_FOUND, [missing]) if missing else (OK, [])


def _not_opened(usage: jsz.AccountUsage, stream: str) -> list[HealthError]:
    """Return the streams of an account that could not be opened; this one only, if there is a name."""
    return [
        HealthError(
            type="STREAM",
            account=usage.name,
            stream=name,
            error=f"JetStream stream '{usage.name} > {name}' could not be recovered",
        )
        for name in usage.offline
        if stream in ("", name)
    ]


def _find_missing(asked: list[jsz.AccountUsage], options: HealthzOptions) -> HealthError | None:
    """Return what of the account, stream and consumer asked about is not there."""
    if not options.account:
        return None
    where = {"account": options.account}
    if not asked:
        return HealthError(type="ACCOUNT", **where, error=f"JetStream account {quoted(options.account)} not found")
    if not options.stream:
        return None
    where["stream"] = options.stream
    on_account = f"on account {quoted(options.account)}"
    stream = next((stream for usage in asked for stream in usage.streams if stream["name"] == options.stream), None)
    if stream is None:
        text = f"JetStream stream {quoted(options.stream)} not found {on_account}"
        return HealthError(type="STREAM", **where, error=text)
    if not options.consumer or options.consumer in _consumer_names(stream):
        return None
    text = f"JetStream consumer {quoted(options.consumer)} not found for stream {quoted(options.stream)} {on_account}"
    return HealthError(type="CONSUMER", **where, consumer=options.consumer, error=text)


def _consumer_names(stream: dict[str, Any]) -> list[str]:
    describe = stream.get("consumer_detail")
    return [] if describe is None else [consumer["name"] for consumer in describe()]


def _bad_request(missing: str, checked: str) -> HealthError:
    return HealthError(type="BAD_REQUEST", error=f"{quoted(missing)} must not be empty when checking {checked} health")
