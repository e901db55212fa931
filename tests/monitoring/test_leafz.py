"""`/leafz` from recorded readings."""

import pytest

from jetlake.monitoring import accountz, leafz
from jetlake.monitoring.accountz import AccountzOptions
from jetlake.monitoring.facts import LeafFacts
from jetlake.monitoring.leafz import LeafzOptions
from jetlake.monitoring.parameters import PageError, QueryParameters
from tests.monitoring.recorded import account, as_json, leaf_link, leaf_remote, recorded

LINKS = [
    leaf_link(6, name="hub", is_spoke=True, is_isolated=True, account="B", in_messages=1, out_bytes=2),
    leaf_link(7, compression=""),
]


def build(states=(), **options):
    source = recorded({"leaf": LeafFacts()}, leaf_links=LINKS, leaf_remotes=list(states))
    return as_json(leafz.build(source, LeafzOptions(**options)))


def test_server_without_links_has_an_empty_page():
    page = as_json(leafz.build(recorded(), LeafzOptions()))

    assert page == {"server_id": "NAID", "now": "2023-11-14T23:15:23Z", "leafnodes": 0, "leafs": []}


def test_links_are_shown_in_the_words_of_nats_server():
    page = build()

    assert page["leafnodes"] == 2
    assert page["leafs"][0] == {
        "id": 6,
        "name": "hub",
        "is_spoke": True,
        "is_isolated": True,
        "account": "B",
        "ip": "127.0.0.1",
        "port": 50_006,
        "rtt": "508µs",
        "in_msgs": 1,
        "out_msgs": 0,
        "in_bytes": 0,
        "out_bytes": 2,
        "subscriptions": 2,
        "compression": "s2_uncompressed",
    }
    assert not {"is_isolated", "compression", "subscriptions_list"} & set(page["leafs"][1])


def test_subjects_come_when_asked_for():
    assert [each["subscriptions_list"] for each in build(subscriptions=True)["leafs"]] == [["wanted.6"], ["wanted.7"]]


def test_links_of_one_account():
    page = build(account="B")

    assert [each["id"] for each in page["leafs"]] == [6]
    assert page["leafnodes"] == 1


def test_hubs_come_when_asked_for():
    remotes = [leaf_remote(), leaf_remote(account="B", is_connected=True, link_id=6, retry_in_ms=0, last_error="")]

    assert "remotes" not in build(states=remotes)
    first, second = build(states=remotes, remotes=True)["remotes"]
    assert first == {
        "account": "$G",
        "urls": ["hub:7422"],
        "connected": False,
        "attempts": 3,
        "last_error": "connection refused",
        "changed": "2023-11-14T22:13:20Z",
        "retry_in": 1_500_000_000,
        "pending_bytes": 0,
    }
    assert (second["connected"], second["id"]) == (True, 6)
    assert not {"retry_in", "last_error"} & set(second)


@pytest.mark.parametrize(
    ("parameters", "options"),
    [
        ({}, LeafzOptions()),
        ({"subs": "1", "acc": "B", "remotes": "true"}, LeafzOptions(subscriptions=True, account="B", remotes=True)),
    ],
)
def test_parameters(parameters, options):
    assert leafz.options_of(QueryParameters(parameters)) == options


def test_parameter_that_cannot_be_read_is_refused():
    with pytest.raises(PageError, match="Error decoding boolean for 'subs'"):
        leafz.options_of(QueryParameters({"subs": "detail"}))


def test_account_counts_its_links():
    source = recorded({"leaf": LeafFacts()}, accounts=[account("B")], leaf_links=LINKS)

    assert as_json(accountz.build(source, AccountzOptions(account="B")))["account_detail"]["leafnode_connections"] == 1
