"""Changes of resources get the value before them in whatever order and batches they come, without Spark."""

import random

import pytest

from jetlake.spark.pipelines.device_history import fold
from jetlake.spark.pipelines.device_packs import CHANGE_FIELDS
from jetlake.spark.pipelines.targets import arrow_type

pyarrow = pytest.importorskip("pyarrow", reason="the extra `spark` is not installed")

SECOND = 1_000_000_000
EMPTY = {"STRING": "", "BIGINT": 0, "INT": 0, "BINARY": b"", "ARRAY<STRING>": []}


def table(changes):
    """Return changes (aggregate, second, version, value), in the order of the stream, as packs have them."""
    columns = {name: [EMPTY[kind]] * len(changes) for name, kind in CHANGE_FIELDS.items()}
    columns |= {
        "aggregate_id": [each[0] for each in changes],
        "event_ns": [each[1] * SECOND for each in changes],
        "version": [each[2] for each in changes],
        "content_json": [each[3] for each in changes],
    }
    arrays = {name: pyarrow.array(columns[name], arrow_type(kind)) for name, kind in CHANGE_FIELDS.items()}
    moments = pyarrow.array([0] * len(changes), arrow_type("TIMESTAMP"))
    return pyarrow.table({"sequence": range(1, len(changes) + 1), "timestamp": moments, **arrays})


def taken(*batches):
    """Return the history, the late changes and the newest values of changes that come in these batches."""
    known, history, late = {}, [], []
    for batch in batches:
        folded = fold(table(batch), known.get)
        known |= folded.newest
        history += [
            (row["aggregate_id"], row["version"], row["value"], row["previous_value"], row["seconds_since_previous"])
            for row in folded.history.to_pylist()
        ]
        late += [(row["aggregate_id"], row["version"]) for row in folded.late.to_pylist()]
        held = {row["aggregate_id"]: row["value"] for row in folded.resources.to_pylist()}
        assert held == {name: newest.value for name, newest in folded.newest.items()}
    return sorted(history), late, {name: newest.value for name, newest in known.items()}


def test_a_change_has_the_value_before_it_within_a_batch_and_across_two():
    history, late, newest = taken([("a", 1, 0, "x"), ("b", 1, 0, "p"), ("a", 3, 1, "y")], [("a", 7, 2, "z")])

    assert history == [
        ("a", 0, "x", None, None),
        ("a", 1, "y", "x", 2.0),
        ("a", 2, "z", "y", 4.0),
        ("b", 0, "p", None, None),
    ]
    assert (late, newest) == ([], {"a": "z", "b": "p"})


def test_what_comes_twice_is_in_the_history_once():
    first = [("a", 1, 0, "x"), ("a", 2, 1, "y"), ("a", 2, 1, "y")]

    history, late, _ = taken(first, [("a", 2, 1, "y"), ("a", 3, 2, "z")])

    assert [row[1] for row in history] == [0, 1, 2]
    assert late == []


def test_a_change_that_is_older_than_the_newest_known_is_late():
    history, late, newest = taken([("a", 1, 0, "x"), ("a", 5, 2, "z")], [("a", 3, 1, "y"), ("a", 6, 3, "w")])

    assert late == [("a", 1)]
    assert ("a", 3, "w", "z", 1.0) in history
    assert newest == {"a": "w"}


def test_of_changes_at_one_time_the_higher_version_is_newer():
    _, late, newest = taken([("a", 1, 1, "y")], [("a", 1, 2, "z"), ("a", 1, 0, "x")])

    assert (late, newest) == ([("a", 0)], {"a": "z"})


def test_a_value_that_is_gone_is_told_as_such():
    history, _, newest = taken([("a", 1, 0, "x")], [("a", 2, 1, None), ("a", 3, 2, "y")])

    assert history[1:] == [("a", 1, None, "x", 1.0), ("a", 2, "y", None, 1.0)]
    assert newest == {"a": "y"}


@pytest.mark.parametrize("seed", range(20))
def test_every_change_is_in_the_history_or_late_and_the_chain_is_whole(seed):
    chance = random.Random(seed)
    changes = [(name, second, second, f"{name}{second}") for name in "abc" for second in range(30)]
    sent = chance.sample(changes, len(changes)) + chance.choices(changes, k=20)
    cuts = sorted(chance.sample(range(len(sent)), 5))

    history, late, newest = taken(*(sent[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)))

    assert newest == {name: f"{name}29" for name in "abc"}
    told = {(row[0], row[1]) for row in history}
    assert len(told) == len(history)
    assert told | set(late) == {(name, second) for name, second, _, _ in changes}
    for name in "abc":
        rows = [row for row in history if row[0] == name]
        assert [row[3] for row in rows] == [None, *(row[2] for row in rows[:-1])]
