"""The list of all requests is complete, says what each needs, and is what the documents show."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest

from jetlake import _engine
from jetlake.management.requests.rights import SendTarget
from tests.management import api_list
from tests.management.api_twin import ApiTwin
from tests.management.engine_twin import TwinRequest

# What nats-server 2.15 answers below `$JS.API`, without names: there the right to the subject itself is all there is.
OF_NATS_SERVER = {
    *("INFO", "STREAM.CREATE", "STREAM.UPDATE", "STREAM.NAMES", "STREAM.LIST", "STREAM.INFO", "STREAM.DELETE"),
    *("STREAM.PURGE", "STREAM.MSG.GET", "STREAM.MSG.DELETE", "STREAM.SNAPSHOT", "STREAM.RESTORE", "CONSUMER.CREATE"),
    *("CONSUMER.DURABLE.CREATE", "CONSUMER.NAMES", "CONSUMER.LIST", "CONSUMER.INFO", "CONSUMER.DELETE"),
    *("CONSUMER.PAUSE", "CONSUMER.UNPIN", "CONSUMER.RESET", "CONSUMER.MSG.NEXT", "DIRECT.GET"),
    *("STREAM.LEADER.STEPDOWN", "STREAM.PEER.REMOVE", "STREAM.PEER.EVACUATE", "STREAM.CANCEL_MOVE"),
    *("CONSUMER.LEADER.STEPDOWN", "CONSUMER.PEER.REMOVE", "CONSUMER.PEER.EVACUATE"),
}
# The same outside `$JS.API`.
OTHERS_OF_NATS_SERVER = {"$JS.ACK", "$JS.FC", "$JS.SNAPSHOT.ACK", "$JS.SNAPSHOT.RESTORE"}

ROWS = api_list.rows()
ENGINE = api_list.ROOT / "crates" / "engine" / "src"


def words_of(subject: str) -> str:
    """Return a subject without names."""
    return ".".join(token for token in subject.split(".") if not token.startswith("<") and token != ">")


@pytest.mark.parametrize("path", [api_list.ALL_ROWS, api_list.FURTHER_ROWS], ids=lambda path: path.name)
def test_documents_show_the_list(path):
    assert path.read_text() == api_list.documents()[path], "run `python -m tests.management.api_list --write`"


def test_every_request_that_nats_server_does_not_know_needs_a_further_right():
    known = {f"$JS.API.{words}" for words in OF_NATS_SERVER} | OTHERS_OF_NATS_SERVER
    own = [row for row in ROWS if words_of(row.subject) not in known]

    assert len(own) > 30
    assert [row.subject for row in own if not (row.needs or row.condition)] == []


def test_every_reason_to_send_somewhere_is_declared():
    by_requests = {target for row in ROWS for target in row.targets}
    by_messages = {SendTarget.REPLY.value, SendTarget.SCHEDULE.value, SendTarget.TRACE.value}

    assert by_requests | by_messages == {target.value for target in SendTarget}


def test_engine_knows_the_same_reasons():
    everything = _engine.Rights(
        b'{"publish":{"allow":null,"deny":[]},"subscribe":{"allow":null,"deny":[]},"responses":null}'
    )

    assert all(everything.may_send_to(target.value, "x") for target in SendTarget)
    assert not everything.may_send_to("some other reason", "x")


def engine_sources() -> list[tuple[str, str]]:
    """Return the engine's sources without their tests and comments."""
    found = []
    for path in ENGINE.rglob("*.rs"):
        if path.name.endswith("_tests.rs") or path.is_relative_to(ENGINE / "load") or path.name == "own_requests.rs":
            continue
        text = path.read_text().partition("#[cfg(test)]\nmod tests {")[0]
        found.append((str(path.relative_to(ENGINE)), re.sub(r"//.*", "", text)))
    return found


def test_every_subject_that_the_engine_listens_to_is_in_its_list():
    denied_on_links = "routing/leaf/link.rs"
    requests = [each["pattern"] for each in json.loads(_engine.own_requests())]
    starts = {pattern.partition("*")[0].removesuffix(">").rstrip(".") for pattern in requests}
    # What is told, what only begins other subjects, and what copies of other servers ask.
    harmless = re.compile(r"\$JS\.EVENT\.|\$JS\.API\.?$|\$JS\.?$|\$JS\.\{(?:name|domain)\}\.API|\$JS\.STREAM\.$")

    unknown = {
        f"{name}: {subject}"
        for name, text in engine_sources()
        for subject in re.findall(r'"(\$JS\.[^"]*)"', text)
        if name != denied_on_links
        and not harmless.match(subject)
        and not any(subject.startswith((f"{start}.", start)) for start in starts)
    }

    assert unknown == set(), "add it to crates/engine/src/routing/own_requests.rs, with what it needs"


