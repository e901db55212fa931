"""Get and delete of one message, as far as the engine leaves them to us."""

import pytest

from tests.management.api_twin import ApiTwin

GET = "STREAM.MSG.GET.S"


@pytest.fixture
def api() -> ApiTwin:
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S", "subjects": ["s.>"]})
    api.publish("S", "s.a")
    return api


@pytest.mark.parametrize(
    ("odd", "plain"),
    [
        (b'{"SEQ":7}', b'{"seq":7}'),
        (b'{"seq":1}{"seq":7}', b'{"seq":7}'),
        (b'{"seq":7,"multi_last":["x"],"up_to_seq":9}', b'{"seq":7}'),
        (b'{"last_by_subj":"s.>","no_hdr":true}', b'{"last_by_subj":"s.\\u003e","no_hdr":true}'),
        (b'{"next_by_subj":"s.a","seq":7}', b'{"seq":7,"next_by_subj":"s.a"}'),
        (
            b'{"next_by_subj":"s.a","start_time":"2020-01-01T00:00:00+02:00"}',
            b'{"next_by_subj":"s.a","start_time":"2020-01-01T00:00:00+02:00"}',
        ),
    ],
)
def test_odd_request_is_put_plainly_and_handed_back_to_the_engine(api, odd, plain):
    api.request(GET, odd)

    assert api.engine.asked == [("$JS.API.STREAM.MSG.GET.S", plain)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"seq":0}',
        b'{"seq":1,"last_by_subj":"x"}',
        b'{"seq":1,"start_time":"2020-01-01T00:00:00Z"}',
        b'{"last_by_subj":"x","start_time":"2020-01-01T00:00:00Z"}',
        b'{"last_by_subj":"x","next_by_subj":"x"}',
        b'{"seq":1,"batch":1}',
        b'{"seq":1,"max_bytes":1}',
        b'{"multi_last":["x"]}',
    ],
)
def test_request_that_means_no_message_or_two_is_refused(api, body):
    assert api.error(GET, body) == "10003 bad request"
    assert api.engine.asked == []


def test_handed_back_request_is_neither_counted_nor_told(api):
    api.engine.interest.add("$JS.EVENT.ADVISORY.API")
    before = api.ask("INFO")["api"]["total"]
    told = len(api.engine.published)

    api.request(GET, b'{"SEQ":7}')

    assert len(api.engine.published) == told + 1
    assert api.ask("INFO")["api"]["total"] == before + 1


def test_message_is_deleted_once(api):
    assert api.ask("STREAM.MSG.DELETE.S", {"seq": 1})["success"]
    assert api.error("STREAM.MSG.DELETE.S", {"seq": 1}) == "10057 no message found"
    assert api.error("STREAM.MSG.DELETE.S", {"seq": 2}) == "10057 stream store EOF"


def test_delete_of_a_message_that_is_not_there_is_no_error_in_the_figures(api):
    before = api.ask("INFO")["api"]

    api.error("STREAM.MSG.DELETE.S", {"seq": 9})

    after = api.ask("INFO")["api"]
    assert (after["total"], after["errors"]) == (before["total"] + 2, before["errors"])
