"""What a server makes of a configuration is what is expected of it: on both servers, nothing differs after a create."""

import pytest

from jetlake.iac.normal import normal_consumer, normal_stream
from tests.iac.servers import request

SECOND_NS = 1_000_000_000

STREAMS = {
    "nothing": {},
    "limits of zero": {"max_msgs": 0, "max_bytes": -5, "max_consumers": 0, "max_msg_size": 0, "num_replicas": 0},
    "a short age": {"max_age": 30 * SECOND_NS},
    "a window of its own": {"duplicate_window": 5 * SECOND_NS},
    "markers": {"subject_delete_marker_ttl": SECOND_NS, "subjects": ["m.>"]},
    "schedules": {"allow_msg_schedules": True, "subjects": ["s.>"]},
    "republish": {"republish": {"src": "", "dest": "copy.>"}, "subjects": ["r.>"]},
    "republish to nowhere": {"republish": {"src": "r.>", "dest": ""}, "subjects": ["r.>"]},
    "a transform": {"subject_transform": {"src": "t.>", "dest": "u.>"}, "subjects": ["t.>"]},
    "a mirror": {"mirror": {"name": "ORIGIN", "opt_start_seq": 1}, "mirror_direct": True},
    "sources": {
        "sources": [
            {"name": "ORIGIN", "filter_subject": "a.>", "opt_start_time": "2026-01-01T01:00:00+01:00"},
            {"name": "OTHER", "subject_transforms": [{"src": "b.>", "dest": "c.>"}], "external": None},
        ]
    },
    "sources and subjects": {"sources": [{"name": "ORIGIN"}], "subjects": ["x", "w"]},
    "limits of consumers": {"consumer_limits": {"max_ack_pending": 7, "inactive_threshold": 60 * SECOND_NS}},
    "placement of nothing": {"placement": {}},
    "placement": {"placement": {"cluster": "", "tags": []}},
    "words": {"discard": "NEW", "persist_mode": "default", "compression": "s2"},
    "metadata": {"metadata": {"a": "b"}},
    "a work queue": {
        "retention": "workqueue",
        "discard": "new",
        "max_msgs_per_subject": 1,
        "discard_new_per_subject": True,
    },
    "flags": {"deny_delete": True, "deny_purge": True, "allow_direct": True, "allow_atomic": True, "first_seq": 100},
    "counters": {"allow_msg_counter": True},
    "asynchronous": {"persist_mode": "async"},
}

CONSUMERS = {
    "nothing": {},
    "explicit": {"ack_policy": "explicit"},
    "back-off": {"ack_policy": "explicit", "backoff": [SECOND_NS, 2 * SECOND_NS], "max_deliver": 3},
    "one filter": {"filter_subject": "S.a"},
    "one filter in a list": {"filter_subjects": ["S.a"]},
    "filters": {"filter_subjects": ["S.b", "S.a"]},
    "limits of zero": {"max_deliver": 0, "max_waiting": 0, "ack_policy": "all", "max_ack_pending": -1},
    "push": {"deliver_subject": "out", "ack_policy": "explicit", "idle_heartbeat": SECOND_NS, "flow_control": True},
    "flow control": {"deliver_subject": "out", "ack_policy": "flow_control", "max_ack_pending": 10},
    "sampled": {"sample_freq": "100%", "ack_policy": "explicit"},
    "from a time": {"deliver_policy": "by_start_time", "opt_start_time": "2026-01-01T01:00:00.50+01:00"},
    "pinned": {"priority_policy": "pinned_client", "priority_groups": ["g"], "ack_policy": "explicit"},
    "no priority": {"priority_policy": "none"},
    "requests": {"max_batch": 5, "max_expires": SECOND_NS, "max_bytes": 1000, "inactive_threshold": 60 * SECOND_NS},
    "metadata": {"metadata": {"a": "b"}, "description": "d", "headers_only": True, "mem_storage": True},
}


@pytest.mark.parametrize("case", STREAMS)
def test_a_stream_is_normal_before_and_after_it_is_made(server, case):
    config = {"name": "S", **STREAMS[case]}
    for origin in ("ORIGIN", "OTHER"):
        request(server, f"STREAM.CREATE.{origin}", {"name": origin, "allow_direct": True})

    made = request(server, "STREAM.CREATE.S", config)["config"]

    assert normal_stream(config) == normal_stream(made)


@pytest.mark.parametrize("limits", [{}, {"max_ack_pending": 7, "inactive_threshold": 60 * SECOND_NS}])
@pytest.mark.parametrize("case", CONSUMERS)
def test_a_consumer_is_normal_before_and_after_it_is_made(server, case, limits):
    stream = {"name": "S", "subjects": ["S.>"], "consumer_limits": limits}
    config = {"durable_name": "c", **CONSUMERS[case]}
    if limits and config.get("max_ack_pending", 0) > limits["max_ack_pending"]:
        config["max_ack_pending"] = limits["max_ack_pending"]
    request(server, "STREAM.CREATE.S", stream)

    made = request(server, "CONSUMER.CREATE.S.c", {"stream_name": "S", "config": config})["config"]

    normal = normal_stream(stream)
    assert normal_consumer(config, normal) == normal_consumer(made, normal)


@pytest.mark.parametrize("case", STREAMS)
def test_normalising_twice_changes_nothing(case):
    once = normal_stream({"name": "S", **STREAMS[case]})

    assert normal_stream({"name": "S", **once}) == once
