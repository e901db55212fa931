"""The pipeline `adapter`: the documents that the adapter in a process makes, on a stream and in a table, each once."""

import json

import pytest

from jetlake.adapters.conversion import Converter
from jetlake.adapters.options import AdapterOptions, IngestOptions, StreamOptions
from jetlake.choria.envelopes import make_request
from jetlake.errors import ConfigurationError
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import catalog
from jetlake.spark.pipelines.adapter import document
from jetlake.spark.pipelines.runner import Runner

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

PROTOCOL = "choria:adapters:jetstream:output:1"


def request(number, sender="web1.ldn.example.net"):
    return make_request(f"body {number}", sender=sender, request_id=f"{number:032}", time_s=1_767_225_600 + number)


def test_a_document_is_what_the_adapter_in_a_process_publishes():
    options = AdapterOptions(
        name="node_data",
        kind="jetstream",
        stream=StreamOptions(topic="choria.node_metadata.%s"),
        ingest=IngestOptions(topic="choria.discovery", protocol="request"),
    )
    payload = request(7, sender="odd name*.ldn")
    (published,), reasons = Converter(options).convert([(b"choria.discovery", b"", b"", payload)])

    subject, body, message_id, *_, reason = document(payload, "request", PROTOCOL, "choria.node_metadata.%s")

    assert (reasons, reason) == ([], None)
    assert (published.subject, published.body) == (subject.encode(), body)
    assert f"Nats-Msg-Id: {message_id}\r\n".encode() in published.headers


def test_what_cannot_be_read_says_why():
    assert document(b"{}", "request", PROTOCOL, "t")[-1].startswith("not a transport")
    assert document(request(1), "reply", PROTOCOL, "t")[-1].startswith("not a secure reply")
    assert document(None, "request", PROTOCOL, "t")[-1].startswith("not a transport")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"protocol": "raw"}, "protocol is 'raw'; use request or reply"),
        ({"type": "nats_stream"}, "type is 'nats_stream'; use jetstream or choria_streams"),
        ({"topic": "choria..x"}, "is not a subject to publish to"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigurationError, match=message):
        catalog.shipped("adapter", "adapter", settings)


def test_requests_become_documents_on_a_stream_and_in_a_table_each_once(spark, shore, tmp_path):
    raw, output = shore.create(), shore.create()
    for payload in [*map(request, range(20)), b"no request"]:
        shore.publish(f"{raw}.discovery", payload)
    settings = {"stream": raw, "subjects": f"{raw}.>", "output": output, "topic": f"{output}.documents"}
    lake = Lake(tmp_path / "lake")

    for _ in range(2):
        pipeline = catalog.shipped("adapter", "adapter", settings)
        (state,) = Runner(spark, lake, shore.url, once=True).run([pipeline])
        assert (state.state, state.error) == ("finished", "")

    rows = lake.existing("node_metadata").to_arrow().to_pylist()
    read = spark.read.format("jetlake").options(url=shore.url, stream=output).load()
    messages = [row.data for row in read.orderBy("sequence").collect()]
    bad = lake.existing("adapter_bad").to_arrow().to_pylist()
    assert sorted(row["data"] for row in rows) == sorted(f"body {number}" for number in range(20))
    assert sorted(json.loads(each)["requestid"] for each in messages) == [f"{number:032}" for number in range(20)]
    assert json.loads(messages[0])["time"].startswith("2026-01-01T00:00:")
    assert [(row["sequence"], row["data"]) for row in bad] == [(21, b"no request")]
