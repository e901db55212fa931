"""The questions about subjects."""

import pytest

from jetlake.shared.subjects import covers, is_literal
from jetlake.shared.subjects import overlap as collide


@pytest.mark.parametrize("subject", ["a", "a.b", "a*", ">a.b", "é"])
def test_subjects_that_can_be_published_to(subject):
    assert is_literal(subject)


@pytest.mark.parametrize("subject", ["", "a..b", ".a", "a.", "a.*", ">", "a b", "a\n"])
def test_subjects_that_cannot_be_published_to(subject):
    assert not is_literal(subject)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.*", "a.c", True),
        ("a.*", "*.c", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a.b", True),
        ("a.b.>", "a.*", False),
        ("*.b.>", "a.>", True),
    ],
)
def test_wildcards_meet(first, second, expected):
    assert collide(first, second) is expected
    assert collide(second, first) is expected


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.*", "a.b", True),
        ("a.*", "a.*", True),
        ("a.>", "a.*", True),
        ("a.>", "a.b.>", True),
        ("a.>", "a.>", True),
        (">", ">", True),
        ("a.b", "a.*", False),
        ("a.*", "a.>", False),
        ("a.*.>", "a.>", False),
        ("*.>", ">", False),
        ("a.>", ">", False),
        ("a.>", "a", False),
        ("a.*", "a.b.c", False),
    ],
)
def test_a_pattern_covers_another_one_that_matches_nothing_else(pattern, other, expected):
    assert covers(pattern, other) is expected
