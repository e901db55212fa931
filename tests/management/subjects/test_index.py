"""Overlaps among many subjects, against comparing each with each."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.subjects.index import ComparisonLimitError as TooManyStepsError
from jetlake.management.subjects.index import first_overlap, first_subset
from jetlake.management.subjects.names import collide, is_subset
from tests.effort import assert_linear

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
def test_effort_of_comparing_subjects_grows_with_their_number(pattern):
    def comparison(count):
        subjects = tuple(pattern.format(number) for number in range(count))
        return lambda: first_overlap(subjects)

    subjects = tuple(pattern.format(number) for number in range(10_000))

    assert first_overlap((*subjects, subjects[7])) == (7, 10_000)
    assert_linear(comparison, 1_000)


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


def test_effort_of_comparing_filters_grows_with_their_number():
    def comparison(count):
        subjects = tuple(f"device.{number}.>" for number in range(count))
        return lambda: first_subset(subjects)

    subjects = tuple(f"device.{number}.>" for number in range(10_000))

    assert first_subset((*subjects, "device.7.a")) == 10_000
    assert_linear(comparison, 1_000)


def test_walk_among_filters_made_to_branch_has_a_bound():
    depths = range(2**12)
    subjects = tuple(".".join("*" if number >> bit & 1 else "a" for bit in range(12)) + ".b" for number in depths)

    with pytest.raises(TooManyStepsError):
        first_subset((*(".".join("a" for _ in range(12)) + f".c{number}" for number in range(500)), *subjects))
