"""Names, subjects and the short hash."""

import pytest

from jetlake.management.subjects.names import collide, hash8, is_literal_subject, is_name, is_subject, is_subset


@pytest.mark.parametrize("name", ["a", "ORDERS-1_x", "é", "$x", "a\x00b"])
def test_names_that_a_stream_may_have(name):
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a\tb", "a\nb", "a\fb", "a.b", "*", ">", "a/b", "a\\b"])
def test_names_that_no_stream_may_have(name):
    assert not is_name(name)


@pytest.mark.parametrize("subject", ["a", "a.b", "a.*", "*.>", ">", "a.>b", "a\x0bb"])
def test_subjects(subject):
    assert is_subject(subject)


@pytest.mark.parametrize("subject", ["", ".", "a..b", "a.", ".a", "a.>.b", "a b", "a\r"])
def test_texts_that_are_no_subjects(subject):
    assert not is_subject(subject)


def test_literal_subject_has_no_wildcard_as_a_token():
    assert is_literal_subject("a.>b.*c")
    assert not is_literal_subject("a.*")
    assert not is_literal_subject(">")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.c", False),
        ("a.*", "a.c", True),
        ("a.*.c", "a.b.*", True),
        ("a.*", "a.b.c", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("a.b.>", "a.*", False),
        ("*.b.>", "a.>", True),
        (">", "", True),
        ("*", "", False),
        ("*x.*", "b.*", True),
        ("*x.y", "b.y", False),
    ],
)
def test_wildcards_meet(first, second, expected):
    assert collide(first, second) is expected
    assert collide(second, first) is expected


@pytest.mark.parametrize(
    ("subject", "pattern", "expected"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.*", True),
        ("a.*", "a.b", False),
        ("a.*", "a.*", True),
        ("a.>", "a.*", False),
        ("a.*", "a.>", True),
        ("a.>", "a.>", True),
        ("a", "a.>", False),
        ("a.b.c", "a.*", False),
        ("", ">", True),
        ("", "*", False),
    ],
)
def test_pattern_covers_a_subject(subject, pattern, expected):
    assert is_subset(subject, pattern) is expected


def test_short_hash_is_the_one_of_derived_names():
    assert hash8("A") == "NUmM6cRx"
    assert hash8("$JS.hub.API") == "bTMUkJQk"
