"""What the bus did to the events of an aggregate is found however its messages are cut into batches, without Spark.

`device_truth` does the same for all aggregates of a stream.
"""

import random

import msgspec
import pytest

from jetlake.spark.pipelines.device_arrivals import Arrivals
from jetlake.spark.pipelines.device_quality import EPOCHS_KEPT, RANGES_KEPT, Quality

pyarrow = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

SECOND = 1_000_000_000
UNDECODABLE = (-1, 0)
SUBJECT = "events.D.resources.A.resourcechanged"


def taken(*batches):
    """Return the row of an aggregate whose messages, pairs of version and second, come in these batches."""
    quality, sequence = Quality("D", "/a"), 0
    for batch in batches:
        if not batch:
            continue
        messages = [(sequence + number, *message) for number, message in enumerate(batch, 1)]
        sequence += len(batch)
        random.Random(len(batch)).shuffle(messages)
        stored_us = [(made_s + 2) * 1_000_000 for _, _, made_s in messages]
        table = pyarrow.table(
            {
                # Only a message that cannot be read has one.
                "subject": pyarrow.array([SUBJECT if version < 0 else None for _, version, _ in messages], "string"),
                "aggregate_id": ["" if version < 0 else "A" for _, version, _ in messages],
                "device_id": ["D"] * len(messages),
                "href": ["/a"] * len(messages),
                "own_version": [version for _, version, _ in messages],
                "own_ns": [made_s * SECOND for _, _, made_s in messages],
                "timestamp": pyarrow.array(stored_us, pyarrow.timestamp("us", "UTC")),
                "sequence": [number for number, _, _ in messages],
            }
        )
        half = len(messages) // 2
        (arrivals,) = Arrivals.of_tables([table[:half], table[half:]], {SUBJECT: "A"}.__getitem__)
        # A state is stored between two batches.
        quality = msgspec.msgpack.decode(msgspec.msgpack.encode(quality), type=Quality)
        arrivals.add_to(quality)
    return quality.row("A")


def figures(row):
    return tuple(row[name] for name in ("events", "missing", "duplicates", "reordered", "undecodable"))


def at(*versions):
    return [(version, version + 1) for version in versions]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ((0, 1, 2, 3), (4, 0, 0, 0, 0)),
        ((0, 1, 4), (3, 2, 0, 0, 0)),
        ((0, 2, 1, 3), (4, 0, 0, 1, 0)),
        ((0, 1, 1, 2), (4, 0, 1, 0, 0)),
        ((5, 6, 9), (3, 2, 0, 0, 0)),
        ((3, 0, 1, 2), (4, 0, 0, 3, 0)),
        ((0, 5, 2, 5, 2, 3), (6, 2, 2, 2, 0)),
    ],
)
def test_missing_duplicate_and_reordered_versions_are_counted(versions, expected):
    messages = at(*versions)

    assert figures(taken(messages)) == expected
    assert figures(taken(*([message] for message in messages))) == expected


def test_the_cut_into_batches_changes_nothing():
    chance = random.Random(5)
    for _ in range(50):
        placed = []
        for version in range(200):
            if chance.random() < 0.9:
                placed.append((version + (chance.randrange(20) if chance.random() < 0.1 else 0), version))
            if chance.random() < 0.1:
                placed.append((version + chance.randrange(30), version))
        seen = [version for _, version in sorted(placed, key=lambda each: each[0])]
        messages = at(*seen)
        cuts = sorted(chance.sample(range(len(messages)), 12))
        batches = [messages[start:end] for start, end in zip([0, *cuts], [*cuts, len(messages)], strict=True)]

        found = taken(*batches)

        distinct = set(seen)
        first_times = [(place, each) for place, each in enumerate(seen) if each not in seen[:place]]
        assert figures(found) == (
            len(seen),
            max(seen) - min(seen) + 1 - len(distinct),
            len(seen) - len(distinct),
            sum(max(seen[:place], default=-1) > each for place, each in first_times),
            0,
        )
        assert found == taken(messages)
        assert (found["epochs"], found["last_version"]) == (1, max(seen))


def test_messages_that_cannot_be_decoded_are_counted_and_break_nothing():
    assert figures(taken([*at(0, 1), UNDECODABLE], [UNDECODABLE], at(2))) == (3, 0, 0, 0, 2)
    assert taken([UNDECODABLE])["last_version"] is None


def test_lateness_is_from_the_event_to_the_stream():
    row = taken(at(0, 1), at(2))

    assert (row["lateness_ms_mean"], row["lateness_ms_max"]) == (2000.0, 2000)
    assert taken([UNDECODABLE])["lateness_ms_mean"] is None


def test_a_device_that_is_onboarded_anew_begins_again():
    before, again = at(0, 1, 2), [(version, 100 + version) for version in range(5)]

    for batches in ([before + again], [before, again], [[each] for each in before + again]):
        row = taken(*batches)
        assert figures(row) == (8, 0, 0, 0, 0)
        assert (row["epochs"], row["last_version"]) == (2, 4)


def test_an_event_of_the_life_before_is_counted_there():
    before, again = at(0, 1, 3), [(version, 100 + version) for version in range(3)]

    row = taken(before, again, at(2), at(1))

    assert figures(row) == (8, 0, 1, 1, 0)
    assert row["epochs"] == 2


def test_a_first_event_that_comes_again_does_not_begin_anew():
    assert taken(at(0, 1, 2), at(0))["epochs"] == 1


def test_what_is_kept_has_limits():
    many = at(*range(0, 10 * RANGES_KEPT, 2))
    quality = Quality("D", "/a")
    for version, made_s in many:
        quality.add_message(version, made_s * SECOND)
    assert len(quality.epochs[-1].firsts) == RANGES_KEPT
    assert quality.row("A")["missing"] == len(many) - 1

    lives = [[(0, 10 * life + 1), (2, 10 * life + 2)] for life in range(5)]
    quality = Quality("D", "/a")
    for version, made_s in [message for life in lives for message in life]:
        quality.add_message(version, made_s * SECOND)
    assert len(quality.epochs) == EPOCHS_KEPT
    assert (quality.row("A")["epochs"], quality.row("A")["missing"]) == (5, 5)