def test_parts_of_the_engine_that_take_messages_are_known():
    """A new one of these is a new way in: what it takes belongs into `own_requests.rs`."""
    sinks = {name for name, text in engine_sources() if re.search(r"impl Sink for", text)}

    assert sinks == {
        *(
            "consumer/consumer.rs",
            "stream/api.rs",
            "stream/read/credits.rs",
            "stream/read/reads.rs",
            "stream/archive/restore.rs",
        ),
        *("stream/stream.rs", "stream/publish/untaken.rs", "stream/staged_commit/requests.rs"),
    }


MARK = "marked.subject"


class Spy(TwinRequest, frozen=True, kw_only=True):
    """A request that notes which subjects the server is asked to send to for it."""

    asked: list[str] = msgspec.field(default_factory=list)

    def may_send_to(self, _target: str, pattern: str) -> bool:
        self.asked.append(pattern)
        return True


STREAM: dict[str, Any] = {"name": "NEW", "subjects": ["new.>"], "republish": {"src": "new.>", "dest": f"{MARK}.>"}}
CONSUMER = {"stream_name": "S", "config": {"durable_name": "C", "deliver_subject": MARK, "ack_policy": "explicit"}}
OLD_CONSUMER = {"stream_name": "S", "config": {"durable_name": "C", "delivery_subject": MARK, "ack_policy": "explicit"}}

# A request for every row that sends somewhere, with what it sends to marked.
SENDING = {
    "$JS.API.STREAM.CREATE.<stream>": ("$JS.API.STREAM.CREATE.NEW", STREAM),
    "$JS.API.STREAM.UPDATE.<stream>": ("$JS.API.STREAM.UPDATE.S", {**STREAM, "name": "S"}),
    "$JS.API.STREAM.FORK.<stream>": ("$JS.API.STREAM.FORK.R", {"name": "F", "subjects": ["f.>"]}),
    "$JS.API.STREAM.RESTORE.<stream>": ("$JS.API.STREAM.RESTORE.NEW", {"config": STREAM, "state": {}}),
    "$JS.API.STREAM.SNAPSHOT.<stream>": ("$JS.API.STREAM.SNAPSHOT.S", {"deliver_subject": MARK}),
    "$JS.API.STREAM.SCAN.ROWS.<stream>": ("$JS.API.STREAM.SCAN.ROWS.S", {"deliver_subject": MARK}),
    "$JS.API.CONSUMER.CREATE.<stream>": (
        "$JS.API.CONSUMER.CREATE.S",
        {"stream_name": "S", "config": {"deliver_subject": MARK}},
    ),
    "$JS.API.CONSUMER.CREATE.<stream>.<consumer>": ("$JS.API.CONSUMER.CREATE.S.C", CONSUMER),
    "$JS.API.CONSUMER.CREATE.<stream>.<consumer>.<filter>": (
        "$JS.API.CONSUMER.CREATE.S.C.s.x",
        {**CONSUMER, "config": {**CONSUMER["config"], "filter_subject": "s.x"}},  # type: ignore[dict-item]
    ),
    "$JS.API.CONSUMER.DURABLE.CREATE.<stream>.<consumer>": ("$JS.API.CONSUMER.DURABLE.CREATE.S.C", CONSUMER),
    "$JS.STREAM.<stream>.CONSUMER.<consumer>.CREATE": ("$JS.STREAM.S.CONSUMER.C.CREATE", OLD_CONSUMER),
    "$JS.STREAM.<stream>.EPHEMERAL.CONSUMER.CREATE": (
        "$JS.STREAM.S.EPHEMERAL.CONSUMER.CREATE",
        {"stream_name": "S", "config": {"delivery_subject": MARK}},
    ),
    "$JS.OBSERVABLE.CREATE": (
        "$JS.OBSERVABLE.CREATE",
        {"msg_set_name": "S", "config": {"durable_name": "C", "delivery_subject": MARK}},
    ),
}


def test_a_request_is_tried_for_every_row_that_sends_somewhere():
    assert {row.subject for row in ROWS if row.targets} == set(SENDING)


@pytest.mark.parametrize("row", SENDING)
def test_every_request_that_sends_somewhere_asks_whether_it_may(row):
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    api.ask("STREAM.CREATE.R", {"name": "R", "subjects": ["r.>"], "republish": {"src": ">", "dest": f"{MARK}.>"}})
    api.engine.interest.add(MARK)
    subject, body = SENDING[row]
    spy = Spy(subject=subject, payload=json.dumps(body).encode())

    api.manager.answer(spy)

    answer = api.engine.published[-1][2].decode()
    assert "permissions" not in answer
    assert [pattern for pattern in spy.asked if pattern.startswith(MARK)], answer
