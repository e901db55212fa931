"""`/jsz` from recorded facts, with streams as they will plug in."""

import pytest

from jetlake.monitoring import jsz
from jetlake.monitoring.jsz import AccountUsage, JszOptions
from jetlake.monitoring.parameters import PageError as RefusedError
from jetlake.monitoring.parameters import QueryParameters
from tests.monitoring.recorded import JETSTREAM, as_json, recorded

USAGES = [
    AccountUsage(
        name="A",
        storage_bytes=30,
        memory_bytes=1,
        reserved_storage_bytes=90,
        stream_storage_bytes_max=50,
        api_total=7,
        api_errors=2,
        message_count=3,
        message_bytes=30,
        consumer_count=1,
        streams=({"name": "ORDERS"},),
    ),
    AccountUsage(name="B"),
]


@pytest.fixture
def with_streams(monkeypatch):
    """A server with JetStream on which account A stores something."""
    monkeypatch.setattr(jsz, "account_usages", lambda _: USAGES)
    return recorded(facts={"jetstream": JETSTREAM})


def build(source, **options):
    return as_json(jsz.build(source, JszOptions(**options)))


def names(page):
    return [detail["name"] for detail in page.get("account_details", [])]


def test_jetstream_that_is_off_has_zeros():
    assert build(recorded()) == {
        "memory": 0,
        "storage": 0,
        "reserved_memory": 0,
        "reserved_storage": 0,
        "accounts": 0,
        "ha_assets": 0,
        "api": {"level": 0, "total": 0, "errors": 0},
        "server_id": "NAID",
        "now": "2023-11-14T23:15:23Z",
        "disabled": True,
        "config": {"max_memory": 0, "max_storage": 0},
        "streams": 0,
        "consumers": 0,
        "messages": 0,
        "bytes": 0,
        "total": 0,
    }


def test_jetstream_that_is_on_shows_its_configuration():
    page = build(recorded(facts={"jetstream": JETSTREAM}))

    assert "disabled" not in page
    assert (page["accounts"], page["total"], page["api"]["level"]) == (2, 2, 5)
    assert page["config"]["store_dir"] == "store/jetstream"
    assert page["limits"] == {"max_ack_pending": 7}
    assert "account_details" not in page


def test_sums_are_over_all_accounts(with_streams):
    page = build(with_streams)

    assert (page["memory"], page["storage"], page["reserved_memory"], page["reserved_storage"]) == (1, 30, 0, 50)
    assert (page["streams"], page["consumers"], page["messages"], page["bytes"]) == (1, 1, 3, 30)
    assert (page["api"]["total"], page["api"]["errors"]) == (7, 2)


def test_details_come_when_asked_for(with_streams):
    assert names(build(with_streams)) == []
    assert names(build(with_streams, accounts=True)) == ["A", "B"]
    assert names(build(with_streams, account="B")) == ["B"]
    assert names(build(with_streams, account="nowhere")) == []
    assert names(build(with_streams, account="nowhere", streams=True)) == []


def test_streams_come_when_asked_for(with_streams):
    assert "stream_detail" not in build(with_streams, accounts=True)["account_details"][0]
    assert build(with_streams, streams=True)["account_details"][0]["stream_detail"] == [{"name": "ORDERS"}]
    assert build(with_streams, consumer=True)["account_details"][0]["stream_detail"] == [{"name": "ORDERS"}]
    assert "stream_detail" not in build(with_streams, streams=True)["account_details"][1]


def test_details_are_cut_by_offset_and_limit(with_streams):
    assert names(build(with_streams, accounts=True, limit=1)) == ["A"]
    assert names(build(with_streams, accounts=True, offset=1)) == ["B"]
    assert names(build(with_streams, accounts=True, offset=2**63 - 1, limit=2**63 - 1)) == []
    assert names(build(with_streams, accounts=True, offset=-1, limit=-1)) == ["A", "B"]


def test_an_account_without_limits_reserves_the_largest_number(with_streams):
    detail = build(with_streams, account="B")["account_details"][0]

    assert detail["reserved_memory"] == 18_446_744_073_709_551_615
    assert detail["api"] == {"level": 0, "total": 0, "errors": 0}


def test_a_server_without_jetstream_leads_nothing():
    with pytest.raises(RefusedError, match=r"^filtered response: not leader$"):
        build(recorded(), leader_only=True)
    assert build(recorded(facts={"jetstream": JETSTREAM}), leader_only=True)["total"] == 2


@pytest.mark.parametrize(
    ("facts", "account", "text"),
    [
        ({}, "A", "jetstream not enabled"),
        ({"jetstream": JETSTREAM}, "$G", 'account "$G" not jetstream enabled'),
        ({"jetstream": JETSTREAM}, "nowhere", 'account "nowhere" not found'),
    ],
)
def test_one_account_is_refused_in_the_words_of_nats_server(facts, account, text):
    with pytest.raises(RefusedError) as refusal:
        jsz.build_account(recorded(facts=facts), JszOptions(account=account))

    assert str(refusal.value) == text


def test_parameters_become_options():
    words = dict.fromkeys(
        ["accounts", "streams", "consumers", "direct-consumers", "config", "leader-only", "raft", "stream-leader-only"],
        "1",
    )

    options = jsz.options_of(QueryParameters({**words, "acc": "A", "offset": "2", "limit": "3"}))

    assert options == JszOptions(
        account="A",
        accounts=True,
        streams=True,
        consumer=True,
        direct_consumer=True,
        config=True,
        leader_only=True,
        offset=2,
        limit=3,
        raft=True,
        stream_leader_only=True,
    )


def consumers(**options):
    described = {"name": "ORDERS", "state": {}, "config": lambda: {"name": "ORDERS"}}
    described["consumer_detail"] = lambda: [{"name": "C", "config": {"name": "C"}, "num_pending": 1}]
    described["direct_consumer_detail"] = lambda: [{"name": "D", "config": {}}]
    detail = jsz._detail(AccountUsage(name="A", streams=(described,)), JszOptions(**options))
    return detail.stream_detail[0]


def test_consumers_are_shown_when_asked_for():
    assert consumers(streams=True) == {"name": "ORDERS", "state": {}}
    assert consumers(consumer=True)["consumer_detail"] == [{"name": "C", "num_pending": 1}]
    assert "direct_consumer_detail" not in consumers(consumer=True)
    assert consumers(consumer=True, direct_consumer=True)["direct_consumer_detail"] == [{"name": "D"}]
    assert list(consumers(consumer=True, config=True)) == ["name", "config", "state", "consumer_detail"]
    assert consumers(consumer=True, config=True)["consumer_detail"][0]["config"] == {"name": "C"}
