"""What the system account hears of leaf nodes."""

import json

import pytest

from jetlake.monitoring.facts import LeafFacts
from jetlake.server.options import AccessOptions
from jetlake.server.system.handler import Handler
from tests.monitoring.recorded import FACTS, RecordedEngine, account, closed, connection, leaf_link


class Event:
    """An arrival or a departure, as the engine tells it."""

    def __init__(self, kind, report):
        self.kind, self.connection = kind, json.dumps(report).encode()


class Listened(RecordedEngine):
    """An engine of which everything is listened to."""

    server_id = FACTS.server_id

    def __init__(self, **readings):
        super().__init__(**readings)
        self.published = []

    def has_interest(self, _account, _subject):
        return True

    def next_event_sequence(self):
        return 1

    def publish(self, _account, subject, payload, *_rest, **_more):
        self.published.append((subject, json.loads(payload)))
        return 1


@pytest.fixture
def engine():
    return Listened(accounts=[account("A")], leaf_links=[leaf_link(7, account="A")])


@pytest.fixture
def handler(engine):
    facts = {name: getattr(FACTS, name) for name in FACTS.__struct_fields__} | {"leaf": LeafFacts()}
    return Handler(engine, lambda: type(FACTS)(**facts), AccessOptions, lambda: "", print)


def test_link_is_told_of_in_the_words_of_nats_server(engine, handler):
    handler.tell([Event("link", connection(7, account="A", connection_type="LEAFNODE"))])

    linked, *counts = engine.published
    assert linked[0] == "$SYS.ACCOUNT.A.LEAFNODE.CONNECT"
    assert set(linked[1]) == {"server", "acc"}
    assert linked[1]["acc"] == "A"
    assert [subject for subject, _ in counts] == ["$SYS.SERVER.ACCOUNT.A.CONNS", "$SYS.ACCOUNT.A.SERVER.CONNS"]
    assert [counts[0][1][key] for key in ("conns", "leafnodes", "total_conns")] == [0, 1, 1]


def test_client_that_connects_is_not_a_leaf_node(engine, handler):
    handler.tell([Event("connect", connection(8, account="A"))])

    subject, advisory = engine.published[0]
    assert (subject, advisory["client"]["kind"], advisory["client"]["client_type"]) == (
        "$SYS.ACCOUNT.A.CONNECT",
        "Client",
        "nats",
    )
    assert "$SYS.ACCOUNT.A.LEAFNODE.CONNECT" not in [each for each, _ in engine.published]


def test_leaf_node_that_leaves_is_told_of(engine, handler):
    handler.tell([Event("disconnect", closed(7, account="A", connection_type="LEAFNODE_WS"))])

    subject, advisory = engine.published[0]
    assert subject == "$SYS.ACCOUNT.A.DISCONNECT"
    assert (advisory["client"]["kind"], advisory["reason"]) == ("Leafnode", "Client Closed")
    assert "client_type" not in advisory["client"]
