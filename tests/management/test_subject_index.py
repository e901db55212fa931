"""Overlaps among many subjects, against comparing each with each."""

import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.names import collide, is_subset
from jetlake.management.subject_index import TooManyStepsError, first_overlap, first_subset

TOKENS = st.lists(st.sampled_from(["a", "b", "c", "*"]), min_size=1, max_size=4)
SUBJECTS = st.builds(lambda tokens, rest: ".".join(tokens) + rest, TOKENS, st.sampled_from(["", "", ".>"])) | st.just(
    ">"
)


@given(st.lists(SUBJECTS, max_size=8).map(tuple))
def test_first_overlap_is_the_one_that_comparing_all_finds(subjects):
    pairs = combinations(range(len(subjects)), 2)
    expected = next((pair for pair in pairs if collide(subjects[pair[0]], subjects[pair[1]])), None)

    assert first_overlap(subjects) == expected


@pytest.mark.parametrize("pattern", ["device.{}.>", "{}.events.*", "plain{}"])
def test_ten_thousand_subjects_are_compared_in_time(pattern):
    subjects = tuple(pattern.format(number) for number in range(10_000))
    start = time.perf_counter()

    assert first_overlap(subjects) is None
    assert first_overlap((*subjects, subjects[7])) == (7, 10_000)
    assert time.perf_counter() - start < 10


def test_walk_among_subjects_made_to_branch_has_a_bound():
    subjects = tuple(f"a{number}.b" for number in range(5_000)) + tuple(f"*.c{number}" for number in range(5_000))

    with pytest.raises(TooManyStepsError):
        first_overlap(subjects)


ANY_TOKENS = st.lists(st.sampled_from(["a", "b", "*", ">", "*a", "*b", ">a", ""]), min_size=1, max_size=4)


@given(st.lists(ANY_TOKENS.map(".".join), max_size=6).map(tuple))
def test_first_subset_is_the_one_that_comparing_all_finds(subjects):
    def is_within_another(position: int) -> bool:
        others = (other for index, other in enumerate(subjects) if index != position)
        return any(is_subset(subjects[position], other) for other in others)

    expected = next((position for position in range(len(subjects)) if is_within_another(position)), None)

    assert first_subset(subjects) == expected


def test_ten_thousand_filters_are_compared_in_time():
    subjects = tuple(f"device.{number}.>" for number in range(10_000))
    start = time.perf_counter()

    assert first_subset(subjects) is None
    assert first_subset((*subjects, "device.7.a")) == 10_000
    assert time.perf_counter() - start < 10


def test_walk_among_filters_made_to_branch_has_a_bound():
    depths = range(2**12)
    subjects = tuple(".".join("*" if number >> bit & 1 else "a" for bit in range(12)) + ".b" for number in depths)

    with pytest.raises(TooManyStepsError):
        first_subset((*(".".join("a" for _ in range(12)) + f".c{number}" for number in range(500)), *subjects))
