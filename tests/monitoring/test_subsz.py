"""`/subsz` from recorded readings."""

import pytest

from jetlake.monitoring import subsz
from jetlake.monitoring.parameters import PageError as RefusedError
from jetlake.monitoring.parameters import QueryParameters
from jetlake.monitoring.subsz import SubszOptions
from tests.monitoring.recorded import RecordedEngine, account, as_json, recorded, source_of, subscription, traffic

ACCOUNTS = [
    account(
        "$G",
        subscriptions=3,
        traffic=traffic(in_messages=10),
        routing={"inserts": 5, "removes": 2, "walks": 4, "fanout_total": 6, "fanout_max": 3},
    ),
    account("A", subscriptions=1, routing={"inserts": 1, "removes": 0, "walks": 0, "fanout_total": 0, "fanout_max": 0}),
]


def build(source, **options):
    return as_json(subsz.build(source, SubszOptions(**options)))


def test_figures_of_all_accounts_come_together():
    page = build(recorded(accounts=ACCOUNTS))

    assert page == {
        "server_id": "NAID",
        "now": "2023-11-14T23:15:23Z",
        "num_subscriptions": 4,
        "num_cache": 0,
        "num_inserts": 6,
        "num_removes": 2,
        "num_matches": 10,
        "cache_hit_rate": 0.6,
        "max_fanout": 3,
        "avg_fanout": 1.5,
        "total": 0,
        "offset": 0,
        "limit": 1024,
    }


def test_one_account_is_shown_alone_and_an_unknown_one_has_zeros():
    assert build(recorded(accounts=ACCOUNTS), account="A")["num_subscriptions"] == 1
    nowhere = build(recorded(accounts=ACCOUNTS), account="nowhere")
    assert (nowhere["num_subscriptions"], nowhere["cache_hit_rate"], nowhere["avg_fanout"]) == (0, 0, 0)


def test_the_list_is_asked_for_page_by_page():
    engine = RecordedEngine(subscription_list=[subscription("x", queue="q", delivered_max=5)])

    page = build(source_of(engine), subscriptions=True, account="A", test="x.y", offset=-3, limit=7)

    assert engine.queries == [{"account": "A", "subject": "x.y", "limit": 7}]
    assert (page["total"], page["offset"], page["limit"]) == (1, 0, 7)
    assert page["subscriptions_list"] == [
        {
            "account": "$G",
            "account_tag": "$G",
            "subject": "x",
            "qgroup": "q",
            "sid": "1",
            "msgs": 0,
            "max": 5,
            "cid": 1,
        }
    ]


def test_an_empty_list_is_left_out():
    assert "subscriptions_list" not in build(recorded(), subscriptions=True)


def test_a_test_subject_must_be_one_to_publish_to():
    with pytest.raises(RefusedError, match=r"^invalid test subject, must be valid publish subject: a\.\*$"):
        build(recorded(), test="a.*")


def test_parameters_become_options():
    words = {"subs": "1", "offset": "2", "limit": "3", "acc": "A", "test": "x"}

    options = subsz.options_of(QueryParameters(words))

    assert options == SubszOptions(subscriptions=True, offset=2, limit=3, account="A", test="x")
