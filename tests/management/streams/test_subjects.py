"""Subjects, transforms and republishing of one stream."""

import pytest

from jetlake.management.streams.account_streams import AccountStreams
from jetlake.management.streams.config import StreamConfig, StreamRepublish, StreamSource, SubjectTransform
from jetlake.management.streams.subjects import check_others, check_republish, check_subject_transform, with_subjects
from jetlake.management.wire.error_codes import RequestError as ApiError


def refused_subjects(*subjects: str, **options: object) -> str:
    with pytest.raises(ApiError) as raised:
        with_subjects(StreamConfig(name="S", subjects=subjects, num_replicas=1, **options))
    return raised.value.description


def test_stream_without_subjects_takes_its_name_unless_it_is_a_copy():
    assert with_subjects(StreamConfig(name="S")).subjects == ("S",)
    assert with_subjects(StreamConfig(name="S", mirror=StreamSource(name="A"))).subjects is None


@pytest.mark.parametrize(
    ("subjects", "problem"),
    [
        (("a b",), "invalid subject"),
        (("a", "x", "b b", "a"), 'subject "a" overlaps with "a"'),
        ((">",), "capturing all subjects requires no-ack to be true"),
        (("$JS.API.>",), "subjects that overlap with jetstream api require no-ack to be true"),
        (("$SYS.x",), "subjects that overlap with system api require no-ack to be true"),
    ],
)
def test_subjects_that_a_stream_may_not_take(subjects, problem):
    assert refused_subjects(*subjects) == problem


@pytest.mark.parametrize("subject", ["$JS.EVENT.>", "$SYS.ACCOUNT.x", "$KV.x.>", "*"])
def test_subjects_that_a_stream_may_take(subject):
    with_subjects(StreamConfig(name="S", subjects=(subject,), num_replicas=1))


def test_many_subjects_are_compared_too():
    many = tuple(f"a.{number}.>" for number in range(300))

    assert with_subjects(StreamConfig(name="S", subjects=many, num_replicas=1)).subjects == many
    assert refused_subjects(*many, "a.7.b") == 'subject "a.7.>" overlaps with "a.7.b"'
    assert refused_subjects(*many, "a.7.b", "a b") == "invalid subject"


def test_stream_that_never_acknowledges_may_take_everything():
    with_subjects(StreamConfig(name="S", subjects=(">",), num_replicas=1, no_ack=True))


def test_subject_of_another_stream_is_taken():
    streams = AccountStreams([StreamConfig(name="O", subjects=("a.*",))])

    check_others(StreamConfig(name="S", subjects=("x", "a.b.c")), streams)
    with pytest.raises(ApiError, match="subjects overlap with an existing stream"):
        check_others(StreamConfig(name="S", subjects=("x", "a.b")), streams)


def test_subjects_made_to_branch_are_refused():
    streams = AccountStreams([StreamConfig(name="O", subjects=tuple(f"a{number}.b" for number in range(3_000)))])

    with pytest.raises(ApiError, match="too many wildcards"):
        check_others(StreamConfig(name="S", subjects=tuple(f"*.c{number}" for number in range(3_000))), streams)


def test_transform_is_checked_on_both_sides():
    with pytest.raises(ApiError, match=r"stream transform source: invalid subject a\.\."):
        check_subject_transform(StreamConfig(subject_transform=SubjectTransform(src="a..", dest="b")))
    with pytest.raises(ApiError, match="stream transform: invalid subject"):
        check_subject_transform(StreamConfig(subject_transform=SubjectTransform(src="a", dest="b.*")))


def test_republishing_without_a_source_is_of_everything():
    config = StreamConfig(subjects=("a",), republish=StreamRepublish(dest="b.>"))

    assert check_republish(config, is_pedantic=False).republish == StreamRepublish(src=">", dest="b.>")
    with pytest.raises(ApiError, match="republish source can not be empty"):
        check_republish(config, is_pedantic=True)


def test_republishing_into_the_stream_itself_is_a_cycle():
    with pytest.raises(ApiError, match="forms a cycle"):
        check_republish(
            StreamConfig(subjects=("a.>",), republish=StreamRepublish(src="a.*", dest="a.b")), is_pedantic=False
        )


def test_republishing_everything_follows_the_transform():
    transform = SubjectTransform(src="a.>", dest="b.>")
    config = StreamConfig(subjects=("a.>",), subject_transform=transform, republish=StreamRepublish(src=">", dest=">"))

    assert check_republish(config, is_pedantic=False).republish == StreamRepublish(src="b.>", dest="b.>")
