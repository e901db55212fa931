"""From subjects to endpoints. That answers are nats-server's, byte by byte, is tested against it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.dispatch import api_subject
from tests.management.api_cases import NAMED, SILENT, TWICE_NAMED
from tests.management.api_twin import SETTINGS, ApiTwin

WORDS = sorted({word for subject in (*NAMED, *TWICE_NAMED, *SILENT, "INFO") for word in subject.split(".")})


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=3), min_size=1, max_size=6), st.binary(max_size=30))
def test_whatever_is_asked_our_code_does_not_break(tokens, body):
    api = ApiTwin()

    api.request(".".join(tokens).replace("$", ""), body)

    assert api.warnings == []


@pytest.mark.parametrize("subject", SILENT)
def test_subjects_without_an_endpoint_get_no_answer(subject):
    assert ApiTwin().request(subject) is None


@pytest.mark.parametrize(
    ("subject", "domain", "expected"),
    [
        ("$JS.API.INFO", "", "$JS.API.INFO"),
        ("$JS.hub.API.INFO", "hub", "$JS.API.INFO"),
        ("$JS.other.API.INFO", "hub", None),
        ("$JS..API.INFO", "", None),
        ("$JS.API", "", None),
    ],
)
def test_domain_is_only_another_way_to_the_same_subject(subject, domain, expected):
    assert api_subject(subject, domain) == expected


def test_panic_of_the_engine_is_answered_and_logged():
    class PanicError(BaseException):
        """What a panic is in Python: no ordinary exception."""

    def panic(*_arguments: object) -> int:
        raise PanicError

    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S"})
    api.engine.purge_stream = panic

    assert api.error("STREAM.PURGE.S").startswith("10051 the server failed to answer; this is a bug")
    assert "PanicError" in api.warnings[0]


def test_bug_in_an_endpoint_is_answered_and_logged():
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S"})
    api.engine.stream_state = lambda *_arguments: b"nonsense"

    assert api.error("STREAM.INFO.S").startswith("10051 the server failed to answer; this is a bug")
    assert "Traceback" in api.warnings[0]


def test_direct_get_is_left_to_the_stream_that_answers_it():
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S", "allow_direct": True})
    api.ask("STREAM.CREATE.T", {"name": "T"})

    assert api.request("DIRECT.GET.S", b'{"seq":1}') is None
    assert api.request("DIRECT.GET.S.a.b") is None
    api.manager.update(msgspec.structs.replace(SETTINGS, domain="hub"))
    api.request("$JS.hub.API.DIRECT.GET.S", b'{"seq":1}')
    assert api.engine.asked == [("$JS.API.DIRECT.GET.S", b'{"seq":1}')]
    assert api.request("DIRECT.GET.T.a") == b"NATS/1.0 503\r\nNats-Subject: $JS.API.DIRECT.GET.T.a\r\n\r\n"
    assert api.request("DIRECT.GET") == b"NATS/1.0 503\r\nNats-Subject: $JS.API.DIRECT.GET\r\n\r\n"


def test_system_account_deletes_what_another_account_has_stored():
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S"})
    api.ask("STREAM.CREATE.T", {"name": "T"})

    answer = api.ask("ACCOUNT.PURGE.$G", account="$SYS")

    assert answer == {"type": "io.nats.jetstream.api.v1.account_purge_response", "initiated": True}
    assert api.ask("STREAM.NAMES")["streams"] is None
    assert api.engine.streams == {}


def test_pull_is_left_to_the_consumer_and_handed_to_it_where_it_names_the_domain():
    api = ApiTwin(msgspec.structs.replace(SETTINGS, domain="hub"))
    api.ask("STREAM.CREATE.S", {"name": "S"})
    api.ask("CONSUMER.CREATE.S.C", {"stream_name": "S", "config": {"ack_policy": "explicit"}})

    assert api.request("CONSUMER.MSG.NEXT.S.C", b"1") is None
    api.request("$JS.hub.API.CONSUMER.MSG.NEXT.S.C", b"1")
    assert api.engine.asked == [("$JS.API.CONSUMER.MSG.NEXT.S.C", b"1")]
    assert (api.request("CONSUMER.MSG.NEXT.S.NOPE") or b"").startswith(b"NATS/1.0 503")
