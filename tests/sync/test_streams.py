"""JetStream without asyncio: publish with acknowledgement, read, consume."""

import itertools

import pytest

import jetlake
from jetlake.sync import Stored

_numbers = itertools.count(1)


@pytest.fixture
def stream(client):
    name = f"S{next(_numbers)}"
    yield client.streams.create(name, subjects=[f"{name}.>"])
    client.streams.open(name).delete()


def test_stored_message_is_acknowledged_and_read(client, stream):
    name = stream.name

    assert stream.publish(f"{name}.a", {"id": 1}) == Stored(name, 1)
    assert client.streams.publish(f"{name}.b", b"two", headers={"K": "v"}) == Stored(name, 2)

    first, second = stream.messages()
    assert (first.sequence, first.json()) == (1, {"id": 1})
    assert (second.sequence, second.headers["K"]) == (2, "v")
    assert stream.count() == 2


def test_message_id_is_stored_once(stream):
    subject = f"{stream.name}.a"

    assert stream.publish(subject, message_id="x") == Stored(stream.name, 1)
    assert stream.publish(subject, message_id="x") == Stored(stream.name, 1, duplicate=True)


def test_reading_is_narrowed(stream):
    for number in range(6):
        stream.publish(f"{stream.name}.{number % 2}", str(number))

    assert [message.text() for message in stream.messages(start_sequence=4)] == ["3", "4", "5"]
    assert [message.text() for message in stream.messages(subjects=[f"{stream.name}.1"])] == ["1", "3", "5"]
    assert [message.text() for message in stream.messages(limit=2)] == ["0", "1"]


def test_consumer_remembers_what_was_acknowledged(stream):
    for number in range(3):
        stream.publish(f"{stream.name}.a", str(number))
    worker = stream.consumer("worker")

    first, second = worker.fetch(2)
    first.ack()
    second.term()

    again = stream.consumer("worker")
    assert [message.text() for message in again.fetch(5, timeout_s=0)] == ["2"]
    assert again.fetch(1, timeout_s=0) == []
    assert again.info()["ack_floor"]["stream_seq"] == 2
    worker.delete()


def test_consumer_that_exists_keeps_its_configuration(stream):
    subject = f"{stream.name}.paid"
    made = stream.consumer("billing", filter_subject=subject, max_deliver=5).info()["config"]

    opened = stream.consumer("billing").info()["config"]
    again = stream.consumer("billing", filter_subject=subject, max_deliver=5).info()["config"]

    assert (made["filter_subject"], made["max_deliver"]) == (subject, 5)
    assert opened == again == made


def test_consumer_that_exists_with_another_configuration_is_refused(stream):
    made = stream.consumer("billing", max_deliver=5)

    with pytest.raises(
        jetlake.ApiError, match=rf"consumer billing of stream {stream.name} exists with another"
    ) as told:
        stream.consumer("billing", max_deliver=6)

    assert told.value.error_code == 10148
    assert "`consumer('billing')` opens it as it is" in str(told.value)
    assert f"`jetlake consumer edit {stream.name} billing` changes it" in str(told.value)
    assert made.info()["config"]["max_deliver"] == 5


def test_consumer_of_a_stream_that_is_gone_is_refused(client):
    gone = client.streams.create("GONE", subjects=["gone"])
    gone.delete()

    for config in ({}, {"max_deliver": 5}):
        with pytest.raises(jetlake.ApiError, match="stream not found"):
            gone.consumer("worker", **config)


def test_empty_message_with_a_header_named_status_is_read_like_any_other(stream):
    subject = f"{stream.name}.a"
    for status in ("shipped", "404", "503"):
        stream.publish(subject, headers={"Status": status})
    stream.publish(subject, "last")

    assert [message.headers.get("Status") for message in stream.messages()] == ["shipped", "404", "503", None]
    fetched = stream.consumer("worker").fetch(4, timeout_s=0)
    assert [message.headers.get("Status") for message in fetched] == ["shipped", "404", "503", None]


def test_refused_message_is_delivered_again(stream):
    stream.publish(f"{stream.name}.a", "once more")
    worker = stream.consumer("worker")
    (message,) = worker.fetch()
    message.in_progress()
    message.nak()

    assert worker.fetch()[0].text() == "once more"


def test_purge_and_names(client, stream):
    stream.publish(f"{stream.name}.a")
    stream.publish(f"{stream.name}.b")

    assert stream.purge(subject=f"{stream.name}.a") == 1
    assert stream.purge() == 1
    assert stream.name in client.streams.names()


def test_refusals_are_api_errors(client, stream):
    with pytest.raises(jetlake.ApiError, match="overlap") as overlap:
        client.streams.create("OTHER", subjects=[f"{stream.name}.a"])
    assert overlap.value.error_code == 10065
    with pytest.raises(jetlake.NotFoundError, match=rf"No stream NOPE\. Existing streams: .*{stream.name}"):
        client.streams.open("NOPE")
    with pytest.raises(jetlake.ApiError, match="durable name"):
        stream.consumer("worker", durable_name="other")


def test_subject_without_a_stream_says_what_to_do(client):
    with pytest.raises(jetlake.ClientError, match=r"no stream is listening on subject 'oops\.x'"):
        client.streams.publish("oops.x")


def test_subject_of_another_stream_is_named(client, stream):
    other = client.streams.create("ELSEWHERE", subjects=["elsewhere"])

    with pytest.raises(jetlake.ClientError, match="belongs to stream ELSEWHERE"):
        stream.publish("elsewhere")
    other.delete()
