"""Transforms: what subjects become, and which ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetlake.management.subjects.transform import TransformError, check_mapping, make_transform


@pytest.mark.parametrize(
    ("source", "destination", "subject", "expected"),
    [
        ("trx.*.*", "y.{{wildcard(2)}}.{{partition(5,1)}}.{{split(1,-)}}", "trx.a-b.q", "y.q.1.a.b"),
        ("a.*.*", "$2.$1", "a.b.c", "c.b"),
        ("a.*", "x.{{wildcard(0)}}", "a.b", "x.a"),
        ("a.*", "x.{{partition(10,1)}}", "a.foo", "x.3"),
        ("a.*", "x.{{partition(10)}}", "a.foo", "x.8"),
        ("a.*", "x.{{partition(0,1)}}", "a.foo", "x.0"),
        ("a.*", "x.{{split(1,-)}}", "a.-f-o--o-", "x.f.o.o"),
        ("a.*", "x.{{ SplitFromLeft( 1 , 2 ) }}", "a.abcde", "x.ab.cde"),
        ("a.*", "x.{{splitFromRight(1,2)}}", "a.abcde", "x.abc.de"),
        ("a.*", "x.{{sliceFromLeft(1,2)}}", "a.abcde", "x.ab.cd.e"),
        ("a.*", "x.{{sliceFromRight(1,2)}}", "a.abcde", "x.a.bc.de"),
        ("a.*", "x.{{left(1,2)}}.{{right(1,2)}}", "a.abcde", "x.ab.de"),
        ("a.*", "x.{{left(1,9)}}.{{sliceFromLeft(1,0)}}", "a.abcde", "x.abcde.abcde"),
        ("a", "x.{{random(1)}}", "a", "x.0"),
        ("a.*.>", "x.$1.>", "a.b.c.d", "x.b.c.d"),
        ("", "x.>", "a.b", "x.a.b"),
        ("a.*", "x.$y.{wildcard(1)}", "a.b", "x.$y.{wildcard(1)}"),
        ("b.*", "x.$1", "a.b", None),
        ("a.*", "x", "a.b.c", None),
        ("a.>", "x.>", "a", None),
    ],
)
def test_subject_becomes_what_the_functions_say(source, destination, subject, expected):
    assert make_transform(source, destination).apply(subject) == expected


def test_random_number_is_below_its_bound():
    transform = make_transform("a", "{{random(3)}}")

    assert {transform.apply("a") for _ in range(200)} == {"0", "1", "2"}


@pytest.mark.parametrize(
    ("source", "destination", "problem"),
    [
        ("a.*", "x.*", "invalid subject"),
        ("a.>", "x", "invalid subject"),
        ("a", "x.>", "invalid subject"),
        ("a.*", "x..y", "invalid mapping destination: invalid transform"),
        ("a.*", "x. y", "invalid mapping destination: invalid transform"),
        ("a.>", "x.>.y", "invalid mapping destination: invalid transform in y"),
        ("a.*", "{{bogus(1)}}", "invalid mapping destination: unknown function in {{bogus(1)}}"),
        ("a.*", "$2", "invalid mapping destination: wildcard index out of range in $2: [2]"),
        ("a", "$1", "invalid mapping destination: wildcard index out of range in $1"),
        (
            "a.*",
            "{{wildcard()}}",
            "invalid mapping destination: not enough arguments passed to the function in {{wildcard()}}",
        ),
        (
            "a.*",
            "{{split(1,a,b)}}",
            "invalid mapping destination: too many arguments passed to the function in {{split(1,a,b)}}",
        ),
        (
            "a.*",
            "{{left(1,x)}}",
            "invalid mapping destination: function argument is invalid or in the wrong format in {{left(1,x)}}",
        ),
    ],
)
def test_mapping_that_cannot_be_is_refused(source, destination, problem):
    with pytest.raises(TransformError) as raised:
        check_mapping(source, destination)

    assert str(raised.value) == problem


@pytest.mark.parametrize("filler", ["{{wildcard(", "{{wildcard(\n", ") ", "{{ ", "(", "\n)"], ids=repr)
def test_long_token_is_read_before_the_time_out(filler):
    with pytest.raises(TransformError):
        check_mapping("a.*", "{{" + filler * (600_000 // len(filler)) + "}}")


def test_no_destination_is_no_transform():
    check_mapping("a.*", "")


TOKENS = st.sampled_from(
    ["a", "*", ">", "$1", "$0", "{{wildcard(1)}}", "{{partition(3,1)}}", "{{split(1,-)}}", "{{left(1,-1)}}", "{{x}}"]
)


@given(st.lists(TOKENS, min_size=1), st.lists(TOKENS, min_size=1), st.lists(st.text("ab-é"), min_size=1))
def test_any_transform_that_is_legal_maps_any_subject(source, destination, subject):
    try:
        transform = make_transform(".".join(source), ".".join(destination))
    except TransformError:
        return

    mapped = transform.apply(".".join(subject))
    assert mapped is None or isinstance(mapped, str)
