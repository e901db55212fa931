"""Changes that a stream accepts and refuses."""

import pytest

from jetlake.management.streams.config import ConsumerLimits, StreamConfig, StreamRepublish, StreamSource
from jetlake.management.streams.context import ExistingConsumer
from jetlake.management.streams.update import check_consumers, updated, with_republish
from jetlake.management.wire.error_codes import ErrorCode
from jetlake.management.wire.error_codes import RequestError as ApiError

MIRROR = StreamSource(name="A")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"max_msgs": 5, "subjects": ("x",), "compression": "s2", "first_seq": 9}),
        ({"retention": "limits"}, {"retention": "interest"}),
        ({"mirror": MIRROR}, {"subjects": ("x",)}),
        ({"mirror": MIRROR}, {"mirror": MIRROR}),
        ({}, {"deny_delete": True, "deny_purge": True, "allow_msg_ttl": True, "allow_msg_schedules": True}),
        ({"allow_atomic": True}, {"allow_batched": True}),
    ],
)
def test_change_that_is_accepted_is_kept_as_it_is(before, after):
    assert updated(StreamConfig(**before), StreamConfig(**after)) == StreamConfig(**after)


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ({}, {"storage": "memory"}, "can not change storage type"),
        ({}, {"retention": "workqueue"}, "can not change retention policy to/from workqueue"),
        ({"sealed": True}, {}, "can not unseal a sealed stream"),
        ({"deny_delete": True}, {"sealed": True}, "can not cancel deny message deletes"),
        ({"deny_purge": True}, {}, "can not cancel deny purge"),
        ({}, {"mirror": MIRROR}, "stream mirror configuration can not be updated"),
        ({"allow_msg_ttl": True}, {}, "message TTL status can not be disabled"),
        ({}, {"allow_msg_counter": True}, "can not change message counter setting"),
        ({"allow_msg_schedules": True}, {}, "message schedules can not be disabled"),
        ({"persist_mode": "async"}, {}, "can not change persist mode"),
    ],
)
def test_change_that_is_refused(before, after, problem):
    with pytest.raises(ApiError, match=problem):
        updated(StreamConfig(**before), StreamConfig(**after))


def test_sealing_stops_everything_that_changes_a_stream():
    sealed = updated(StreamConfig(), StreamConfig(sealed=True, max_age=5, allow_rollup_hdrs=True))

    assert sealed == StreamConfig(sealed=True, discard="new", deny_delete=True, deny_purge=True)


def test_update_without_a_destination_republishes_everything():
    assert with_republish(StreamConfig(republish=StreamRepublish(src=">"))).republish == StreamRepublish(
        src=">", dest=">"
    )
    with pytest.raises(ApiError, match="stream configuration for republish from 'a' to '>': invalid subject"):
        with_republish(StreamConfig(republish=StreamRepublish(src="a")))


def test_limits_that_existing_consumers_exceed_are_refused():
    consumers = (
        ExistingConsumer(name="c1", max_ack_pending=50),
        ExistingConsumer(name="c2", inactive_threshold=10),
        ExistingConsumer(name="c3"),
    )

    none, limits = ConsumerLimits(), ConsumerLimits(max_ack_pending=49, inactive_threshold=9)

    check_consumers(none, ConsumerLimits(max_ack_pending=50, inactive_threshold=10), consumers)
    check_consumers(none, ConsumerLimits(max_ack_pending=-1), consumers)
    check_consumers(limits, limits, consumers)
    with pytest.raises(ApiError, match="change to limits violates consumers: c1, c2") as raised:
        check_consumers(none, limits, consumers)
    assert raised.value.code is ErrorCode.STREAM_UPDATE
