"""`/accstatz` from recorded readings."""

from jetlake.monitoring import accstatz
from jetlake.monitoring.accstatz import AccstatzOptions
from jetlake.monitoring.facts import LeafFacts
from jetlake.monitoring.parameters import QueryParameters
from tests.monitoring.recorded import account, as_json, leaf_link, recorded, traffic

ACCOUNTS = [
    account("$G", connections=2, total_connections=9, subscriptions=3, traffic=traffic(1, 2, 3, 4), slow_consumers=1),
    account("A"),
]


def names(page):
    return [entry["acc"] for entry in page["account_statz"]]


def build(**options):
    return as_json(accstatz.build(recorded(accounts=ACCOUNTS), AccstatzOptions(**options)))


def test_an_account_is_shown_in_the_words_of_nats_server():
    nothing = {"msgs": 0, "bytes": 0}

    assert build()["account_statz"] == [
        {
            "acc": "$G",
            "name": "$G",
            "conns": 2,
            "leafnodes": 0,
            "total_conns": 2,
            "num_subscriptions": 3,
            "sent": {"msgs": 3, "bytes": 4, "gateways": nothing, "routes": nothing, "leafs": nothing},
            "received": {"msgs": 1, "bytes": 2, "gateways": nothing, "routes": nothing, "leafs": nothing},
            "slow_consumers": 1,
        }
    ]


def test_links_count_and_make_an_account_a_used_one():
    link = leaf_link(1, account="A", in_messages=1, in_bytes=2, out_messages=3, out_bytes=4)
    source = recorded({"leaf": LeafFacts()}, accounts=ACCOUNTS, leaf_links=[link])

    page = as_json(accstatz.build(source, AccstatzOptions()))

    assert names(page) == ["$G", "A"]
    found = page["account_statz"][1]
    assert (found["conns"], found["leafnodes"], found["total_conns"]) == (0, 1, 1)
    assert found["sent"]["leafs"] == {"msgs": 3, "bytes": 4}
    assert found["received"]["leafs"] == {"msgs": 1, "bytes": 2}


def test_unused_accounts_come_when_asked_for():
    assert names(build()) == ["$G"]
    assert names(build(include_unused=True)) == ["$G", "A"]
    assert accstatz.options_of(QueryParameters({"unused": "1"})) == AccstatzOptions(include_unused=True)


def test_accounts_are_chosen_by_name():
    assert names(build(accounts=["A", "nowhere"], include_unused=True)) == ["A"]
