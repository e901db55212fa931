"""`/healthz` from recorded facts."""

import pytest

from jetlake.monitoring import healthz, jsz
from jetlake.monitoring.healthz import HealthzOptions
from jetlake.monitoring.jsz import AccountUsage
from jetlake.monitoring.parameters import QueryParameters
from tests.monitoring.recorded import JETSTREAM, as_json, recorded

USAGES = [AccountUsage(name="A", streams=({"name": "ORDERS", "consumer_detail": lambda: [{"name": "SHIPPING"}]},))]

OFFLINE = [*USAGES, AccountUsage(name="B", offline=("LOST", "TORN")), AccountUsage(name="C")]
"""Account B has two streams that could not be opened."""


@pytest.fixture
def with_streams(monkeypatch):
    """A server with JetStream on which account A has a stream with a consumer."""
    monkeypatch.setattr(jsz, "account_usages", lambda _: USAGES)
    return recorded(facts={"jetstream": JETSTREAM})


@pytest.fixture
def with_offline(monkeypatch):
    """The same, and another account on which streams could not be opened."""
    monkeypatch.setattr(jsz, "account_usages", lambda _: OFFLINE)
    return recorded(facts={"jetstream": JETSTREAM})


def not_recovered(stream):
    return f"JetStream stream 'B > {stream}' could not be recovered"


def examine(source, **options):
    return as_json(healthz.build(source, HealthzOptions(**options)))


def test_a_server_that_takes_clients_is_well():
    assert examine(recorded()) == {"status": "ok", "status_code": 200}
    assert examine(recorded(), details=True) == {"status": "ok", "status_code": 200}


def test_a_server_that_is_leaving_is_not():
    leaving = recorded(facts={"accepts_clients": False})
    text = "failed to be ready for connections after 1ms: server"

    assert examine(leaving) == {"status": "error", "status_code": 500, "error": text}
    assert examine(leaving, details=True) == {
        "status": "error",
        "status_code": 500,
        "errors": [{"type": "CONNECTION", "error": text}],
    }


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"stream": "S"}, '"account" must not be empty when checking stream health'),
        ({"consumer": "C"}, '"stream" must not be empty when checking consumer health'),
        ({"account": "A", "consumer": "C"}, '"stream" must not be empty when checking consumer health'),
    ],
)
def test_questions_without_sense_are_the_askers_mistake(options, text):
    assert examine(recorded(), **options) == {"status": "error", "status_code": 400, "error": text}
    assert examine(recorded(), **options, details=True)["errors"] == [{"type": "BAD_REQUEST", "error": text}]


def test_nothing_is_looked_for_while_jetstream_is_off():
    assert examine(recorded(), account="A", stream="S", consumer="C")["status"] == "ok"


@pytest.mark.parametrize("shortcut", ["js_enabled", "js_enabled_only", "js_server_only"])
def test_a_check_of_the_server_only_looks_for_nothing_else(with_streams, shortcut):
    assert examine(with_streams, account="nowhere", **{shortcut: True})["status"] == "ok"


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"account": "X"}, "ACCOUNT", 'JetStream account "X" not found'),
        ({"account": "A", "stream": "X"}, "STREAM", 'JetStream stream "X" not found on account "A"'),
        (
            {"account": "A", "stream": "ORDERS", "consumer": "X"},
            "CONSUMER",
            'JetStream consumer "X" not found for stream "ORDERS" on account "A"',
        ),
    ],
)
def test_what_is_not_there_is_named(with_streams, options, kind, text):
    assert examine(with_streams, **options) == {"status": "unavailable", "status_code": 404, "error": text}
    assert examine(with_streams, **options, details=True) == {
        "status": "error",
        "status_code": 404,
        "errors": [{"type": kind, **options, "error": text}],
    }


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"js_meta_only": True},
        {"account": "B"},
        {"account": "B", "stream": "LOST"},
        {"account": "B", "stream": "LOST", "consumer": "X"},
    ],
)
def test_a_stream_that_could_not_be_opened_makes_the_server_unavailable(with_offline, options):
    answer = examine(with_offline, **options)

    assert answer == {"status": "unavailable", "status_code": 503, "error": not_recovered("LOST")}


def test_details_name_every_stream_that_could_not_be_opened(with_offline):
    errors = [
        {"type": "STREAM", "account": "B", "stream": stream, "error": not_recovered(stream)}
        for stream in ("LOST", "TORN")
    ]

    assert examine(with_offline, details=True) == {"status": "error", "status_code": 503, "errors": errors}
    assert examine(with_offline, details=True, account="B", stream="TORN")["errors"] == errors[1:]


@pytest.mark.parametrize(
    "options", [{"js_enabled": True}, {"js_enabled_only": True}, {"js_server_only": True}, {"account": "A"}]
)
def test_who_does_not_ask_about_such_streams_hears_that_all_is_well(with_offline, options):
    assert examine(with_offline, **options) == {"status": "ok", "status_code": 200}


def test_an_account_with_nothing_stored_is_not_there(with_offline):
    assert examine(with_offline, account="C")["error"] == 'JetStream account "C" not found'
    assert examine(with_offline, account="B", stream="X")["status_code"] == 404


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_what_is_there_is_well(with_streams, depth):
    place = [("account", "A"), ("stream", "ORDERS"), ("consumer", "SHIPPING")]

    assert examine(with_streams, **dict(place[:depth]))["status"] == "ok"


def test_parameters_become_options():
    switches = dict.fromkeys(["js-enabled", "js-enabled-only", "js-server-only", "js-meta-only", "details"], "true")

    options = healthz.options_of(QueryParameters({**switches, "account": "A", "stream": "S", "consumer": "C"}))

    assert options == HealthzOptions(
        js_enabled=True,
        js_enabled_only=True,
        js_server_only=True,
        js_meta_only=True,
        details=True,
        account="A",
        stream="S",
        consumer="C",
    )
