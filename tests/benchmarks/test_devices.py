"""How the figures of the device event bus are made and judged."""

import io

import pytest
from rich.console import Console

pytest.importorskip("cramjam", reason="needs the extra `devices`")

from benchmarks.devices import DEVICES, GOALS, changes, decode, encode, table
from jetlake.devices.codec import EventCodec


def test_each_event_is_one_of_its_aggregate_in_order() -> None:
    versions: dict[object, int] = {}
    for message in changes(DEVICES * 5 * 2 + 1):
        encoded = EventCodec().encode(message)
        assert encoded.version == versions.get(encoded.key, -1) + 1
        versions[encoded.key] = encoded.version

    assert len(versions) == DEVICES * 5


def test_codec_can_be_measured() -> None:
    assert encode(200) > 0
    assert decode(200) > 0


def test_a_figure_is_compared_with_its_goal() -> None:
    console = Console(file=io.StringIO(), width=160)

    console.print(table({"decode": 100_000, "encode": 1, "stored_jetlake": 20_000, "stored_nats": 5}))

    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert printed.count("not reached") == 1
    assert "to compare" in printed
    assert len({goal.name for goal in GOALS}) == len(GOALS)
