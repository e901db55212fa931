"""The tree of taken subjects, against comparing with each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.subjects.names import collide, is_subject
from jetlake.management.subjects.taken import LookupLimitError as TooManyStepsError
from jetlake.management.subjects.taken import TakenSubjects

TOKENS = st.lists(st.sampled_from(["a", "b", "*", "*a", ">b"]), min_size=1, max_size=4)
SUBJECTS = st.builds(lambda tokens, rest: ".".join(tokens) + rest, TOKENS, st.sampled_from(["", "", ".>"]))
OWNED = st.dictionaries(st.sampled_from(["S", "T", "U"]), st.lists(SUBJECTS | st.just(">"), max_size=4).map(tuple))


def tree_of(owned: dict[str, tuple[str, ...]]) -> TakenSubjects:
    taken = TakenSubjects()
    for owner, subjects in owned.items():
        taken.add(subjects, owner)
    return taken


@given(OWNED, SUBJECTS | st.sampled_from(["", ".", "a..b", "a.>.b", ">"]))
def test_owners_are_those_that_comparing_finds(owned, subject):
    expected = {owner for owner, subjects in owned.items() if any(collide(subject, taken) for taken in subjects)}

    assert tree_of(owned).owners_meeting(subject) == expected


@given(OWNED, st.lists(SUBJECTS, max_size=4).map(tuple))
def test_others_are_met_where_comparing_finds_one(owned, subjects):
    others = [taken for owner, taken_subjects in owned.items() if owner != "S" for taken in taken_subjects]
    expected = any(collide(subject, taken) for subject in subjects for taken in others)

    assert tree_of(owned).is_met_by_others(subjects, "S") == expected


@given(OWNED, SUBJECTS)
def test_what_was_given_back_is_free(owned, subject):
    taken = tree_of(owned)

    taken.remove(owned.pop("S", ()), "S")

    assert taken.owners_meeting(subject) == tree_of(owned).owners_meeting(subject)
    for owner, subjects in owned.items():
        taken.remove(subjects, owner)
    assert taken.owners_meeting(">") == set()
    assert all(is_subject(each) for subjects in owned.values() for each in subjects)


def test_look_among_ten_thousand_streams_walks_a_few_branches():
    taken = tree_of({f"S{number}": (f"orders.{number}.>",) for number in range(10_000)})

    assert taken.owners_meeting("orders.77.new") == {"S77"}
    assert taken.is_met_by_others(tuple(f"orders.{number}.>" for number in range(10_000)), "S") is True
    assert taken.is_met_by_others(tuple(f"bills.{number}.>" for number in range(10_000)), "S") is False


def test_look_at_many_subjects_made_to_branch_has_a_bound():
    taken = tree_of({"S": tuple(f"a{number}.b" for number in range(3_000))})

    with pytest.raises(TooManyStepsError):
        taken.is_met_by_others(tuple(f"*.c{number}" for number in range(3_000)), "T")
