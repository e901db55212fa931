"""The format of our own, and the API's own JSON."""

import json

import pytest

from jetlake.errors import ConfigurationError
from tests.iac.servers import declared

SECOND_NS = 1_000_000_000


def found(declaration):
    return {resource.title: resource.config for resource in declaration.resources}


def test_sections_are_lists_or_mappings(tmp_path):
    as_list = declared(tmp_path, "streams:\n  - {name: A, consumers: [{name: c, ack_policy: none}]}\n")
    as_mapping = declared(tmp_path, "streams:\n  A:\n    consumers:\n      c: {ack_policy: none}\n")

    assert found(as_list) == found(as_mapping)
    assert list(found(as_list)) == ["stream A", "consumer A/c"]


def test_a_document_may_be_one_thing(tmp_path):
    text = "kind: stream\nname: A\n---\nkind: consumer\nstream: A\nname: c\nack_policy: all\n"

    assert list(found(declared(tmp_path, text))) == ["stream A", "consumer A/c"]


def test_defaults_are_put_where_nothing_is_said(tmp_path):
    text = """
    defaults:
      stream: {storage: memory, max_age: 1h, metadata: {team: core}}
      consumer: {ack_policy: explicit}
    streams:
      A: {max_age: 2h, metadata: {tier: gold}, consumers: {c: {}}}
    """

    things = found(declared(tmp_path, text))

    assert things["stream A"] == {
        "storage": "memory",
        "max_age": 7200 * SECOND_NS,
        "metadata": {"team": "core", "tier": "gold"},
        "name": "A",
    }
    assert things["consumer A/c"]["ack_policy"] == "explicit"


def test_a_bucket_is_the_stream_it_is(tmp_path):
    text = "key_value: [{bucket: b, history: 3, ttl: 1m, limit_marker_ttl: 1h, max_value_size: 1KiB}]"

    assert found(declared(tmp_path, text))["bucket b"] == {
        "name": "KV_b",
        "subjects": ["$KV.b.>"],
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "max_age": 60 * SECOND_NS,
        "duplicate_window": 60 * SECOND_NS,
        "max_msgs_per_subject": 3,
        "deny_delete": True,
        "discard": "new",
        "max_msg_size": 1024,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 3600 * SECOND_NS,
    }


def test_a_bucket_may_copy_others(tmp_path):
    text = "key_value: [{bucket: a}, {bucket: b, mirror: a}, {bucket: c, sources: [a, KV_b]}]"

    things = found(declared(tmp_path, text))

    assert things["bucket b"]["mirror"] == {"name": "KV_a"}
    assert "subjects" not in things["bucket b"]
    assert [source["name"] for source in things["bucket c"]["sources"]] == ["KV_a", "KV_b"]
    assert things["bucket c"]["sources"][0]["subject_transforms"] == [{"src": "$KV.a.>", "dest": "$KV.c.>"}]


def test_an_object_store_is_the_stream_it_is(tmp_path):
    things = found(declared(tmp_path, "object_stores: {files: {max_bytes: 1MiB, compression: true}}"))

    config = things["object store files"]
    assert config["subjects"] == ["$O.files.C.>", "$O.files.M.>"]
    assert (config["max_bytes"], config["compression"], config["discard"]) == (1024**2, "s2", "new")


def test_dead_letters_are_a_stream_and_a_mark(tmp_path):
    things = found(declared(tmp_path, "dead_letters: {DEAD: {max_age: 7d}}\nstreams: {JOBS: {dead_letters: DEAD}}"))

    assert things["dead letters DEAD"]["subjects"] == ["dead.>"]
    assert things["stream JOBS"]["metadata"] == {"jetlake.dead_letters": "DEAD"}


def test_a_template_says_its_stream_inside_or_beside(tmp_path):
    inside = declared(tmp_path, "templates: [{name: t, max_streams: 3, stream: {subjects: [a.*], max_age: 1h}}]")
    beside = declared(tmp_path, "templates: {t: {max_streams: 3, subjects: [a.*], max_age: 1h}}")

    raw = declared(
        tmp_path, '{"name": "t", "max_streams": 3, "config": {"subjects": ["a.*"], "max_age": 3600000000000}}'
    )

    assert found(inside) == found(beside) == found(raw)
    assert found(inside)["template t"] == {
        "name": "t",
        "max_streams": 3,
        "config": {"subjects": ["a.*"], "max_age": 3600 * SECOND_NS},
    }


