"""Which subjects can mean the same message."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jetlake.iac.subjects import Takers, ends_in_one_token
from jetlake.shared.subjects import overlap

SUBJECTS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=3).map(".".join) | st.lists(
    st.sampled_from(["a", "b", "*"]), max_size=2
).map(lambda tokens: ".".join([*tokens, ">"]))


@pytest.mark.parametrize(
    ("one", "other", "is_so"),
    [
        ("a.*", "a.b", True),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        ("*.b", "a.*", True),
        ("a.b", "a.b.c", False),
        ("a.*.c", "a.b.*", True),
        ("a", "b", False),
        (">", "a", True),
    ],
)
def test_subjects_overlap_when_one_message_can_be_both(one, other, is_so):
    assert overlap(one, other) is overlap(other, one) is is_so


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from("ABCDE"), st.lists(SUBJECTS, max_size=3)), SUBJECTS)
def test_streams_are_found_as_if_all_were_looked_at(subjects_of, subject):
    found = set(Takers(subjects_of).overlapping(subject))

    assert found == {name for name, others in subjects_of.items() if any(overlap(subject, other) for other in others)}


def test_only_the_last_token_counts_for_the_warning():
    assert [ends_in_one_token(subject) for subject in ("events.*", "events.>", "a.*.b", "*")] == [
        True,
        False,
        False,
        False,
    ]
