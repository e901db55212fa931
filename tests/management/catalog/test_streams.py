"""The catalog: what is on disk comes back, and what cannot be served is left alone."""

import json

import pytest

from jetlake._engine import EngineError
from jetlake.management.catalog.streams import StoreOptions, StreamCatalog
from jetlake.management.streams.config import StreamConfig
from jetlake.management.wire.error_codes import RequestError as ApiError
from tests.effort import calls_during
from tests.management.api_twin import SETTINGS, ApiTwin
from tests.management.engine_twin import EngineTwin


def stored(*names: str, **config: object) -> list[tuple[str, str, bytes]]:
    return [
        ("$G", name, json.dumps({"account": "$G", "config": {"name": name, **config}, "created": "then"}).encode())
        for name in names
    ]


def test_streams_on_disk_are_opened_and_findings_are_told():
    api = ApiTwin(engine=EngineTwin(stored("S", "T")))

    assert api.ask("STREAM.NAMES")["streams"] == ["S", "T"]
    assert api.ask("STREAM.INFO.S")["created"] == "then"
    assert api.findings == [
        "Stream '$G > S': 17 bytes that were never acknowledged are cut off",
        "Stream '$G > T': 17 bytes that were never acknowledged are cut off",
    ]


def test_definition_that_is_kept_is_the_one_that_is_read_again():
    api = ApiTwin()
    before = api.ask(
        "STREAM.CREATE.S", {"name": "S", "subjects": ["s.<&>"], "description": "é\u2028", "max_age": 10**9}
    )
    definition = api.engine.streams["$G", "S"].definition

    after = ApiTwin(engine=EngineTwin([("$G", "S", definition)])).ask("STREAM.INFO.S")

    assert after["config"] == before["config"]
    assert after["created"] == before["created"]


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        (b"{", "its definition cannot be read: Input data was truncated"),
        (b"\xff", "its definition cannot be read:"),
        (
            b'{"config":{"name":"S","feature_of_tomorrow":1},"created":""}',
            "its definition cannot be read: invalid JSON",
        ),
        (b'{"config":{"name":"T"},"created":""}', "its definition is that of 'T'"),
        (
            b'{"config":{"name":"S","metadata":{"_nats.req.level":"6"}},"created":""}',
            "it needs API level 6, this server has 5",
        ),
    ],
)
def test_stream_that_cannot_be_served_is_offline_and_its_name_is_taken(definition, reason):
    api = ApiTwin(engine=EngineTwin([("$G", "S", definition), *stored("T")]))

    (line,) = [line for line in api.findings if "offline" in line]
    assert line.startswith("Stream '$G > S' is offline, its files stay as they are: ")
    assert reason in line
    for subject, body in (("CREATE", b'{"name":"S"}'), ("UPDATE", b'{"name":"S"}'), ("INFO", b""), ("DELETE", b"")):
        assert api.error(f"STREAM.{subject}.S", body).startswith(f"10194 stream is offline: {reason}")
    listed = api.ask("STREAM.LIST")
    assert [stream["config"]["name"] for stream in listed["streams"]] == ["T"]
    assert listed["missing"] == ["S"]
    assert reason in listed["offline"]["S"]


def test_stream_whose_files_cannot_be_opened_is_offline():
    engine = EngineTwin(stored("S"))
    catalog = StreamCatalog(engine)

    def refuse(*_arguments: object) -> list[str]:
        raise EngineError("store", "permission denied: give the server access to its folder")

    engine.open_stream = refuse
    (line,) = catalog.open("store", StoreOptions())

    assert "permission denied" in line
    with pytest.raises(ApiError, match="stream is offline: permission denied"):
        catalog.find("$G", "S")


def test_all_streams_are_opened_before_the_consumers_of_any():
    engine = EngineTwin(stored("S", "T"))
    opened: list[set[str]] = []

    def note(*_arguments: object) -> list[bytes]:
        opened.append({name for _, name in engine.streams})
        return []

    engine.stored_consumers = note
    StreamCatalog(engine).open("store", StoreOptions())

    # What nobody needs is removed with the consumers, and a stream that comes later may need it.
    assert opened == [{"S", "T"}, {"S", "T"}]


def test_folder_that_cannot_be_opened_at_all_is_an_error_of_the_start():
    engine = EngineTwin()
    engine.fail_with = EngineError("store", "no such folder")

    with pytest.raises(EngineError):
        StreamCatalog(engine).open("store", StoreOptions())


def test_context_of_many_streams_takes_no_more_effort_than_that_of_few():
    def effort_among(count):
        catalog = StreamCatalog(EngineTwin())
        for number in range(count):
            catalog.create("$G", StreamConfig(name=f"S{number}", subjects=(f"orders.{number}.>",), max_bytes=1))

        def look() -> None:
            context = catalog.context("$G", SETTINGS)
            assert context.server.reserved_storage == count
            assert context.streams.reserved_bytes("file") == count
            assert context.streams.overlaps(StreamConfig(name="T", subjects=("orders.77.new",)))

        return calls_during(look)

    assert effort_among(5_000) < 2 * effort_among(100)
