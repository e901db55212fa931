"""Requests about streams that are sent to nats-server and to our functions, to be answered alike.

A case is a short history on an empty account: steps, each an operation, the stream in the API's subject and a body.
Those written by hand stand in `stream_cases.txt` and, where an account has limits, in `limit_cases.txt`; the others are
bodies that no text file can hold, every field with its interesting values, every pair of features, and every pair of
configurations as a stream and its update, and histories made by chance.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class Step(NamedTuple):
    operation: str
    name: str
    body: bytes
    account: str = ""


Case = list[Step]

# Bodies for the stream S: bytes that are no text, and bodies that are long or deep.
RAW_BODIES = [
    b'{"name":"S\x01"}',
    b'{"name":"S\xff"}',
    b"\xff",
    b'{"name":"S",\xc3\xa9}',
    b'{"name":"S",\'}',
    b'{"name":"S","a":"\n"}',
    b'{"name":"S","a":"\x7f"}',
    b'{"name":"S","a":"\xe2\x82"}',
    b'{"name":"S","description":"a\xe2\x82b\xed\xa0\x80c\xff\xc0\xafd"}',
    rb'{"name":"S","description":"\ud800x\udc00\ud83d\ude00 \u2028\u2029<>&\u0000\u001f\b\f\n\r\t\/\""}',
    b'{"name":"S","description":"<>&\x7f\xe2\x80\xa8\xe2\x80\xa9"}',
    b'{"name":"S","\xe2\x82":1}',
    b'{"name":"S",\xe2\x82:1}',
    b'{"name":"S",\xe2\x82\xac:1}',
    b'{"name":"S",\xe2\x80\xa8:1}',
    b'{"name":"S",\x00:1}',
    b'\xef\xbb\xbf{"name":"S"}',
    b'{"name":"S","retention":"\xff"}',
    b'{"name":"S","mirror":{"opt_start_time":"\xff"}}',
    b'{"name":"S"}\x00',
    b'{"name":"S","max_msgs":' + b"1" * 5_000 + b"}",
    b'{"name":"S","max_msgs":' + b"9" * 900_000 + b"}",
    b'{"name":"' + b"S" * 900_000 + b'"}',
    b'{"name":"S","description":"' + b"S" * 4_096 + b'"}',
    b'{"name":"S","description":"' + "é".encode() * 2_049 + b'"}',
    *(b'{"name":"S","metadata":{"a":"' + b"S" * length + b'"}}' for length in (131_055, 131_056, 131_072)),
    *(b'{"name":"S","metadata":{"_nats.%s":"' % key + b"S" * 131_072 + b'"}}' for key in (b"ver", b"level", b"x")),
    b'{"name":"S","subjects":["' + b"a." * 400_000 + b'a"]}',
    b'{"name":"S","a":[' + b"1," * 300_000 + b"1]}",
    b'{"name":"S","a":[' + b"[]," * 200_000 + b"[]]}",
    b"[" * 100_000,
    json.dumps({"name": "S", "subjects": [f"a.{number}.>" for number in range(300)]}).encode(),
    json.dumps({"name": "S", "subjects": [f"a.{number % 299}.>" for number in range(300)]}).encode(),
    *(b'{"x":' + b"[" * depth + b"]" * depth + b"}" for depth in (9_999, 10_000)),
    *(b'{"name":"S","a":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}" for depth in (9_998, 9_999, 10_000)),
]
# Names that differ from the one in the subject, and names that cannot be.
NAMES = [("a/b", "a/b"), ("a\\b", "a\\b"), *(("S", name) for name in ("a.b", "", "a b", "a/b", "S" * 256))]
NAMES += [("N" * 255, "N" * 255), ("N" * 256, "N" * 256)]

NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "-2",
    "5",
    "6",
    "99999999",
    "100000000",
    "1000000000",
    "120000000001",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1e400",
    "1.5",
    "1.0",
    "1e2",
    '"1"',
    "null",
    "true",
    "[]",
    "[1]",
    "{}",
]
NUMBER_FIELDS = [
    "max_consumers",
    "max_msgs",
    "max_bytes",
    "max_age",
    "max_msgs_per_subject",
    "max_msg_size",
    "num_replicas",
    "duplicate_window",
    "first_seq",
    "subject_delete_marker_ttl",
]
FLAG_FIELDS = [
    "no_ack",
    "allow_direct",
    "mirror_direct",
    "sealed",
    "deny_delete",
    "deny_purge",
    "allow_rollup_hdrs",
    "discard_new_per_subject",
    "allow_msg_ttl",
    "allow_msg_counter",
    "allow_atomic",
    "allow_msg_schedules",
    "allow_batched",
    "pedantic",
]
OTHER_FIELDS = [
    "name",
    "description",
    "subjects",
    "retention",
    "discard",
    "storage",
    "placement",
    "mirror",
    "sources",
    "compression",
    "subject_transform",
    "republish",
    "consumer_limits",
    "persist_mode",
    "metadata",
]
OTHER_VALUES = [
    "null",
    "5",
    "true",
    '""',
    '"x"',
    '"File"',
    "[]",
    "[null]",
    "[5]",
    "[[]]",
    "{}",
    '{"x":1}',
    '{"name":5}',
]

# Fragments of configurations that meet in some rule; every two of them are sent together.
FEATURES: list[dict[str, object]] = [
    {"retention": "workqueue"},
    {"retention": "interest"},
    {"storage": "memory"},
    {"discard": "new"},
    {"discard": "new", "discard_new_per_subject": True, "max_msgs_per_subject": 1},
    {"discard_new_per_subject": True},
    {"max_age": 1_000_000_000},
    {"max_age": 1},
    {"duplicate_window": 60_000_000_000},
    {"duplicate_window": 1},
    {"deny_purge": True},
    {"deny_delete": True},
    {"allow_rollup_hdrs": True},
    {"allow_msg_ttl": True},
    {"subject_delete_marker_ttl": 2_000_000_000},
    {"allow_msg_counter": True},
    {"allow_atomic": True},
    {"allow_batched": True},
    {"allow_msg_schedules": True},
    {"persist_mode": "async"},
    {"mirror": {"name": "ORIGIN"}},
    {"mirror": {"name": "a.b"}},
    {"mirror": {"name": "S"}},
    {"mirror_direct": True},
    {"sources": [{"name": "ORIGIN"}]},
    {"sources": [{"name": "a.b"}]},
    {"sources": [{"name": "S"}]},
    {"sources": [{"name": "ORIGIN", "external": {"api": "$JS.API", "deliver": "*"}}]},
    {"subjects": ["s.>"]},
    {"subjects": ["a b"]},
    {"subjects": [">"]},
    {"subjects": ["origin.a"]},
    {"no_ack": True},
    {"first_seq": 7},
    {"num_replicas": 3},
    {"num_replicas": 7},
    {"max_msg_size": 10},
    {"max_msgs": -2},
    {"subject_transform": {"src": "s.>", "dest": "t.>"}},
    {"subject_transform": {"src": "s..", "dest": "t.>"}},
    {"republish": {"src": ">", "dest": ">"}},
    {"republish": {"dest": "other.>"}},
    {"placement": {"preferred": "x"}},
    {"sealed": True},
    {"pedantic": True},
    {"description": "x" * 4097},
    {"metadata": {"k": "v", "_nats.req.level": "7"}},
]

# Configurations of which every one is updated to every other one.
VERSIONS: list[dict[str, object]] = [
    {},
    {"retention": "workqueue"},
    {"retention": "interest", "deny_purge": True},
    {"storage": "memory"},
    {"storage": "memory", "retention": "workqueue", "deny_delete": True},
    {"deny_delete": True},
    {"deny_purge": True, "deny_delete": True},
    {"allow_msg_ttl": True},
    {"allow_msg_counter": True},
    {"allow_msg_counter": True, "deny_delete": True},
    {"allow_msg_schedules": True},
    {"allow_msg_schedules": True, "allow_msg_ttl": True},
    {"subject_delete_marker_ttl": 1_000_000_000},
    {"persist_mode": "async"},
    {"persist_mode": "async", "allow_msg_ttl": True},
    {"mirror": {"name": "ORIGIN"}},
    {"mirror": {"name": "MISSING"}},
    {"sources": [{"name": "ORIGIN"}]},
    {"sources": [{"name": "ORIGIN", "filter_subject": "a b"}]},
    {"sealed": True},
    {"sealed": True, "deny_delete": True, "deny_purge": True, "allow_msg_ttl": True},
    {"sealed": True, "pedantic": True},
    {"num_replicas": 3, "deny_delete": True},
    {"subjects": ["origin.a"]},
    {"subjects": ["origin.a"], "num_replicas": 3, "storage": "memory"},
    {"max_bytes": 20_000_000_000},
    {"mirror_direct": True, "max_msgs": 5, "max_age": 1_000_000_000, "discard": "new"},
]

STRANGE_TOKENS = ["a", "b", "*", ">", "*a", ">b", "", "a b", "$JS", "$SYS", "EVENT", "ACCOUNT"]
DESTINATION_TOKENS = [
    *("a", "b", "*", ">", "*a", ">b", "", "a b", "é", "$1", "$2", "$x"),
    *("{{wildcard(1)}}", "{{wildcard(2)}}", "{{wildcard(1", "{{ wildcard ( 1 , 2 ) }}", "{{}}", "{{bogus(1)}}"),
    *("{{partition(3,1)}}", "{{partition(3)}}", "{{partition(1,2,3)}}", "{{random(4)}}", "{{random(1,2)}}"),
    *("{{split(1,-)}}", "{{split(1, )}}", "{{splitFromLeft(1,x)}}", "{{sliceFromRight(3,1)}}"),
    *("{{left(1,2)}}", "{{right()}}"),
]

ORIGIN = Step("CREATE", "ORIGIN", b'{"name":"ORIGIN","subjects":["origin.*"],"max_msg_size":100,"allow_direct":true}')


def hand_written(file_name: str, *, has_accounts: bool = False) -> list[Case]:
    """Return the cases of a text file: blocks of lines with nothing between them but comments."""
    cases: list[Case] = [[]]
    # Only the line feed ends a line; a body may have other ends of lines in it.
    for line in (FOLDER / file_name).read_text().split("\n"):
        if not line:
            cases.append([])
        elif not line.startswith("#"):
            account, rest = line.split(" ", 1) if has_accounts else ("", line)
            operation, name, *body = rest.split(" ", 2)
            cases[-1].append(Step(operation, name, body[0].encode() if body else b"", account))
    return [case for case in cases if case]


def bodies_and_names() -> Iterator[Case]:
    for body in RAW_BODIES:
        yield [Step("CREATE", "S", body)]
    for subject_name, name in NAMES:
        for operation in ("CREATE", "UPDATE"):
            yield [Step(operation, subject_name, json.dumps({"name": name}).encode())]


def fields_and_values() -> Iterator[Case]:
    """Yield each field alone with each value that might be special, and numbers in pedantic mode as well."""
    for values, fields in ((NUMBERS, NUMBER_FIELDS + FLAG_FIELDS), (OTHER_VALUES, OTHER_FIELDS + FLAG_FIELDS)):
        for field in fields:
            for value in values:
                yield [_create(f'"{field}":{value}')]
    for field in NUMBER_FIELDS:
        for value in NUMBERS:
            yield [_create(f'"pedantic":true,"{field}":{value}')]
    for field in ("opt_start_seq", "opt_start_time", "name", "external", "consumer", "subject_transforms"):
        for value in NUMBERS + OTHER_VALUES:
            yield [_create(f'"mirror":{{"name":"M","{field}":{value}}}')]
            yield [_create(f'"sources":[{{"name":"M","{field}":{value}}}]')]
    for field in ("inactive_threshold", "max_ack_pending"):
        for value in NUMBERS:
            yield [_create(f'"consumer_limits":{{"{field}":{value}}}')]


def pairs_of_features() -> Iterator[Case]:
    for first, second in combinations(FEATURES, 2):
        yield [ORIGIN, Step("CREATE", "S", json.dumps({"name": "S", **first, **second}).encode())]


def updates() -> Iterator[Case]:
    for before in VERSIONS:
        for after in VERSIONS:
            bodies = [json.dumps({"name": "S", **version}).encode() for version in (before, after)]
            yield [ORIGIN, Step("CREATE", "S", bodies[0]), Step("UPDATE", "S", bodies[1])]


class RandomCases:
    """Histories made by chance, of what has the most ways to be wrong. The same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def cases(self, count: int) -> Iterator[Case]:
        for number in range(count):
            make = (self.transforming, self.subscribed, self.copying)[number % 3]
            others = [] if make == self.transforming else ["O1", "O2"]
            steps = [Step("CREATE", name, self.body(make(name))) for name in [*others, "S"]]
            yield [*steps, Step("UPDATE", "S", self.body(make("S")))]

    def body(self, config: dict[str, object]) -> bytes:
        return json.dumps({"storage": "memory", **config}).encode()

    def transforming(self, name: str) -> dict[str, object]:
        kind = self.random.choice(["subject_transform", "republish"])
        return {"name": name, "subjects": ["q"], kind: {"src": self.subject(), "dest": self.destination()}}

    def subscribed(self, name: str) -> dict[str, object]:
        subjects = [self.subject() for _ in range(self.random.choice([1, 2, 3]))]
        return {"name": name, "subjects": subjects, "no_ack": self.chance(0.3)}

    def copying(self, name: str) -> dict[str, object]:
        config: dict[str, object] = {"name": name, "mirror_direct": self.chance(0.1), "pedantic": self.chance(0.1)}
        if name != "S" and self.chance(0.5):
            return {"name": name, "subjects": [f"{name}.>"], "max_msg_size": 100, "allow_direct": self.chance(0.5)}
        if self.chance(0.4):
            config["mirror"] = self.source()
        else:
            config["sources"] = [self.source() for _ in range(self.random.choice([1, 1, 2, 3]))]
        if self.chance(0.3):
            config["subjects"] = [self.subject()]
        if self.chance(0.2):
            config["max_msg_size"] = self.random.choice([5, 500])
        return config

    def source(self) -> dict[str, object]:
        choice = self.random.choice
        source: dict[str, object] = {"name": choice(["A", "B", "S", "a.b", "O1", "O2", "O1", "O2"])}
        if self.chance(0.2):
            source["filter_subject"] = self.subject()
        if self.chance(0.2):
            count = choice([1, 2])
            source["subject_transforms"] = [
                {"src": self.subject(), "dest": choice(["", self.destination()])} for _ in range(count)
            ]
        if self.chance(0.2):
            api, deliver = choice(["x", "$JS.API", "*", "", "a b"]), choice(["", "", "d", "*", "O1"])
            source["external"] = {"api": api, "deliver": deliver}
        if self.chance(0.15):
            name, subject = choice(["c", "c", "d", "", "a.b"]), choice(["x", "x.y", "*", ""])
            source["consumer"] = {"name": name, "deliver_subject": subject}
        return source

    def subject(self) -> str:
        tokens = STRANGE_TOKENS if self.chance(0.2) else ["a", "b", "*", "c"]
        chosen = [self.random.choice(tokens) for _ in range(self.random.choice([1, 2, 2, 3]))]
        return ".".join(chosen) + self.random.choice(["", "", "", ".>"])

    def destination(self) -> str:
        return ".".join(self.destination_token() for _ in range(self.random.choice([1, 1, 2, 3])))

    def destination_token(self) -> str:
        token = self.random.choice(DESTINATION_TOKENS)
        if token and self.chance(0.15):
            place = self.random.randrange(len(token))
            token = token[:place] + self.random.choice("{}(), 1-x\t") + token[place + 1 :]
        return token

    def chance(self, share: float) -> bool:
        return self.random.random() < share


def _create(members: str) -> Step:
    return Step("CREATE", "S", f'{{"name":"S",{members}}}'.encode())
