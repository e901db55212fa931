"""Decoders: Python objects that make the column `value`, before Spark sees the rows."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.spark.decoders import load_decoder

pytestmark = pytest.mark.spark

DECODER = "jetlake.devices.columns:EVENTS"


@pytest.fixture
def events(shore):
    """A stream with two events of a device and a message that is none; its name and the events."""
    samples = pytest.importorskip("tests.devices.samples", reason="the extra `devices` is not installed")
    from jetlake.devices.codec import EventCodec
    from jetlake.devices.protos.events_2025_pb2 import Content

    stream = shore.create(subjects=["events.>"])
    content = Content(data=b'{"on":true}', content_type="application/json")
    made = [
        samples.event("resourcechanged", samples.D1, "/light/1", version=version, content=content) for version in (0, 1)
    ]
    for message in made:
        subject, payload, *_ = EventCodec().encode(message)
        shore.publish(subject, payload)
    shore.publish(f"events.{samples.D1}.metadata.devicemetadataupdated", b"garbage")
    yield stream
    shore.streams.ask(f"STREAM.DELETE.{stream}")


def read(spark, shore, stream, **options):
    return spark.read.format("jetlake").options(url=shore.url, stream=stream, decoder=DECODER, **options)


def test_every_field_of_the_decoder_is_in_the_column_value(spark, shore, events):
    rows = read(spark, shore, events).load().orderBy("sequence").select("sequence", "value.*").collect()

    assert [(row.sequence, row.version, row.content_json) for row in rows] == [
        (1, 0, '{"on":true}'),
        (2, 1, '{"on":true}'),
        (3, -1, None),
    ]
    assert "not protobuf" in rows[2].reason
    assert rows[2].payload == b"garbage"


def test_a_schema_takes_some_columns_and_some_fields(spark, shore, events):
    schema = "value STRUCT<href: STRING, reason: STRING>, sequence BIGINT"

    rows = read(spark, shore, events).schema(schema).load().orderBy("sequence").collect()

    assert [row.value.href for row in rows] == ["/light/1", "/light/1", ""]
    assert rows[0].__fields__ == ["value", "sequence"]


def test_value_schema_chooses_among_the_fields(spark, shore, events):
    rows = read(spark, shore, events, valueSchema="version BIGINT").load().orderBy("sequence").collect()

    assert [row.value.asDict() for row in rows] == [{"version": 0}, {"version": 1}, {"version": -1}]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("jetlake.devices.columns", "write module:NAME"),
        (":EVENTS", "write module:NAME"),
        ("jetlake.no_such_module:X", "cannot be imported"),
        ("jetlake.spark.decoders:INPUTS", "is not a decoder"),
        ("jetlake.spark.decoders:NOTHING", "is not a decoder"),
    ],
)
def test_what_is_no_decoder_is_refused_with_what_to_do(path, problem):
    with pytest.raises(ConfigurationError, match=problem):
        load_decoder(path)
