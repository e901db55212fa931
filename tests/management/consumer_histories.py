"""Histories of consumers that both servers are asked: positions, endpoints, work queues, limits, copies of streams."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from tests.management.api_cases import BODIES, ApiStep, level
from tests.management.consumer_cases import (
    DELETE,
    FEATURES,
    PULL,
    PUSH,
    SECOND,
    STREAMS,
    VERSIONS,
    Case,
    Config,
    create,
    messages,
)

IDENTITY = b"NATS/1.0\r\nNats-Stream-Identity: %s\r\n\r\n"
MIRROR: Config = {
    "name": "JS_MIRROR_x",
    "ack_policy": "none",
    "ack_wait": 79200 * SECOND,
    "max_deliver": 1,
    "flow_control": True,
    "deliver_subject": "x.mirror",
    "idle_heartbeat": SECOND,
    "inactive_threshold": 10 * SECOND,
    "direct": True,
    "sourcing": True,
    "metadata": {"_nats.mirror.acc": "$G"},
}
STARTS: list[Config] = [
    {},
    {"deliver_policy": "new"},
    {"deliver_policy": "last"},
    {"deliver_policy": "last", "filter_subject": "s.a"},
    {"deliver_policy": "last", "filter_subject": "s.none"},
    {"deliver_policy": "last_per_subject", "filter_subject": "s.>"},
    *({"deliver_policy": "by_start_sequence", "opt_start_seq": sequence} for sequence in (1, 2, 4, 9)),
    {"deliver_policy": "by_start_time", "opt_start_time": "2020-01-01T00:00:00Z"},
    {"deliver_policy": "by_start_time", "opt_start_time": "2100-01-01T00:00:00Z"},
    {"filter_subjects": ["s.a", "s.b"]},
    {"ack_policy": "none"},
]


def info(name: str = "C", stream: str = "S") -> ApiStep:
    return ApiStep(f"CONSUMER.INFO.{stream}.{name}")


def positions() -> Iterator[Case]:
    """Yield where consumers begin, and how they are reset."""
    resets = [
        ApiStep("CONSUMER.RESET.S.C", body) for body in (b"", b"{}", *(b'{"seq":%d}' % each for each in range(11)))
    ]
    for start in STARTS:
        yield Case(("S",), [create({**PULL, **start}), *resets, info()])
        stored = messages("S", "a", "b", "c", "a")
        yield Case(("S",), [*stored, create({**PULL, **start}), info(), *resets, *messages("S", "a", "d"), info()])
        purge = ApiStep("STREAM.PURGE.S", b'{"seq":3}')
        yield Case(("S",), [*stored, purge, create({**PULL, **start}), info(), *resets, info()])


def endpoints() -> Iterator[Case]:
    """Yield every endpoint with bodies of every kind, without the stream, without the consumer, and with both."""
    words = ("INFO", "DELETE", "PAUSE", "UNPIN")
    for streams in ((), ("S",)):
        steps = [ApiStep(f"CONSUMER.{word}.S.C", body) for word in words for body in BODIES]
        steps += [ApiStep(f"CONSUMER.{word}.S", body) for word in ("NAMES", "LIST") for body in BODIES]
        yield Case(streams, steps)
    for word in words:
        for body in BODIES:
            yield Case(("S",), [create(PULL), ApiStep(f"CONSUMER.{word}.S.C", body), info()])
    for header in (level("5"), level("6"), level("x")):
        for word in (*words, "RESET"):
            yield Case(("S",), [create(PULL), ApiStep(f"CONSUMER.{word}.S.C", b"", header)])
    offsets = [b"", *(b'{"offset":%d}' % offset for offset in (-7, 0, 1, 2, 3, 7)), b'{"offset":"1"}', b'{"x":1}']
    lists = [ApiStep(f"CONSUMER.{word}.S", body) for word in ("NAMES", "LIST") for body in offsets]
    direct = create({**PUSH, "direct": True}, name="HIDDEN")
    counts = [ApiStep("STREAM.INFO.S"), ApiStep("STREAM.LIST"), ApiStep("INFO"), info("HIDDEN")]
    yield Case(("S",), [*(create(PULL, name=name) for name in "bca"), *lists, direct, *lists, *counts])
    yield Case(("S",), [create({**PUSH, "sourcing": True}, name="COPY"), *lists, *counts])
    yield Case(("S",), [*(create(PULL, name=f"c{number}") for number in range(300)), *lists])
    bodies = (b"", b"{}", b'{"seq":2}', b'{"seq":2,"x":1}', b"x", b"[]", b'{"seq":-1}', b'{"seq":"1"}', b" ", b"null")
    bodies += (
        b'{"seq":1}{"seq":2}',
        b'{"seq":1} x',
        b"\xff",
        b'{"SEQ":3}',
        b'{"seq":null}',
        b'{"seq":18446744073709551615}',
    )
    yield Case(("S",), [create(PULL), *(ApiStep("CONSUMER.RESET.S.C", body) for body in bodies)])
    yield Case(("S",), [create(PULL), DELETE, DELETE, info(), create(PULL, action="update"), create(PULL)])
    yield Case(("S",), [ApiStep("CONSUMER.INFO.S.*"), ApiStep("CONSUMER.DELETE.S.>"), ApiStep("CONSUMER.INFO.*.C")])


def pauses() -> Iterator[Case]:
    moments = ("2030-01-01T00:00:00Z", "2030-01-01T00:00:00.5+05:30", "2020-01-01T00:00:00Z", "0001-01-01T00:00:00Z")
    moments += ("0001-01-01T01:00:00+01:00", "9999-12-31T23:59:59Z", "", "x", "2030-01-01")
    for moment in moments:
        pause = ApiStep("CONSUMER.PAUSE.S.C", json.dumps({"pause_until": moment}).encode())
        resume = ApiStep("CONSUMER.PAUSE.S.C")
        yield Case(("S",), [create(PULL), pause, info(), pause, create({**PULL, "description": "x"}), resume, info()])
        yield Case(("S",), [create({**PULL, "pause_until": moment}), info(), create({**PULL, "max_batch": 5}), info()])
        yield Case(
            ("S",), [create({**PULL, "pause_until": moment}), create({**PULL, "pause_until": moment}, action="create")]
        )
    for body in (
        b'{"pause_until":null}',
        b'{"pause_until":5}',
        b'{"x":1}',
        b'{"pause_until":"2030-01-01T00:00:00Z"} x',
    ):
        yield Case(("S",), [create(PULL), ApiStep("CONSUMER.PAUSE.S.C", body), info()])


def unpins() -> Iterator[Case]:
    groups = (b"", b"a b", b"g", b"h", b"a" * 17)
    steps = [ApiStep("CONSUMER.UNPIN.S.C", b'{"group":"%s"}' % group) for group in groups]
    steps += [ApiStep("CONSUMER.UNPIN.S.C", b'{"group":"g","x":1}'), ApiStep("CONSUMER.UNPIN.S.C", b'{"group":5}')]
    steps += [
        ApiStep("CONSUMER.UNPIN.S.C", body) for body in (b"", b" ", b'{"group":"g"}{}', b'{"group":"g"} x', b"\xff")
    ]
    for policy in ("pinned_client", "overflow", "prioritized"):
        pinned = create({**PULL, "priority_policy": policy, "priority_groups": ["g", "h"]})
        yield Case(("S",), [pinned, *steps, info(), ApiStep("CONSUMER.LIST.S")])
    yield Case(("S",), [create(PULL), *steps])


def work_queues() -> Iterator[Case]:
    filters: list[Config] = [
        {},
        *({"filter_subject": subject} for subject in ("w.a", "w.*", "w.b.>", ">", "w.a.b", "other")),
        *({"filter_subjects": subjects} for subjects in (["w.a", "w.c"], ["w.b", "w.d.*"], ["w.*.x", "w.y.*"], [])),
    ]
    for first in filters:
        for second in filters:
            steps = [create({**PULL, **each}, "WORK", name) for each, name in ((first, "C"), (second, "D"))]
            again = [create({**PULL, **each}, "WORK", name) for each, name in ((second, "C"), (first, "D"))]
            yield Case(("WORK",), [*steps, *again, ApiStep("CONSUMER.NAMES.WORK")])
    internal = create({**PUSH, "direct": True}, "WORK", "HIDDEN")
    sourcing = create({**PUSH, "sourcing": True}, "WORK", "COPY")
    yield Case(("WORK",), [create(PULL, "WORK"), internal, sourcing, ApiStep("CONSUMER.NAMES.WORK")])
    yield Case(("WORK",), [internal, sourcing, create(PULL, "WORK"), create(PULL, "WORK", "D")])
    yield Case(("WORK",), [create({**PULL, "deliver_policy": "new"}, "WORK"), create({"ack_policy": "all"}, "WORK")])


def limits() -> Iterator[Case]:
    few = [create(PULL, "FEW", name) for name in ("a", "a", "b")]
    internal = create({**PUSH, "direct": True}, "FEW", "HIDDEN")
    yield Case(("FEW",), [*few, create({**PUSH, "sourcing": True}, "FEW", "COPY")])
    yield Case(("FEW",), [*few, internal, ApiStep("CONSUMER.DELETE.FEW.a"), *few[1:]])
    yield Case(("FEW",), [internal, create({**PUSH, "sourcing": True}, "FEW", "COPY"), *few])
    for config in (
        PULL,
        {**PULL, "max_ack_pending": 60},
        {**PULL, "inactive_threshold": 99 * SECOND},
        {"durable_name": "C"},
    ):
        made = create(config)
        for limited in ({"max_ack_pending": 50}, {"inactive_threshold": 7 * SECOND}, {"max_ack_pending": -1}, {}):
            yield Case(("S",), [made, *(update_stream(consumer_limits=each) for each in (limited, limited, {}))])
        for retention in ("interest", "workqueue"):
            yield Case(("S",), [made, update_stream(retention=retention), info(), create(config, name="D")])
        yield Case(("S",), [made, create(config, name="D"), update_stream(max_consumers=1), create(config, name="E")])
    overlapping = update_stream(subjects=["w.a"], consumer_limits={"max_ack_pending": 5})
    yield Case(("S", "WORK"), [create(PULL), overlapping])


def update_stream(**config: object) -> ApiStep:
    body = {"name": "S", "subjects": ["s.>"], "storage": "memory", **config}
    return ApiStep("STREAM.UPDATE.S", json.dumps(body).encode())


def copies() -> Iterator[Case]:
    """Yield the consumers that other servers make to copy a stream."""
    for stream in ("S", "WORK", "INTEREST"):
        mirror, source = create(MIRROR, stream, None), create(MIRROR, stream, "JS_SRC_x")
        lists = [ApiStep(f"CONSUMER.NAMES.{stream}"), ApiStep("INFO"), ApiStep(f"STREAM.INFO.{stream}")]
        yield Case((stream,), [mirror, *lists])
        yield Case((stream,), [mirror, mirror, source, *lists])
        yield Case((stream,), [create({**MIRROR, "name": ""}, stream, None), *lists])
        for identity in (b"", b"x"):
            yield Case((stream,), [create(MIRROR, stream, None, header=IDENTITY % identity)])
            yield Case((stream,), [create(PULL, stream, header=IDENTITY % identity)])
            reset = ApiStep(f"CONSUMER.RESET.{stream}.C", b"", IDENTITY % identity)
            yield Case((stream,), [create(PULL, stream), reset])
    durable = {**PUSH, "sourcing": True, "durable_name": "C", "ack_policy": "flow_control", "max_ack_pending": 5}
    by_sequence = {**durable, "deliver_policy": "by_start_sequence", "opt_start_seq": 3}
    stored = messages("S", "a", "b", "c")
    yield Case(("S",), [*stored, create(durable), create(by_sequence), create({**by_sequence, "max_ack_pending": 6})])
    yield Case(("S",), [*stored, create(by_sequence), create(durable), info()])


def account_limits() -> Iterator[Case]:
    """Yield what meets limits of the account and of the server, which are 30 and 40 unacknowledged and 25 a request."""
    configs: list[Config] = [
        {},
        PULL,
        PUSH,
        *({**PULL, "max_ack_pending": count} for count in (-1, 29, 30, 31, 40, 41, 60)),
        *({**PUSH, "ack_policy": "all", "max_ack_pending": count} for count in (-1, 30, 31, 41)),
        *({**PULL, "max_batch": count} for count in (-1, 0, 25, 26)),
        {**PUSH, "max_batch": 26},
        {**PUSH, "ack_policy": "flow_control"},
    ]
    for stream in ("S", "LIMITED"):
        for config in configs:
            for pedantic in (False, True):
                yield Case((stream,), [create(config, stream, pedantic=pedantic)])
    three = [create(PULL, name=name) for name in ("a", "b", "c")]
    yield Case(("S",), [*three, create({**PUSH, "direct": True}, name="HIDDEN"), ApiStep("INFO")])
    yield Case(("S", "WORK"), [*three[:2], create(PULL, "WORK"), ApiStep("INFO"), ApiStep("STREAM.LIST")])
    yield Case(("FEW",), [create(PULL, "FEW", name) for name in ("a", "b")])


class RandomHistories:
    """Histories made by chance, on streams without messages. The same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def cases(self, count: int) -> Iterator[Case]:
        for _ in range(count):
            streams = tuple(self.random.sample(sorted(STREAMS), 2))
            yield Case(streams, [self.step(self.random.choice(streams)) for _ in range(20)])

    def step(self, stream: str) -> ApiStep:
        name = self.random.choice("CD")
        if self.random.random() < 0.6:
            action = self.random.choice([None, None, "", "create", "update"])
            return create(self.config(), stream, name, action=action, pedantic=self.random.random() < 0.1)
        word = self.random.choice(["INFO", "DELETE", "PAUSE", "UNPIN", "NAMES", "LIST"])
        if word in ("NAMES", "LIST"):
            return ApiStep(f"CONSUMER.{word}.{stream}")
        until = self.random.choice(
            [b"", b'{"pause_until":"2030-01-01T00:00:00Z"}', b'{"pause_until":"2020-01-01T00:00:00Z"}']
        )
        bodies = {"PAUSE": until, "UNPIN": b'{"group":"g"}'}
        return ApiStep(f"CONSUMER.{word}.{stream}.{name}", bodies.get(word, b""))

    def config(self) -> Config:
        config = dict(self.random.choice(VERSIONS))
        config.pop("durable_name", None)
        # One that is direct and copies a stream is given a name by chance.
        for feature in self.random.sample(FEATURES, self.random.choice([0, 0, 1, 1, 2])):
            config |= feature
        if config.get("direct"):
            config.pop("sourcing", None)
        return config
