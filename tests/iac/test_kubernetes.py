"""Manifests of Kubernetes."""

import pytest

from jetlake.errors import ConfigurationError
from tests.iac.servers import declared

SECOND_NS = 1_000_000_000

SEED = """
---
apiVersion: jetstream.nats.io/v1beta1
kind: Stream
metadata:
  name: events
spec:
  name: events
  subjects: ["events.*"]
"""


def test_the_manifest_of_the_seed_is_read_as_written_and_warned_of(tmp_path):
    declaration = declared(tmp_path, SEED)

    (resource,) = declaration.resources
    assert resource.config == {"name": "events", "subjects": ["events.*"], "storage": "memory"}
    tokens, storage = declaration.warnings
    assert "exactly one more token, events.a but not events.a.b" in tokens
    assert "write events.>" in tokens
    assert "names no storage: Kubernetes takes memory" in storage


def test_every_field_of_a_stream_has_its_place(tmp_path):
    text = """
    apiVersion: jetstream.nats.io/v1beta2
    kind: Stream
    metadata: {name: orders, namespace: x, labels: {a: b}}
    spec:
      name: orders
      subjects: [orders.>]
      storage: file
      maxAge: 1h30m
      maxMsgsPerSubject: 5
      discardPerSubject: true
      allowRollup: true
      replicas: 1
      duplicateWindow: 30s
      republish: {source: ">", destination: "copy.>"}
      subjectTransform: {source: "a.>", dest: "b.>"}
      sources: [{name: A, optStartSeq: 3, externalApiPrefix: $JS.x.API, externalDeliverPrefix: d}]
      consumerLimits: {inactiveThreshold: 1m, maxAckPending: 5}
      account: main
      servers: [nats://x]
      preventDelete: true
    """

    (resource,) = declared(tmp_path, text).resources

    assert resource.config == {
        "name": "orders",
        "subjects": ["orders.>"],
        "storage": "file",
        "max_age": 5400 * SECOND_NS,
        "max_msgs_per_subject": 5,
        "discard_new_per_subject": True,
        "allow_rollup_hdrs": True,
        "num_replicas": 1,
        "duplicate_window": 30 * SECOND_NS,
        "republish": {"src": ">", "dest": "copy.>"},
        "subject_transform": {"src": "a.>", "dest": "b.>"},
        "sources": [{"name": "A", "opt_start_seq": 3, "external": {"api": "$JS.x.API", "deliver": "d"}}],
        "consumer_limits": {"inactive_threshold": 60 * SECOND_NS, "max_ack_pending": 5},
    }


def test_consumers_and_buckets_are_read(tmp_path):
    text = """
    apiVersion: v1
    kind: List
    items:
      - apiVersion: jetstream.nats.io/v1beta2
        kind: Consumer
        metadata: {name: w}
        spec: {streamName: orders, durableName: worker, deliverPolicy: byStartSequence, optStartSeq: 5, ackWait: 1ns,
               maxRequestBatch: 10, heartbeatInterval: 5s}
      - {apiVersion: jetstream.nats.io/v1beta2, kind: KeyValue, metadata: {name: sessions}, spec: {history: 5, ttl: 1h}}
      - {apiVersion: jetstream.nats.io/v1beta2, kind: ObjectStore, spec: {bucket: files, compression: true}}
      - {apiVersion: jetstream.nats.io/v1beta1, kind: StreamTemplate,
         spec: {name: t, maxStreams: 3, subjects: [a.*], storage: file}}
    """

    consumer, key_value, objects, template = declared(tmp_path, text).resources

    assert consumer.key == ("consumer", "orders", "worker")
    assert consumer.config == {
        "durable_name": "worker",
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": 5,
        "max_batch": 10,
        "idle_heartbeat": 5 * SECOND_NS,
        "ack_policy": "none",
    }
    assert (key_value.name, key_value.config["max_msgs_per_subject"]) == ("KV_sessions", 5)
    assert (objects.name, objects.config["compression"]) == ("OBJ_files", "s2")
    assert template.config["config"]["subjects"] == ["a.*"]


@pytest.mark.parametrize("item", ["{}", "{kind: Stream}", "{apiVersion: v1}", "7", "[]"])
def test_item_of_a_list_that_is_no_object_is_refused(tmp_path, item):
    with pytest.raises(ConfigurationError, match="give it apiVersion and kind"):
        declared(tmp_path, f"apiVersion: v1\nkind: List\nitems: [{item}]\n")


def test_other_objects_are_passed_over_with_a_word(tmp_path):
    text = SEED + "---\napiVersion: v1\nkind: Service\nmetadata: {name: x}\n"

    declaration = declared(tmp_path, text)

    assert len(declaration.resources) == 1
    assert "a Service of v1 is left out" in declaration.warnings[-1]


def test_a_dollar_in_a_manifest_is_a_dollar(tmp_path):
    text = SEED.replace("events.*", "${events}.>")

    assert declared(tmp_path, text).resources[0].config["subjects"] == ["${events}.>"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("v1beta1", "v2"), "jetstream.nats.io/v2 is not known"),
        (("kind: Stream", "kind: Steram"), "has no kind 'Steram'; did you mean Stream?"),
        (("spec:", "sepc:"), "has no spec"),
        (("  subjects:", "  subject_s:"), ""),
        (("  subjects:", "  subjcts:"), "a stream has no field 'subjcts'; did you mean subjects?"),
    ],
)
def test_mistakes_in_manifests_are_refused_with_their_place(tmp_path, change, message):
    text = SEED.replace(*change)

    if not message:
        assert declared(tmp_path, text).resources[0].config["subjects"] == ["events.*"]
        return
    with pytest.raises(ConfigurationError) as refused:
        declared(tmp_path, text)

    assert message in str(refused.value)
    assert "declaration.yaml:" in str(refused.value)