def test_the_configurations_of_the_seed_are_read(tmp_path):
    logs = {
        "name": "LOGS",
        "subjects": ["logs.>"],
        "retention": "limits",
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": 10737418240,
        "max_age": 86400000000000,
        "max_msg_size": -1,
        "storage": "file",
        "num_replicas": 1,
    }
    tail = {
        "stream_name": "LOGS",
        "config": {
            "delivery_subject": "out.tail",
            "durable_name": "TAIL",
            "start_time": "0001-01-01T00:00:00Z",
            "deliver_all": True,
            "ack_policy": "none",
            "max_deliver": -1,
            "replay_policy": "instant",
        },
    }

    stream = declared(tmp_path, json.dumps(logs), "LOGS.json")
    information = declared(tmp_path, json.dumps({"config": logs, "state": {"messages": 0}}), "info.json")
    consumer = declared(tmp_path, json.dumps(tail), "LOGS_TAIL.json")

    assert found(stream) == found(information) == {"stream LOGS": logs}
    assert found(consumer) == {
        "consumer LOGS/TAIL": {
            "durable_name": "TAIL",
            "deliver_subject": "out.tail",
            "ack_policy": "none",
            "max_deliver": -1,
            "replay_policy": "instant",
            "deliver_policy": "all",
        }
    }


def test_a_consumer_without_ack_policy_is_warned_of(tmp_path):
    declaration = declared(tmp_path, "streams: {A: {}}\nconsumers:\n  - {stream: A, name: c}\n")

    (warning,) = declaration.warnings
    assert warning.endswith("write ack_policy: explicit, or ack_policy: none if that is meant")
    assert ":3: consumer A/c has no ack_policy" in warning


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("streems: {A: {}}", "'streems' is not one of the sections: streams, consumers"),
        ("streems: {A: {}}", "did you mean streams?"),
        ("streams: {A: {}}\n---\nstreams: {A: {}}\n", ":3: stream A is declared already at"),
        ("streams: {a.b: {}}", "'a.b' cannot be the name of a stream: it contains '.'"),
        ("streams: [{subjects: [a]}]", "a stream has no name"),
        ("streams: {A: {name: B}}", "'A' calls itself 'B'"),
        ("streams: [A]", "where names with values belong"),
        ("consumers: [{name: c}]", "consumer c names no stream"),
        ("streams: {A: {consumers: {c: {stream: B}}}}", "stands in stream A and names B"),
        ("consumers: [{stream: A, name: c, durable_name: d}]", "they must be the same"),
        ("consumers: [{stream: A, name: c, filter_subject: a, filter_subjects: [b]}]", "put all into filter_subjects"),
        ("key_value: [{bucket: b, history: 65}]", "1 to 64 are allowed"),
        ("key_value: [{history: 5}]", "has no name"),
        ("templates: {t: {max_streams: 3}}", "template t has no subjects"),
        ("templates: {t: {subjects: [a.*]}}", "template t says no max_streams"),
        ("templates: {t: {subjects: [a.*], max_streams: 3, mirror: A}}", "stream has no field 'mirror'"),
        ("defaults: {streem: {storage: file}}\nstreams: {A: {}}", "'streem' is not one of the defaults"),
        ("kind: thing\nname: A", "'thing' is not one of the kinds"),
        ("config: {name: X, subjects: [x]}\nstreams: {A: {}}", ":2: 'streams' stands beside `config`"),
        ("stream_name: A\nconfig: {durable_name: c}\nkv: {B: {}}", ":3: 'kv' stands beside `config`"),
        ("streams: {A: {mirror: {filter_subject: x}}}", "mirror names no stream: write `name: ORDERS`"),
        ("streams: {A: {mirror: {name: }}}", "mirror names no stream"),
        ("streams: {A: {mirror: {name: ''}}}", "mirror names no stream"),
        ("streams: {A: {mirror: ''}}", "mirror names no stream"),
        ("streams: {A: {sources: [B, {filter_subject: x}]}}", "sources names no stream"),
        ("key_value: {a: {mirror: {filter_subject: x}}}", "mirror names no stream"),
        ('streams: {"A\\ud800": {}}', "is not text that can be written: it contains '\\ud800'"),
        ("- a\n- b", "where names with values belong"),
        ("just text", "where names with values belong"),
        (f"streams: {{{'A' * 256}: {{}}}}", "at most 255"),
    ],
)
def test_mistakes_are_refused_with_their_place(tmp_path, text, message):
    with pytest.raises(ConfigurationError) as refused:
        declared(tmp_path, text)

    assert message in str(refused.value)
    assert "declaration.yaml:" in str(refused.value)
