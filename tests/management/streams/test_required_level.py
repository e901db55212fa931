"""Levels that configurations ask for."""

import pytest

from jetlake.management.streams.config import StreamConfig
from jetlake.management.streams.required_level import required_level, with_required_level, with_server_versions


@pytest.mark.parametrize(
    ("config", "level"),
    [
        (StreamConfig(), 0),
        (StreamConfig(allow_msg_ttl=True), 1),
        (StreamConfig(subject_delete_marker_ttl=1_000_000_000), 1),
        (StreamConfig(allow_msg_counter=True), 2),
        (StreamConfig(allow_atomic=True, allow_msg_ttl=True), 2),
        (StreamConfig(allow_msg_schedules=True), 2),
        (StreamConfig(persist_mode="async"), 2),
        (StreamConfig(allow_batched=True, allow_atomic=True), 4),
    ],
)
def test_level_is_that_of_the_newest_feature(config, level):
    assert required_level(config) == level


def test_what_a_client_says_about_versions_is_not_kept():
    said = {"_nats.ver": "9", "_nats.level": "9", "_nats.req.level": "9", "_nats.x": "y", "k": "v"}

    config = with_required_level(StreamConfig(metadata=said, allow_msg_ttl=True))

    assert config.metadata == {"_nats.x": "y", "k": "v", "_nats.req.level": "1"}


def test_answer_tells_the_level_and_the_version_of_the_server():
    config = with_server_versions(with_required_level(StreamConfig()))

    assert config.metadata == {"_nats.req.level": "0", "_nats.level": "5", "_nats.ver": "2.15.1"}
