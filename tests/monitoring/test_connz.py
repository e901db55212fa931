"""`/connz` from recorded readings."""

import pytest

from jetlake.monitoring import connz
from jetlake.monitoring.connz import ALL, CLOSED, ConnzOptions
from jetlake.monitoring.parameters import PageError as RefusedError
from jetlake.monitoring.parameters import QueryParameters
from tests.monitoring.recorded import (
    NOW_NS,
    SECOND_NS,
    STARTED_NS,
    RecordedEngine,
    as_json,
    closed,
    connection,
    recorded,
    source_of,
    subscription,
    traffic,
)


def build(source, **options):
    return as_json(connz.build(source, ConnzOptions(**options)))


def ids(page):
    return [entry["cid"] for entry in page["connections"]]


def test_a_connection_is_shown_in_the_words_and_order_of_nats_server():
    page = build(recorded(connections=[connection(7, traffic=traffic(1, 5, 2, 10), subscriptions=2)]))

    assert page == {
        "server_id": "NAID",
        "now": "2023-11-14T23:15:23Z",
        "num_connections": 1,
        "total": 1,
        "offset": 0,
        "limit": 1024,
        "connections": [
            {
                "cid": 7,
                "kind": "Client",
                "type": "nats",
                "ip": "127.0.0.1",
                "port": 50_007,
                "start": "2023-11-14T22:13:27Z",
                "last_activity": "2023-11-14T22:13:27Z",
                "rtt": "673µs",
                "uptime": "1h1m56s",
                "idle": "1h1m56s",
                "pending_bytes": 0,
                "in_msgs": 1,
                "out_msgs": 2,
                "in_bytes": 5,
                "out_bytes": 10,
                "subscriptions": 2,
                "name": "client 7",
                "lang": "python3",
                "version": "2.16.0",
            }
        ],
    }
    assert list(page["connections"][0])[:5] == ["cid", "kind", "type", "ip", "port"]


def test_what_does_not_apply_is_left_out():
    entry = build(recorded(connections=[connection(1, name="", language="", version="")]))["connections"][0]

    assert not {"name", "lang", "version", "stop", "reason", "stalls", "tls_version", "account"} & set(entry)


def test_tls_and_stalls_are_shown_where_there_are_some():
    secured = connection(1, tls_version="1.3", tls_cipher="TLS_AES_128_GCM_SHA256", stalls=3)

    entry = build(recorded(connections=[secured]))["connections"][0]

    assert entry["tls_version"] == "1.3"
    assert entry["tls_cipher_suite"] == "TLS_AES_128_GCM_SHA256"
    assert entry["stalls"] == 3


def test_way_to_connect_is_named_as_nats_server_names_it():
    page, wired = connection(1, connection_type="WEBSOCKET"), connection(2, connection_type="STANDARD")

    entries = build(recorded(connections=[page, wired]))["connections"]

    assert [entry["type"] for entry in entries] == ["websocket", "nats"]


def test_who_it_is_is_shown_only_when_asked_for():
    source = recorded(connections=[connection(1, user="ada", account="A"), connection(2, user="bob")])

    plain = build(source)["connections"]
    with_auth = build(source, auth=True)["connections"]

    assert all("authorized_user" not in entry and "account" not in entry for entry in plain)
    assert [entry.get("authorized_user") for entry in with_auth] == ["ada", "bob"]
    assert [entry.get("account") for entry in with_auth] == ["A", None]
    assert [entry.get("name_tag") for entry in with_auth] == ["A", "$G"]


def test_closed_connections_say_when_and_why():
    gone = closed(3, reason="Stale Connection", last_activity_unix_ns=STARTED_NS + 60 * SECOND_NS)

    page = build(recorded(connections=[connection(4)], closed_connections=[gone]), state=CLOSED)

    entry = page["connections"][0]
    assert (page["total"], ids(page)) == (1, [3])
    assert (entry["stop"], entry["reason"]) == ("2023-11-14T22:15:00Z", "Stale Connection")
    assert (entry["uptime"], entry["idle"]) == ("1m37s", "40s")


def test_all_states_come_together():
    page = build(recorded(connections=[connection(1), connection(4)], closed_connections=[closed(2)]), state=ALL)

    assert (page["total"], page["num_connections"], ids(page)) == (3, 3, [1, 2, 4])


def test_pages_are_cut_by_offset_and_limit():
    source = recorded(connections=[connection(number) for number in range(1, 8)])

    page = build(source, offset=2, limit=3)

    assert (page["total"], page["num_connections"], page["offset"], page["limit"]) == (7, 3, 2, 3)
    assert ids(page) == [3, 4, 5]


@pytest.mark.parametrize(("offset", "limit"), [(-1, -1), (0, 0), (-(2**63), 2**63 - 1)])
def test_numbers_without_sense_mean_the_defaults(offset, limit):
    page = build(recorded(connections=[connection(1)]), offset=offset, limit=limit)

    assert page["offset"] == 0
    assert page["limit"] == (limit if limit > 0 else 1024)
    assert ids(page) == [1]


def test_offset_behind_the_end_leaves_nothing():
    page = build(recorded(connections=[connection(1)]), offset=2**63 - 1, limit=2**63 - 1)

    assert (page["num_connections"], page["total"], page["connections"]) == (0, 1, [])


def test_one_connection_is_found_by_its_id():
    source = recorded(connections=[connection(1), connection(2)], closed_connections=[closed(3)])

    assert ids(build(source, cid=2)) == [2]
    assert build(source, cid=2)["limit"] == 1
    assert ids(build(source, cid=3)) == []
    assert ids(build(source, cid=3, state=ALL)) == [3]
    assert ids(build(source, cid=3, state=CLOSED)) == [3]


