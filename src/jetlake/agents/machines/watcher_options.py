"""The properties of each type of watcher, as frozen values.

Names and defaults are Choria's. Differences: the timeout of commands is 10 s, as its documentation says and not 1 s as
its code has it; `mode: watch` of a kv watcher really watches, and is the default; `environment_file` is ours.
"""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from jetlake.agents.machines.cron import CronSchedule, parse_cron
from jetlake.agents.machines.fields import Fields
from jetlake.agents.machines.templates import TemplateError, parse_template
from jetlake.errors import ConfigurationError

__all__ = [
    "ExecOptions",
    "FileOptions",
    "KvOptions",
    "MetricOptions",
    "NagiosOptions",
    "ScheduleOptions",
    "TimerOptions",
    "WatcherOptions",
    "read_watcher_options",
]

TIMEOUT_S = 10.0
"""How long a command may run unless its watcher says otherwise."""

GOVERNOR_TIMEOUT_S = 300.0
INTERVAL_S_MIN = 0.5
"""Between two runs of a command or two looks at a file."""

FILE_INTERVAL_S = 5.0
METRIC_INTERVAL_S = 60.0
METRIC_INTERVAL_S_MIN = 1.0
TIMER_S_MIN = 1.0
DURATION_S = 60.0
POLL_INTERVAL_S_MIN = 0.5
FALLBACK_INTERVAL_S = 30.0
"""Between two polls while a watch is not possible, unless the watcher has an interval."""

NAGIOS_BUILTINS = ("heartbeat", "choria_status")
MODES = ("watch", "poll")


class ExecOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Runs a command. Texts marked with T are templates."""

    command: str  # T
    environment: tuple[str, ...] = ()  # T
    environment_file: str = ""
    timeout_s: float = TIMEOUT_S
    governor: str = ""  # T
    governor_timeout_s: float = GOVERNOR_TIMEOUT_S
    parse_as_data: bool = False
    suppress_success_announce: bool = False
    gather_initial_state: bool = False
    disown: bool = False


class FileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Watches a file, or keeps it as `contents` says."""

    path: str
    gather_initial_state: bool = False
    contents: str = ""  # T
    owner: str = ""  # T
    group: str = ""  # T
    mode: str = ""  # T


class KvOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Waits for a key of a bucket."""

    bucket: str
    key: str  # T
    mode: str = "watch"
    bucket_prefix: bool = True
    on_matching_update: bool = False
    on_successful_get: bool = False
    store_key: str = ""  # T
    query: str = ""


class ScheduleOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Is on for `duration_s` from each moment that a schedule names."""

    schedules: tuple[CronSchedule, ...]
    duration_s: float = DURATION_S
    start_splay_s: float = 0.0
    skip_trigger_on_reenter: bool = False


class TimerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Fires some time after a state was entered."""

    timer_s: float
    splay: bool = False


class MetricOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Runs a command that prints metrics."""

    command: str  # T
    interval_s: float
    labels: dict[str, str] = {}
    timeout_s: float = TIMEOUT_S
    store: bool = False
    skip_prometheus: bool = False
    graphite_host: str = ""  # T
    graphite_port: str = ""  # T
    graphite_prefix: str = ""  # T


class NagiosOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Runs a check; its exit code is the status."""

    plugin: str = ""  # T
    builtin: str = ""
    timeout_s: float = TIMEOUT_S
    annotations: dict[str, str] = {}
    last_message_s: float = 0.0


WatcherOptions: TypeAlias = (
    ExecOptions | FileOptions | KvOptions | ScheduleOptions | TimerOptions | MetricOptions | NagiosOptions
)


def read_watcher_options(kind: str, fields: Fields) -> WatcherOptions | None:
    """Return the properties of a watcher; None for an unknown type, which the caller reports."""
    reader = READERS.get(kind)
    if reader is None:
        return None
    options = reader(fields)
    fields.finish()
    return options


def _read_exec(fields: Fields) -> ExecOptions:
    environment = fields.names("environment")
    for each in environment:
        if not each.partition("=")[0] or "=" not in each:
            fields.error("environment", f"environment has {each[:40]!r}: write NAME=value")
    options = ExecOptions(
        command=_template(fields, "command", required=True),
        environment=environment,
        environment_file=fields.text("environment_file"),
        timeout_s=fields.seconds("timeout", TIMEOUT_S) or TIMEOUT_S,
        governor=_template(fields, "governor"),
        governor_timeout_s=fields.seconds("governor_timeout", GOVERNOR_TIMEOUT_S) or GOVERNOR_TIMEOUT_S,
        parse_as_data=fields.switch("parse_as_data"),
        suppress_success_announce=fields.switch("suppress_success_announce"),
        gather_initial_state=fields.switch("gather_initial_state"),
        disown=fields.switch("disown"),
    )
    for each in environment:
        _check_template(fields, "environment", each)
    if options.disown and options.parse_as_data:
        fields.error("disown", "disown and parse_as_data exclude each other: nobody reads what a disowned command says")
    return options


def _read_file(fields: Fields) -> FileOptions:
    # The documentation of the original calls it `content`, its code `contents`.
    contents = _template(fields, "contents") or _template(fields, "content")
    options = FileOptions(
        path=fields.text("path", required=True),
        gather_initial_state=fields.switch("gather_initial_state"),
        contents=contents,
        owner=_template(fields, "owner"),
        group=_template(fields, "group"),
        mode=_template(fields, "mode"),
    )
    if contents:
        for key in ("owner", "group", "mode"):
            if not getattr(options, key):
                fields.error(key, f"{key} is required when the watcher manages contents")
        if options.mode and "{{" not in options.mode and not _is_mode(options.mode):
            fields.error("mode", f"mode is {options.mode[:40]!r}: write four octal digits in quotation marks, '0644'")
    return options


def _is_mode(text: str) -> bool:
    return 3 <= len(text) <= 4 and all(digit in "01234567" for digit in text)


def _read_kv(fields: Fields) -> KvOptions:
    for key in ("republish_trigger", "hiera_config"):
        if key in fields:
            fields.problems.warn(fields.location_of(key), f"{fields.owner}: {key} is not supported and ignored")
    options = KvOptions(
        bucket=fields.name("bucket", required=True),
        key=_template(fields, "key", required=True),
        mode=fields.choice("mode", MODES, "watch"),
        bucket_prefix=fields.switch("bucket_prefix", default=True),
        on_matching_update=fields.switch("on_matching_update"),
        on_successful_get=fields.switch("on_successful_get"),
        store_key=_template(fields, "store_key"),
        query=fields.text("query"),
    )
    if options.bucket and not all(each.isascii() and (each.isalnum() or each in "_-") for each in options.bucket):
        fields.error("bucket", f"bucket is {options.bucket[:40]!r}: use letters, digits, - and _")
    return options


def _read_schedule(fields: Fields) -> ScheduleOptions:
    schedules = []
    for text in fields.names("schedules", required=True):
        try:
            schedules.append(parse_cron(text))
        except ConfigurationError as error:
            fields.error("schedules", str(error))
    duration_s = fields.seconds("duration", DURATION_S)
    options = ScheduleOptions(
        schedules=tuple(schedules),
        duration_s=duration_s if duration_s >= 1 else DURATION_S,
        start_splay_s=fields.seconds("start_splay"),
        skip_trigger_on_reenter=fields.switch("skip_trigger_on_reenter"),
    )
    if options.start_splay_s > options.duration_s / 2:
        fields.error("start_splay", "start_splay is longer than half the duration: choose a shorter one")
    return options


def _read_timer(fields: Fields) -> TimerOptions:
    timer_s = fields.seconds("timer", TIMER_S_MIN, required=True)
    return TimerOptions(timer_s=max(timer_s, TIMER_S_MIN), splay=fields.switch("splay"))


def _read_metric(fields: Fields) -> MetricOptions:
    if fields.switch("http"):
        fields.problems.warn(fields.location_of("http"), f"{fields.owner}: http is not supported and ignored")
    return MetricOptions(
        command=_template(fields, "command", required=True),
        interval_s=max(fields.seconds("interval", METRIC_INTERVAL_S), METRIC_INTERVAL_S_MIN),
        labels=fields.texts_by_name("labels"),
        timeout_s=fields.seconds("timeout", TIMEOUT_S) or TIMEOUT_S,
        store=fields.switch("store"),
        skip_prometheus=fields.switch("skip_prometheus"),
        graphite_host=_template(fields, "graphite_host"),
        graphite_port=_template(fields, "graphite_port"),
        graphite_prefix=_template(fields, "graphite_prefix"),
    )


def _read_nagios(fields: Fields) -> NagiosOptions:
    options = NagiosOptions(
        plugin=_template(fields, "plugin"),
        builtin=fields.text("builtin"),
        timeout_s=fields.seconds("timeout", TIMEOUT_S) or TIMEOUT_S,
        annotations=fields.texts_by_name("annotations"),
        last_message_s=fields.seconds("last_message"),
    )
    for key in ("gossfile", "pubcert_expire", "token_expire"):
        fields.node(key)
    if options.plugin and options.builtin:
        fields.error("builtin", "cannot set plugin and builtin: choose one")
    elif not options.plugin and not options.builtin:
        fields.error("plugin", "plugin or builtin is required")
    elif options.builtin and options.builtin not in NAGIOS_BUILTINS:
        fields.error(
            "builtin",
            f"builtin {options.builtin[:40]!r} is not supported: use {' or '.join(NAGIOS_BUILTINS)}, or a plugin",
        )
    return options


READERS: dict[str, Callable[[Fields], WatcherOptions]] = {
    "exec": _read_exec,
    "file": _read_file,
    "kv": _read_kv,
    "metric": _read_metric,
    "nagios": _read_nagios,
    "schedule": _read_schedule,
    "timer": _read_timer,
}
"""How the properties of each type are read."""


def _template(fields: Fields, key: str, *, required: bool = False) -> str:
    text = fields.text(key, required=required)
    _check_template(fields, key, text)
    return text


def _check_template(fields: Fields, key: str, text: str) -> None:
    try:
        parse_template(text)
    except TemplateError as error:
        fields.error(key, f"{key}: {error}")
