"""The output document: exactly as the document of the adapter prints it."""

import json

import pytest

from jetlake.choria.documents import document_of, encode, message_id_of, output_protocol
from jetlake.choria.envelopes import EnvelopeError, Received
from jetlake.client.schemas import problems, read
from tests.seeds.transcript import DOCUMENTS

RECEIVED = Received(
    data="...the data received exactly as it was received....",
    sender="web1.ldn.example.net",
    time="2018-03-03T14:49:17Z",
    request_id="b1946ac92492d2347c6235b4d2611184",
)


def printed_document():
    text = (DOCUMENTS / "choria_jetstream.md").read_text()
    return json.loads(text.partition("```json\n")[2].partition("```")[0])


def test_the_document_is_the_one_that_is_printed():
    made = json.loads(encode(RECEIVED, output_protocol("jetstream")))

    # The schema requires a field more than is printed.
    assert made.pop("requestid") == RECEIVED.request_id
    assert made == printed_document()
    assert list(made) == list(printed_document())


@pytest.mark.parametrize("kind", ["jetstream", "choria_streams"])
def test_the_document_fits_its_schema(kind):
    document = json.loads(encode(RECEIVED, output_protocol(kind)))

    assert list(problems(document, read(f"choria.adapters.{kind}.v1.output"))) == []


def test_the_data_is_repeated_exactly():
    data = 'quotes " and \\ and \n and \u2028 and \x00 and 🐎'

    received = Received(data, "n", RECEIVED.time, RECEIVED.request_id)

    assert json.loads(encode(received, "p"))["data"] == data


def test_half_a_surrogate_pair_is_refused():
    with pytest.raises(EnvelopeError):
        encode(Received("\ud800", "n", RECEIVED.time, "1"), "p")


def test_replies_of_two_nodes_to_one_request_have_different_ids():
    other = Received(RECEIVED.data, "web2.ldn.example.net", RECEIVED.time, RECEIVED.request_id)

    assert message_id_of(RECEIVED) != message_id_of(other)
    assert document_of(RECEIVED, "p").requestid == document_of(other, "p").requestid