SORTED = {
    "": [1, 2, 3],
    "cid": [1, 2, 3],
    "start": [1, 2, 3],
    "subs": [2, 3, 1],
    "pending": [3, 1, 2],
    "msgs_to": [1, 2, 3],
    "msgs_from": [3, 2, 1],
    "bytes_to": [2, 1, 3],
    "bytes_from": [3, 1, 2],
    "last": [2, 3, 1],
    "idle": [1, 3, 2],
    "uptime": [3, 2, 1],
    "rtt": [3, 2, 1],
}


@pytest.mark.parametrize(("word", "expected"), SORTED.items())
def test_connections_are_sorted_by_every_word(word, expected):
    def fields(subscriptions, pending, round_trip, active_s, *counts):
        return {
            "subscriptions": subscriptions,
            "pending_bytes": pending,
            "round_trip_ns": round_trip,
            "last_activity_unix_ns": STARTED_NS + active_s * SECOND_NS,
            "traffic": traffic(*counts),
        }

    source = recorded(
        connections=[
            connection(3, **fields(2, 9, 30, 200, 9, 9, 1, 1)),
            connection(1, **fields(1, 5, 10, 100, 1, 8, 9, 5)),
            connection(2, **fields(3, 1, 20, 300, 5, 7, 8, 9)),
        ]
    )

    assert ids(build(source, sort=word)) == expected


def test_closed_connections_are_sorted_by_end_and_reason():
    source = recorded(
        closed_connections=[
            closed(1, stopped_unix_ns=NOW_NS - 3, reason="Stale Connection"),
            closed(2, stopped_unix_ns=NOW_NS - 1, reason="Client Closed"),
            closed(3, stopped_unix_ns=NOW_NS - 2, reason="Read Error"),
        ]
    )

    assert ids(build(source, sort="stop", state=CLOSED)) == [2, 3, 1]
    assert ids(build(source, sort="reason", state=CLOSED)) == [2, 3, 1]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sort": "bogus"}, "invalid sorting option: bogus"),
        ({"sort": "stop"}, "sort by stop only valid on closed connections"),
        ({"sort": "reason", "state": ALL}, "sort by reason only valid on closed connections"),
        ({"filter_subject": "a"}, "filter by subject only valid with account filtering"),
    ],
)
def test_what_makes_no_sense_is_refused_in_the_words_of_nats_server(options, text):
    with pytest.raises(RefusedError) as refusal:
        build(recorded(), **options)

    assert str(refusal.value) == text


def test_users_and_accounts_are_filtered():
    source = recorded(
        connections=[connection(1, account="A", user="ada"), connection(2, account="B", user="ada"), connection(3)],
        closed_connections=[closed(4, account="A", user="bob")],
    )

    assert ids(build(source, acc="A", state=ALL)) == [1, 4]
    assert build(source, acc="A", state=ALL)["total"] == 2
    assert ids(build(source, user="ada")) == [1, 2]
    assert ids(build(source, user="nobody")) == []
    assert build(source, acc="nowhere")["connections"] == []


def test_the_filter_by_account_holds_for_an_id_too():
    source = recorded(connections=[connection(1, account="A"), connection(2, account="B")])

    assert ids(build(source, acc="A", cid=2)) == []


def test_nobody_is_an_mqtt_client():
    assert ids(build(recorded(connections=[connection(1)]), mqtt_client="x")) == []


def test_connections_are_filtered_by_interest():
    engine = RecordedEngine(
        connections=[connection(1, account="A"), connection(2, account="A")],
        subscription_list=[subscription("a.*", connection_id=1), subscription("b", connection_id=2)],
    )

    page = build(source_of(engine), acc="A", filter_subject="a.b")

    assert ids(page) == [1]
    assert engine.queries == [{"account": "A"}]


def test_subscriptions_are_asked_for_only_for_the_connections_shown():
    engine = RecordedEngine(
        connections=[connection(1), connection(2), connection(3)],
        closed_connections=[closed(4, last_subscriptions=[subscription("gone", connection_id=4)])],
        subscription_list=[subscription("b", connection_id=2), subscription("c", sid="2", connection_id=2)],
    )

    page = build(source_of(engine), subscriptions=True, state=ALL, offset=1)

    assert engine.queries == [{"connection_ids": [2, 3]}]
    assert [entry.get("subscriptions_list") for entry in page["connections"]] == [["b", "c"], None, ["gone"]]


def test_details_of_subscriptions_do_not_repeat_the_account():
    engine = RecordedEngine(
        connections=[connection(1)],
        subscription_list=[subscription("x.*", queue="q", delivered=3, delivered_max=5)],
    )

    page = build(source_of(engine), subscriptions_detail=True)

    detail = {"subject": "x.*", "qgroup": "q", "sid": "1", "msgs": 3, "max": 5, "cid": 1}
    assert page["connections"][0]["subscriptions_list_detail"] == [detail]


def test_parameters_become_options():
    words = {
        "sort": "subs",
        "auth": "1",
        "subs": "detail",
        "offset": "2",
        "limit": "3",
        "cid": "4",
        "state": "ANY",
        "user": "ada",
        "acc": "A",
        "mqtt_client": "m",
    }

    options = connz.options_of(QueryParameters(words))

    assert options == ConnzOptions(
        sort="subs",
        auth=True,
        subscriptions_detail=True,
        offset=2,
        limit=3,
        cid=4,
        state=ALL,
        user="ada",
        acc="A",
        mqtt_client="m",
    )


def test_unknown_state_is_refused():
    with pytest.raises(RefusedError, match=r"^Error decoding state for foo$"):
        connz.options_of(QueryParameters({"state": "foo"}))
