"""`/accountz` from recorded readings."""

import pytest

from jetlake.monitoring import accountz
from jetlake.monitoring.accountz import AccountzOptions
from jetlake.monitoring.parameters import PageError as RefusedError
from jetlake.monitoring.parameters import QueryParameters
from tests.monitoring.recorded import JETSTREAM, account, as_json, recorded


def build(source, name=""):
    return as_json(accountz.build(source, accountz.options_of(QueryParameters({"acc": name}))))


def test_accounts_are_listed_by_name():
    assert build(recorded()) == {
        "server_id": "NAID",
        "now": "2023-11-14T23:15:23Z",
        "system_account": "$SYS",
        "accounts": ["$G", "$SYS"],
    }


def test_one_account_is_shown_in_detail():
    source = recorded(facts={"jetstream": JETSTREAM}, accounts=[account("A", connections=2, subscriptions=3)])

    page = build(source, "A")

    assert "accounts" not in page
    assert page["account_detail"] == {
        "account_name": "A",
        "update_time": "2023-11-14T22:13:20Z",
        "expired": False,
        "complete": True,
        "jetstream_enabled": True,
        "leafnode_connections": 0,
        "client_connections": 2,
        "subscriptions": 3,
        "name_tag": "A",
        "sublist_stats": {
            "num_subscriptions": 3,
            "num_cache": 0,
            "num_inserts": 0,
            "num_removes": 0,
            "num_matches": 0,
            "cache_hit_rate": 0,
            "max_fanout": 0,
            "avg_fanout": 0,
        },
    }


def test_the_system_account_says_so():
    assert build(recorded(), "$SYS")["account_detail"]["is_system"] is True
    assert "is_system" not in build(recorded(), "$G")["account_detail"]


def test_an_unknown_account_is_refused_in_the_words_of_nats_server():
    with pytest.raises(RefusedError, match=r"^Account nope does not exist$"):
        accountz.build(recorded(), AccountzOptions(account="nope"))
