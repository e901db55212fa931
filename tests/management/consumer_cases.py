"""Requests about consumers that are sent to nats-server and to ours, to be answered alike.

A case is a short history: streams that are made first, and then requests below `$JS.API` or, with `@`, messages. Here
are bodies and subjects of every form, every field with its interesting values, every pair of features on every kind of
stream, and every pair of configurations as a consumer and its update.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, NamedTuple

from tests.management.api_cases import ApiStep, level

Config = dict[str, Any]


class Case(NamedTuple):
    streams: tuple[str, ...]
    steps: list[ApiStep]


STREAMS: dict[str, Config] = {
    "S": {"subjects": ["s.>"]},
    "WORK": {"subjects": ["w.>"], "retention": "workqueue"},
    "INTEREST": {"subjects": ["i.>"], "retention": "interest"},
    "LIMITED": {
        "subjects": ["l.>"],
        "consumer_limits": {"max_ack_pending": 50, "inactive_threshold": 60_000_000_000},
    },
    "FEW": {"subjects": ["f.>"], "max_consumers": 1},
    "DISK": {"subjects": ["d.>"], "storage": "file"},
}

SECOND = 1_000_000_000
PULL: Config = {"ack_policy": "explicit"}
PUSH: Config = {"deliver_subject": "x.deliver"}
STEPS_OF_CASE = 200
"""Few enough to find the one that differs, many enough that making the stream costs nothing."""

NUMBERS = [
    *("0", "-0", "1", "-1", "-2", "5", "99999", "100000000", "1000000000", "2147483648"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"),
    *("18446744073709551615", "18446744073709551616", "1e400", "1.5", '"1"', "null", "true", "[]", "{}"),
]
NUMBER_FIELDS = [
    *("opt_start_seq", "ack_wait", "max_deliver", "rate_limit_bps", "max_waiting", "max_ack_pending", "max_batch"),
    *("max_expires", "max_bytes", "idle_heartbeat", "inactive_threshold", "num_replicas", "priority_timeout"),
]
FLAG_FIELDS = ["flow_control", "headers_only", "mem_storage", "direct", "sourcing"]
OTHER_FIELDS = [
    *("durable_name", "name", "description", "deliver_policy", "opt_start_time", "ack_policy", "backoff"),
    *("filter_subject", "filter_subjects", "replay_policy", "sample_freq", "deliver_subject", "deliver_group"),
    *("metadata", "pause_until", "priority_groups", "priority_policy"),
]
OTHER_VALUES = [
    *("null", "5", "true", '""', '"x"', '"X"', '"a b"', '"a.b"', '"*"', '">"', '"a..b"', '"a/b"', '"none"', '"all"'),
    *('"last"', '"new"', '"last_per_subject"', '"by_start_sequence"', '"by_start_time"', '"undefined"', '"explicit"'),
    *('"flow_control"', '"original"', '"Instant"', '"overflow"', '"pinned_client"', '"prioritized"'),
    *('"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00.5+05:30"', '"2030-01-01T00:00:00Z"', '"2030-01-01"'),
    *('"0001-01-01T00:00:00Z"', '"5"', '"5%"', '"-5"', '"101%"', '"5%%"', '"9e9"'),
    *('"99999999999999999999"', '"+5"', '"%"', "[]", "[null]", "[5]", "[-5]", "[1,2,3]", '[""]', '["a"]', '["a","a"]'),
    *(
        '["a.*","a.b"]',
        '["a.b","a.*"]',
        '["a.*.c","a.b.*"]',
        '["a",">"]',
        '["a b"]',
        '["a.b","a..b"]',
        '["a.>.b","a.x"]',
    ),
    *('["*a","ab"]', '["ab","*a"]', '["g","a b"]', '["0123456789abcdef"]', '["0123456789abcdefg"]', "{}"),
    *('{"a":"b"}', '{"a":5}', '{"_nats.ver":"x","_nats.level":"9","_nats.req.level":"9","_nats.x":"y"}'),
]

# Fragments of configurations that meet in some rule; every two of them are sent together.
FEATURES: list[Config] = [
    {"durable_name": "C"},
    {"durable_name": "D"},
    {"name": "a.b"},
    {"description": "x" * 4097},
    {"deliver_policy": "last"},
    {"deliver_policy": "new", "opt_start_seq": 5},
    {"deliver_policy": "last_per_subject"},
    {"deliver_policy": "by_start_sequence", "opt_start_seq": 3},
    {"deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T00:00:00Z"},
    {"opt_start_seq": 5},
    {"opt_start_time": "2020-01-01T00:00:00Z"},
    {"ack_policy": "explicit"},
    {"ack_policy": "all"},
    {"ack_policy": "none"},
    {"ack_policy": "flow_control"},
    {"ack_wait": -1},
    {"ack_wait": 7 * SECOND},
    {"max_deliver": 2},
    {"max_deliver": -2},
    {"backoff": [SECOND, 2 * SECOND, 3 * SECOND]},
    {"backoff": [-1]},
    {"filter_subject": "s.a"},
    {"filter_subject": "a b"},
    {"filter_subjects": ["s.a", "w.a"]},
    {"filter_subjects": ["s.a", "s.*"]},
    {"filter_subjects": [""]},
    {"replay_policy": "original"},
    {"rate_limit_bps": 1000},
    {"sample_freq": "5%"},
    {"sample_freq": "x"},
    {"max_waiting": 5},
    {"max_waiting": -5},
    {"max_ack_pending": 51},
    {"max_ack_pending": -7},
    {"flow_control": True},
    {"headers_only": True},
    {"max_batch": 10},
    {"max_batch": -10},
    {"max_expires": 1},
    {"max_expires": SECOND},
    {"max_bytes": -1},
    {"deliver_subject": "x.deliver"},
    {"deliver_subject": "x.*"},
    {"deliver_subject": "x..y"},
    {"deliver_subject": "s.deliver"},
    {"deliver_group": "g"},
    {"idle_heartbeat": 1},
    {"idle_heartbeat": SECOND},
    {"idle_heartbeat": 2 * SECOND},
    {"inactive_threshold": 61 * SECOND},
    {"inactive_threshold": -1},
    {"num_replicas": 1},
    {"num_replicas": 3},
    {"num_replicas": -1},
    {"mem_storage": True},
    {"direct": True},
    {"sourcing": True},
    {"metadata": {"k": "v" * 131_072}},
    {"pause_until": "2030-01-01T00:00:00+02:00"},
    {"priority_policy": "overflow"},
    {"priority_policy": "pinned_client", "priority_groups": ["g"]},
    {"priority_policy": "prioritized", "priority_groups": ["a b"]},
    {"priority_groups": ["g"]},
    {"priority_timeout": SECOND},
]

# Configurations of which every one is updated to every other one.
VERSIONS: list[Config] = [
    {},
    {"durable_name": "C"},
    PULL,
    {**PULL, "durable_name": "C"},
    {**PULL, "description": "other", "metadata": {"a": "b"}, "max_batch": 5, "headers_only": True},
    {**PULL, "inactive_threshold": 9 * SECOND},
    {**PULL, "deliver_policy": "new", "mem_storage": True},
    {**PULL, "deliver_policy": "by_start_sequence", "opt_start_seq": 5},
    {**PULL, "deliver_policy": "by_start_sequence", "opt_start_seq": 6},
    {**PULL, "deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T00:00:00Z"},
    {**PULL, "deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T05:30:00+05:30"},
    {**PULL, "deliver_policy": "by_start_time", "opt_start_time": "2021-01-01T00:00:00Z"},
    {**PULL, "mem_storage": True},
    {"ack_policy": "all", "max_waiting": 5},
    {**PULL, "replay_policy": "original", "max_waiting": 5},
    {**PULL, "max_waiting": 5},
    {**PULL, "max_deliver": 5, "backoff": [1, 2], "max_ack_pending": 7},
    {**PULL, "filter_subject": "s.a", "sample_freq": "5"},
    {**PULL, "filter_subjects": ["s.b", "s.c"]},
    {**PULL, "filter_subjects": []},
    {**PULL, "pause_until": "2030-01-01T00:00:00+02:00"},
    {**PULL, "priority_policy": "pinned_client", "priority_groups": ["g"]},
    {**PULL, "priority_policy": "overflow", "priority_groups": ["h", "g"]},
    PUSH,
    {**PUSH, "ack_policy": "explicit"},
    {**PUSH, "deliver_subject": "x.other", "deliver_group": "g", "rate_limit_bps": 7},
    {**PUSH, "idle_heartbeat": SECOND},
    {**PUSH, "idle_heartbeat": SECOND, "flow_control": True},
    {**PUSH, "ack_policy": "flow_control"},
    {**PUSH, "direct": True},
    {**PUSH, "sourcing": True},
    {**PUSH, "sourcing": True, "durable_name": "C", "ack_policy": "flow_control"},
]

RAW_BODIES = [
    *(b"", b"{}", b" { } ", b"x", b"[]", b"null", b'{"x":1}', b'"a"', b"7", b"\xff"),
    *(
        b'{"stream_name":5}',
        b'{"stream_name":"S"',
        b'{"stream_name":"S","config":null}',
        b'{"stream_name":"S","config":5}',
    ),
    *(b'{"stream_name":"S","config":[]}', b'{"stream_name":"S","config":{"x":1}}', b'{"stream_name":null}'),
    *(b'{"stream_name":"S","action":%s}' % value for value in (b"5", b"null", b'"x"', b'"Create"', b'"\\u0063reate"')),
    *(b'{"stream_name":"S","pedantic":%s}' % value for value in (b"5", b"null", b'"x"', b"true")),
    b'{"stream_name":"S","action":"\xff"}',
    b'{"stream_name":"S","config":{"priority_policy":"\xff"}}',
    b'{"stream_name":"S","config":{"ack_policy":"\xff"}}',
    b'{"STREAM_NAME":"S","Config":{"ACK_POLICY":"explicit"}}',
    b'{"stream_name":"T","stream_name":"S","config":{"max_batch":5},"config":{"max_batch":6,"max_bytes":7}}',
    b'{"stream_name":"S","config":{"backoff":[1,2,3],"backoff":[4]}}',
    b'{"stream_name":"S","config":{"metadata":{"a":"b"},"metadata":{"c":"d"}}}',
    b'{"stream_name":"S","config":{"metadata":{"a":"b"},"metadata":null}}',
    b'{"stream_name":"S"}{"config":{"max_batch":5}}',
    b'{"stream_name":"S"} x',
    b'{"stream_name":"S","config":{"description":"<>&\xe2\x80\xa8\x7f"}}',
    b'{"stream_name":"S","config":{"name":"' + b"N" * 900_000 + b'"}}',
    b'{"stream_name":"S","config":{"durable_name":"' + b"N" * 900_000 + b'"}}',
    b'{"stream_name":"S","config":{"description":"' + b"N" * 900_000 + b'"}}',
    b'{"stream_name":"S","config":{"description":"' + b"N" * 4_096 + b'"}}',
    b'{"stream_name":"S","config":{"max_batch":' + b"9" * 900_000 + b"}}",
    b'{"stream_name":"S","config":{"backoff":[' + b"1," * 100_000 + b"1]}}",
    *(
        b'{"stream_name":"S","config":{"metadata":{"a":"' + b"m" * size + b'"}}}'
        for size in (131_055, 131_056, 131_072)
    ),
    b'{"stream_name":"S","config":' + b'{"a":' * 10_001 + b"1" + b"}" * 10_001 + b"}",
    json.dumps({"stream_name": "S", "config": {"filter_subjects": [f"s.{each}.>" for each in range(500)]}}).encode(),
    json.dumps(
        {"stream_name": "S", "config": {"filter_subjects": [f"s.{each % 499}" for each in range(500)]}}
    ).encode(),
]

NAMES = ["C", "a/b", "a\\b", "*", ">", "a\x01b", "é", "N" * 255, "N" * 256, "JS_MIRROR_x"]


def create(
    config: Config,
    stream: str = "S",
    name: str | None = "C",
    *,
    action: str | None = None,
    pedantic: bool = False,
    header: bytes = b"",
) -> ApiStep:
    """Return the request for a consumer; without a name by the oldest form of the subject."""
    body: Config = {"stream_name": stream, "config": config}
    if action is not None:
        body["action"] = action
    if pedantic:
        body["pedantic"] = True
    subject = f"CONSUMER.CREATE.{stream}" if name is None else f"CONSUMER.CREATE.{stream}.{name}"
    return ApiStep(subject, json.dumps(body, ensure_ascii=False).encode(), header)


def raw(members: str, stream: str = "S", extra: str = "") -> ApiStep:
    """Return the request for a consumer whose configuration has these members."""
    return ApiStep(
        f"CONSUMER.CREATE.{stream}.C", f'{{"stream_name":"{stream}","config":{{{members}}}{extra}}}'.encode()
    )


def messages(stream: str, *tails: str) -> list[ApiStep]:
    prefix = STREAMS[stream]["subjects"][0][0]
    return [ApiStep(f"@{prefix}.{tail}", stream.encode()) for tail in tails]


def tried(stream: str, requests: Iterable[ApiStep]) -> Iterator[Case]:
    """Yield cases that make a consumer C of this stream in each of these ways, one after the other."""
    steps: list[ApiStep] = []
    for request in requests:
        steps += [request, ApiStep(f"CONSUMER.DELETE.{stream}.C")]
        if len(steps) >= STEPS_OF_CASE:
            yield Case((stream,), steps)
            steps = []
    yield Case((stream,), steps)


def fields_and_values() -> Iterator[Case]:
    """Yield each field with each value that might be special, of consumers of both kinds, and numbers pedantically."""
    numbers = [(field, value) for field in NUMBER_FIELDS for value in NUMBERS]
    short_lives = [("inactive_threshold", value) for value in ("1", "5", "99999")]
    # Whether such a consumer is still there to be deleted is chance.
    numbers = [each for each in numbers if each not in short_lives]
    for field, value in short_lives:
        yield Case(("S",), [raw(f'"{field}":{value}')])
        yield Case(("LIMITED",), [raw(f'"{field}":{value}', "LIMITED", ',"pedantic":true')])
    others = [(field, value) for field in OTHER_FIELDS + FLAG_FIELDS for value in OTHER_VALUES]
    members = [f'"{field}":{value}' for field, value in [*numbers, *others]]
    yield from tried("S", map(raw, members))
    yield from tried("S", (raw(f'"ack_policy":"explicit","deliver_subject":"x.deliver",{each}') for each in members))
    pedantic = ',"pedantic":true'
    members = [f'"{field}":{value}' for field, value in numbers]
    yield from tried("S", (raw(f'"ack_policy":"explicit",{each}', extra=pedantic) for each in members))
    yield from tried("LIMITED", (raw(each, "LIMITED", pedantic) for each in members))
    yield from tried("LIMITED", (raw(f'"ack_policy":"all",{each}', "LIMITED") for each in members))
    # Where nothing is on disk nats-server makes the consumer and then cannot tell of it.
    start = '"deliver_policy":"by_start_time","opt_start_time":"2020-01-01T00:00:00Z"'
    moment = '"2020-01-01T00:00:00+24:00"'
    yield from tried("DISK", (raw(f'{start},"{each}":{moment}', "DISK") for each in ("pause_until", "opt_start_time")))


def pairs_of_features() -> Iterator[Case]:
    for stream in ("S", "WORK", "LIMITED"):
        yield from tried(stream, (create({**first, **second}, stream) for first, second in combinations(FEATURES, 2)))


def pairs_of_features_otherwise() -> Iterator[Case]:
    """Yield the pairs once more: pedantic, of push consumers, and by a name in the configuration."""
    pairs = [{**first, **second} for first, second in combinations(FEATURES, 2)]
    yield from tried("S", (create(pair, pedantic=True) for pair in pairs))
    yield from tried("INTEREST", (create({**PUSH, **pair}, "INTEREST") for pair in pairs))
    yield from tried("DISK", (create({"name": "C", **pair}, "DISK", None) for pair in pairs[::3]))


def updates() -> Iterator[Case]:
    for before in VERSIONS:
        steps: list[ApiStep] = []
        for after in VERSIONS:
            for action in (None, "create", "update"):
                steps += [create(before), create(after, action=action), ApiStep("CONSUMER.INFO.S.C"), DELETE]
        yield Case(("S",), steps)
    for before, after in combinations(VERSIONS, 2):
        yield Case(("WORK",), [create(before, "WORK"), create(after, "WORK"), create(after, "WORK", "D")])


def single_updates() -> Iterator[Case]:
    """Yield updates of one field at a time, of a consumer of either kind."""
    bases = ('"durable_name":"C","ack_policy":"explicit"', '"durable_name":"C","deliver_subject":"x.deliver"')
    numbers = [f'"{field}":{value}' for field in NUMBER_FIELDS for value in ("-1", "0", "7000000000", "null")]
    others = [f'"{field}":{value}' for field in OTHER_FIELDS + FLAG_FIELDS for value in OTHER_VALUES]
    for base in bases:
        steps: list[ApiStep] = []
        for member in (*numbers, *others):
            steps += [raw(base), raw(f"{base},{member}"), ApiStep("CONSUMER.INFO.S.C"), raw(base), DELETE]
            if len(steps) >= STEPS_OF_CASE:
                yield Case(("S",), steps)
                steps = []
        yield Case(("S",), steps)


DELETE = ApiStep("CONSUMER.DELETE.S.C")


def bodies() -> Iterator[Case]:
    for body in RAW_BODIES:
        for subject in ("CREATE.S", "CREATE.S.C", "CREATE.S.C.s.a", "DURABLE.CREATE.S.C"):
            yield Case(("S",), [ApiStep(f"CONSUMER.{subject}", body), ApiStep("INFO")])


def subjects_and_names() -> Iterator[Case]:
    """Yield every form of the subject with names that agree, differ, are absent or cannot be."""
    for name in NAMES:
        for in_config in ("", name, "OTHER"):
            for durable in ("", name, "OTHER"):
                config = {"ack_policy": "explicit", "name": in_config, "durable_name": durable, "filter_subject": "s.a"}
                body = json.dumps({"stream_name": "S", "config": config}, ensure_ascii=False).encode()
                forms = (f"CREATE.S.{name}", "CREATE.S", f"CREATE.S.{name}.s.a", f"CREATE.S.{name}.s.b")
                for form in (*forms, f"DURABLE.CREATE.S.{name}"):
                    yield Case(("S",), [ApiStep(f"CONSUMER.{form}", body)])
    for stream in ("DISK", "S", "WORK"):
        for name in ("N" * 255, "N" * 256, "é" * 128):
            for durable in ("", name):
                for extra in ({}, {"mem_storage": True}):
                    config = {**PULL, "durable_name": durable, **extra}
                    yield Case((stream,), [create(config, stream, name), create({**PULL, "name": name}, stream, None)])
    for filters in ({"filter_subjects": ["s.a"]}, {"filter_subject": "s.a", "filter_subjects": ["s.b"]}, {}):
        yield Case(("S",), [ApiStep("CONSUMER.CREATE.S.C.s.a", create({**PULL, **filters}).body)])
    for header in (level("5"), level("6"), level("x")):
        yield Case(("S",), [create(PULL, header=header), ApiStep("CONSUMER.CREATE.S.C", b"x", header)])
    yield Case((), [create(PULL), create({**PULL, "num_replicas": 2}), create(PULL, "X", "C")])
    yield Case(("S",), [ApiStep("CONSUMER.CREATE.S.C", create(PULL, "T").body)])
