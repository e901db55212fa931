"""All tests of a server, each for its share of the time.

Invariant: every test has at least one round, and what it left in the folder is removed.
"""

import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from jetlake.crashtest import damage, power
from jetlake.crashtest.load import LoadPublisher, create_stream, publish_one, read_all
from jetlake.crashtest.servers import ServerKind, ServerProcess, fresh
from jetlake.crashtest.verdict import CrashVerdict, compare
from jetlake.errors import MissingDependencyError, ServerError

__all__ = ["TestOutcome", "run"]

LIFE_S = (0.4, 1.2)
"""How long a server acknowledges messages before something happens to it, at random."""

OUTSTANDING_S_MAX = 30.0
"""How long a publisher may take to notice that its server is gone."""


class TestOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One test of one server; a test that cannot be made here says why."""

    server: str
    test: str
    verdict: CrashVerdict | None = None
    skipped: str = ""


class _Life(msgspec.Struct, frozen=True):
    acknowledged: dict[int, int]
    following: int


def run(
    kinds: list[ServerKind],
    tests: list[str],
    folder: Path,
    *,
    seconds: float,
    seed: int,
    report: Callable[[TestOutcome], None],
) -> list[TestOutcome]:
    """Test every server, and return what was found. `report` is called as soon as a test has ended."""
    chance = random.Random(seed)
    share_s = seconds / (len(kinds) * len(tests))
    outcomes = []
    for test in tests:
        for kind in kinds:
            outcomes.append(_tested(kind, test, folder / f"{kind.name}-{test}", share_s, chance))
            report(outcomes[-1])
    return outcomes


def _tested(kind: ServerKind, test: str, folder: Path, share_s: float, chance: random.Random) -> TestOutcome:
    name = test.replace("-", " ")
    try:
        if test == "power-cut":
            power.require()
        deadline, total = time.monotonic() + share_s, CrashVerdict()
        for verdict in TESTS[test](kind, fresh(folder), chance):
            total += verdict
            if time.monotonic() >= deadline:
                break
    except MissingDependencyError as error:
        return TestOutcome(server=kind.name, test=name, skipped=str(error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return TestOutcome(server=kind.name, test=name, verdict=total)


def _kill(kind: ServerKind, folder: Path, chance: random.Random) -> Iterator[CrashVerdict]:
    """Kill the same server repeatedly; everything that it ever acknowledged must be there."""
    store, acknowledged, following = folder / "store", dict[int, int](), 0
    while True:
        life = _live(kind, store, chance, following)
        acknowledged |= life.acknowledged
        following = life.following
        found = _verified(kind, store, acknowledged)
        # Of all rounds the last one knows everything that was acknowledged; earlier ones must not count again.
        yield msgspec.structs.replace(found, acknowledged=len(life.acknowledged))


def _torn(kind: ServerKind, folder: Path, chance: random.Random) -> Iterator[CrashVerdict]:
    """Kill a server, cut off the end of its newest file, and start it again: a torn last write."""
    yield from _damaged(kind, folder, chance, damage.tear_last_write)


def _flipped(kind: ServerKind, folder: Path, chance: random.Random) -> Iterator[CrashVerdict]:
    """Kill a server, flip one bit somewhere in its files, and start it again."""
    yield from _damaged(kind, folder, chance, damage.flip_a_bit)


def _damaged(
    kind: ServerKind, folder: Path, chance: random.Random, harm: Callable[[Path, random.Random], str]
) -> Iterator[CrashVerdict]:
    """Make one store, and damage copies of it."""
    original = folder / "original"
    life = _live(kind, original, chance, 0)
    while True:
        copy = folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        harm(copy, chance)
        yield _verified(kind, copy, life.acknowledged)


def _power(kind: ServerKind, folder: Path, chance: random.Random) -> Iterator[CrashVerdict]:
    """Take away what has not reached the device."""
    image, copy = folder / "disk.img", folder / "after.img"
    while True:
        power.make_image(image)
        with power.mounted(image, folder / "disk") as disk:
            with ServerProcess(kind, disk / "store") as server:
                publisher = _published(server, chance, 0)
                server.freeze()
                power.copy_image(image, copy)
            publisher.join(OUTSTANDING_S_MAX)
        with power.mounted(copy, folder / "disk") as disk:
            # What came in while the image was copied is not in it; acknowledged was only what came before the freeze.
            yield _verified(kind, disk / "store", publisher.acknowledged)


def _published(server: ServerProcess, chance: random.Random, first: int) -> LoadPublisher:
    """Let a server acknowledge messages for a while."""
    if first == 0:
        create_stream(server.port)
    publisher = LoadPublisher(server.port, first)
    publisher.start()
    publisher.wait_for_acknowledgement()
    time.sleep(chance.uniform(*LIFE_S))
    return publisher


def _live(kind: ServerKind, store: Path, chance: random.Random, first: int) -> _Life:
    """Start a server, publish, and kill it."""
    with ServerProcess(kind, store) as server:
        publisher = _published(server, chance, first)
        server.kill()
        publisher.join(OUTSTANDING_S_MAX)
    return _Life(publisher.acknowledged, publisher.next)


def _verified(kind: ServerKind, store: Path, acknowledged: dict[int, int]) -> CrashVerdict:
    """Start a server on what is left, and compare."""
    try:
        with ServerProcess(kind, store) as server:
            found = read_all(server.port)
            following = publish_one(server.port) if found is not None else 0
            return compare(acknowledged, found, following, complaints=server.complaints())
    except (ServerError, OSError):
        count = len(acknowledged)
        return CrashVerdict(rounds=1, acknowledged=count, lost=count, failed_starts=1)


TESTS: dict[str, Callable[[ServerKind, Path, random.Random], Iterator[CrashVerdict]]] = {
    "kill": _kill,
    "power-cut": _power,
    "torn-write": _torn,
    "bit-flip": _flipped,
}
"""What happens to a server, by its name on the command line."""
