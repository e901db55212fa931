"""The document about Choria's adapter: its message set, as `jsm` of 2019 made and showed it."""

import jetlake
from tests.seeds.runner import Reader
from tests.seeds.transcript import read_document

DOCUMENT = "choria_jetstream.md"

COMMANDS = ["jsm add", "jsm info choria_fleet_metadata"]
"""Every command that is printed."""

METADATA_BYTES = 6_000
"""What a node tells about itself; two of them are the 12 kB that are printed."""


def test_every_command_is_run_as_printed(tmp_path):
    steps = read_document(DOCUMENT)
    assert [step.command for step in steps] == COMMANDS

    with jetlake.Server(jetstream=True) as server:
        reader = Reader(tmp_path, server.url)
        add, info = steps
        assert reader.follow(add) == ""
        metadata = "x" * METADATA_BYTES
        for _ in range(2):
            assert reader.run(f"nats-req choria.node_metadata {metadata}").stdout.endswith(": '+OK'\n")
        assert reader.follow(info) == ""


def test_a_week_is_seven_days(tmp_path):
    add = read_document(DOCUMENT)[0]

    with jetlake.Server(jetstream=True) as server:
        reader = Reader(tmp_path, server.url)
        reader.follow(add)
        shown = reader.run("nats req '$JS.STREAM.choria_fleet_metadata.INFO' ''").stdout

    assert f'"max_age": {7 * 24 * 3600 * 10**9}' in shown
