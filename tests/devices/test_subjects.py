"""Subjects of events, and the patterns of consumers."""

import pytest

from jetlake.devices.codec import EventCodec
from jetlake.devices.ids import links_id, metadata_id
from jetlake.devices.subjects import FAMILY_OF_TYPE, Address, AggregateKey, Family, pattern
from jetlake.errors import DeviceError
from tests.devices.samples import D1, R1, corpus


def test_there_are_sixteen_event_types_in_three_families():
    assert [sum(family is each for each in FAMILY_OF_TYPE.values()) for family in Family] == [3, 3, 10]


def test_each_of_the_52_events_has_a_subject_of_its_own():
    subjects = [EventCodec().encode(message).subject for message in corpus()]

    assert len(set(subjects)) == 52
    assert {len(subject.split(".")) for subject in subjects} == {4, 5}


def test_reading_a_subject_undoes_writing_it():
    for message in corpus():
        encoded = EventCodec().encode(message)
        assert Address.of(encoded.subject).subject == encoded.subject
        assert Address.of(encoded.subject).key == encoded.key


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, "events.>"),
        ({"device_id": D1}, f"events.{D1}.>"),
        ({"device_id": D1, "family": Family.LINKS}, f"events.{D1}.resource-links.>"),
        (
            {"device_id": D1, "event_type": "resourcelinkspublished"},
            f"events.{D1}.resource-links.resourcelinkspublished",
        ),
        ({"family": Family.LINKS}, "events.*.resource-links.>"),
        ({"device_id": D1, "family": Family.METADATA}, f"events.{D1}.metadata.>"),
        ({"device_id": D1, "event_type": "devicemetadataupdated"}, f"events.{D1}.metadata.devicemetadataupdated"),
        ({"family": Family.METADATA}, "events.*.metadata.>"),
        ({"device_id": D1, "family": Family.RESOURCES}, f"events.{D1}.resources.>"),
        ({"device_id": D1, "resource_id": R1}, f"events.{D1}.resources.{R1}.>"),
        (
            {"device_id": D1, "resource_id": R1, "event_type": "resourcechanged"},
            f"events.{D1}.resources.{R1}.resourcechanged",
        ),
        ({"device_id": D1, "event_type": "resourcechanged"}, f"events.{D1}.resources.*.resourcechanged"),
        ({"event_type": "resourcechanged"}, "events.*.resources.*.resourcechanged"),
    ],
)
def test_pattern_is_the_documented_one(arguments, expected):
    assert pattern(**arguments) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"event_type": "bogus"},
        {"family": Family.LINKS, "event_type": "resourcechanged"},
        {"family": Family.METADATA, "resource_id": R1},
    ],
)
def test_pattern_that_could_match_nothing_is_refused(arguments):
    with pytest.raises(DeviceError):
        pattern(**arguments)


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "events",
        "events.D1",
        "events.D1.bogus.x",
        "events..metadata.x",
        "events.D1.resources.R1",
        "other.D1.metadata.x",
    ],
)
def test_subject_of_something_else_is_refused(subject):
    with pytest.raises(DeviceError):
        Address.of(subject)


def test_hrefs_of_links_and_metadata_lead_to_their_aggregates():
    assert AggregateKey.of_href(D1, "/plgd/res") == AggregateKey(D1, Family.LINKS)
    assert AggregateKey.of_href(D1, "/plgd/s").aggregate_id == metadata_id(D1)
    assert AggregateKey(D1, Family.LINKS).aggregate_id == links_id(D1)
    assert AggregateKey.of_href(D1, "/oic/d").resource_id == R1
