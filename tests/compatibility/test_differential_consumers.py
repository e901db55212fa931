"""The same histories of consumers, made by chance, on both servers: the same states.

`JETLAKE_FUZZ_SEEDS=2000 pytest tests/compatibility/test_differential_consumers.py` makes a long run of it, from seed 0
or from JETLAKE_FUZZ_START on; so does `python -m tests.compatibility.consumer_differences --seeds 2000`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.compatibility.consumer_differences import both_servers, difference, smallest
from tests.compatibility.consumer_histories import STEPS_MIN, Maker
from tests.compatibility.consumer_playing import Server

SEED_COUNT = int(os.environ.get("JETLAKE_FUZZ_SEEDS", "24"))
SEED_START = int(os.environ.get("JETLAKE_FUZZ_START", "0"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    with both_servers(tmp_path_factory.mktemp("servers")) as servers:
        yield servers


@pytest.mark.jetlake
@pytest.mark.timeout(300 if SEED_COUNT <= 50 else 0)
def test_both_servers_come_to_the_same_states(servers: list[Server]) -> None:
    differences = []
    for seed in range(SEED_START, SEED_START + SEED_COUNT):
        history = Maker(seed).history()

        found = difference(servers, history)

        if found is not None:
            small, found = smallest(servers, history, found)
            differences.append(f"{small}\n  {found}")
    assert not differences, "\n\n".join(differences)


def test_same_seed_makes_the_same_history() -> None:
    first, second, other = (str(Maker(seed).history()) for seed in (7, 7, 8))

    assert first == second
    assert first != other
    assert len(Maker(7).history().steps) > STEPS_MIN


def test_histories_have_everything_in_them() -> None:
    steps = [step for seed in range(300) for step in Maker(seed).history().steps]

    kinds = {step.kind for step in steps}
    assert kinds >= {"publish", "fetch", "acknowledge", "create", "update", "reset", "delete_consumer", "restart"}
    assert kinds >= {"delete_message", "purge", "roll_up", "leave_early", "listen"}
    bodies = {step.arguments["body"] for step in steps if step.kind == "acknowledge"}
    assert bodies == {"+ACK", "-NAK", "-NAK later", "-NAK soon", "+TERM", "+WPI", "+NXT"}
