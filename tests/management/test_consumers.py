"""Consumers, of which there are none."""

import pytest

from tests.management.api_twin import ApiTwin


@pytest.mark.parametrize("subject", ["CREATE.S", "CREATE.S.C", "CREATE.S.C.a.b", "DURABLE.CREATE.S.C"])
def test_consumer_is_refused_in_words(subject):
    api = ApiTwin()
    api.ask("STREAM.CREATE.S", {"name": "S"})

    error = api.ask(f"CONSUMER.{subject}", {"stream_name": "S", "config": {"ack_policy": "explicit"}})["error"]

    assert error == {
        "code": 500,
        "err_code": 10012,
        "description": "consumers are not served yet by this version of Jetlake",
    }


def test_stream_of_a_consumer_must_be_there_and_be_the_one_in_the_subject():
    api = ApiTwin()

    assert api.error("CONSUMER.CREATE.S", {"stream_name": "S"}) == "10059 stream not found"
    assert api.error("CONSUMER.CREATE.S", {"stream_name": "T"}).startswith("10056")
    assert api.error("CONSUMER.CREATE.S", b"x").startswith("10025")
