"""An interest stream keeps what a stream would copy of it that this version cannot serve, and another version will."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from nats.js.errors import NotFoundError

from jetlake.management.catalog import streams
from tests.consumer.test_unserved_consumers import ask, run
from tests.waiting import until


async def numbers(js: Any, stream: str) -> list[int]:
    """Return the payloads of a stream, which are numbers, in the order of its messages."""
    state = (await js.stream_info(stream)).state
    found = []
    for sequence in range(max(state.first_seq, 1), state.last_seq + 1):
        with suppress(NotFoundError):
            found.append(int((await js.get_msg(stream, sequence)).data))
    return found


async def wait_for(js: Any, stream: str, expected: list[int]) -> None:
    async def is_so() -> bool:
        return await numbers(js, stream) == expected

    await until(is_so)


async def set_up(js: Any) -> None:
    """Create an interest stream, and another that has one of its subjects as its source and is full."""
    await ask(js, "STREAM.CREATE.O", name="O", subjects=["o.*"], retention="interest")
    source = {"name": "O", "filter_subject": "o.a"}
    metadata = {"of": "a later version"}
    await ask(js, "STREAM.CREATE.T", name="T", sources=[source], max_msgs=1, discard="new", metadata=metadata)
    for number in (1, 2):
        await js.publish("o.a", b"%d" % number)
    await wait_for(js, "T", [1])
    await wait_for(js, "O", [2])


def test_what_an_unserved_stream_would_copy_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use_older_version(js: Any) -> None:
        assert list((await ask(js, "STREAM.LIST"))["offline"]) == ["T"]
        await js.publish("o.b", b"0")
        await js.publish("o.a", b"3")
        assert await numbers(js, "O") == [2, 3]

    async def use_later_version(js: Any) -> None:
        for number in (2, 3):
            await js.purge_stream("T")
            await wait_for(js, "T", [number])
        await wait_for(js, "O", [])

    run(tmp_path, set_up)
    with monkeypatch.context() as older:
        older.setattr(streams, "is_level_too_high", lambda metadata: "of" in (metadata or {}))
        run(tmp_path, use_older_version)
    run(tmp_path, use_later_version)
