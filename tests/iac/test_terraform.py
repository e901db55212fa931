"""Terraform's resources of the provider jetstream."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.iac.reader import read
from tests.iac.servers import declared

SECOND_NS = 1_000_000_000

SEED = """
provider "jetstream" {
  servers = "localhost"
}

resource "jetstream_stream" "LOGS" {
  name     = "LOGS"
  subjects = ["logs.*"]
  storage  = "file"
  max_age  = 60 * 60 * 24 * 365
}

resource "jetstream_consumer" "LOGS_TAIL" {
  stream_id      = jetstream_stream.LOGS.id
  durable_name   = "TAIL"
  deliver_all    = true
}
"""


def test_the_resources_of_the_seed_are_read(tmp_path):
    declaration = declared(tmp_path, SEED, "main.tf")

    stream, consumer = declaration.resources
    assert stream.config == {
        "name": "LOGS",
        "subjects": ["logs.*"],
        "storage": "file",
        "max_age": 365 * 86400 * SECOND_NS,
        "allow_direct": True,
        "duplicate_window": 120 * SECOND_NS,
    }
    assert consumer.key == ("consumer", "LOGS", "TAIL")
    assert consumer.config == {
        "durable_name": "TAIL",
        "deliver_policy": "all",
        "ack_policy": "explicit",
        "max_ack_pending": 20_000,
    }
    assert "exactly one more token" in declaration.warnings[0]


def test_every_kind_of_resource_is_read(tmp_path):
    text = """
    variable "team" { default = "core" }
    locals { day = 24 * 60 * 60 }
    resource "jetstream_stream" "A" {
      name                  = "A"
      subjects              = ["a.>"]
      ack                   = false
      replicas              = 1
      placement_cluster     = "east"
      placement_tags        = ["ssd"]
      republish_source      = ">"
      republish_destination = "copy.>"
      max_ack_pending       = 5
      metadata              = { team = "${var.team}-x" }
      subject_transform { source = "a.>"
                          destination = "b.>" }
      depends_on = [jetstream_kv_bucket.b]
    }
    resource "jetstream_stream" "B" {
      name = "B"
      source { name = jetstream_stream.A.name }
      source { name = "C"
               filter_subject = "c.>"
               external { api = "$JS.x.API" } }
    }
    resource "jetstream_consumer" "P" {
      stream_id        = "JETSTREAM_STREAM_A"
      durable_name     = "P"
      delivery_subject = "out"
      stream_sequence  = 7
      ack_policy       = "none"
      heartbeat        = 5
      ratelimit        = 1000
      backoff          = [1, 5]
    }
    resource "jetstream_kv_bucket" "b" {
      name = "b"
      ttl  = local.day
      max_bucket_size = 1024
    }
    resource "jetstream_obj_bucket" "o" { name = "o" }
    resource "jetstream_stream_template" "t" {
      name = "t"
      max_streams = 3
      subjects = ["t.*"]
    }
    resource "jetstream_kv_entry" "e" { bucket = "b" }
    output "x" { value = 1 }
    """

    declaration = declared(tmp_path, text, "main.tf")
    things = {resource.name: resource.config for resource in declaration.resources}

    assert things["A"] == {
        "allow_direct": True,
        "duplicate_window": 120 * SECOND_NS,
        "name": "A",
        "subjects": ["a.>"],
        "no_ack": True,
        "num_replicas": 1,
        "placement": {"cluster": "east", "tags": ["ssd"]},
        "republish": {"src": ">", "dest": "copy.>"},
        "consumer_limits": {"max_ack_pending": 5},
        "metadata": {"team": "core-x"},
        "subject_transform": {"src": "a.>", "dest": "b.>"},
    }
    assert things["B"]["sources"] == [
        {"name": "A"},
        {"name": "C", "filter_subject": "c.>", "external": {"api": "$JS.x.API"}},
    ]
    assert things["P"] == {
        "durable_name": "P",
        "deliver_subject": "out",
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": 7,
        "ack_policy": "none",
        "idle_heartbeat": 5 * SECOND_NS,
        "rate_limit_bps": 1000,
        "backoff": [SECOND_NS, 5 * SECOND_NS],
    }
    assert (things["KV_b"]["max_age"], things["KV_b"]["max_msgs_per_subject"]) == (86400 * SECOND_NS, 5)
    assert {"OBJ_o", "t"} <= things.keys()
    assert any("jetstream_kv_entry is left out" in warning for warning in declaration.warnings)


def test_files_of_a_folder_see_each_other(tmp_path):
    stream, consumer = SEED.split('resource "jetstream_consumer"')
    (tmp_path / "b.tf").write_text(stream)
    (tmp_path / "a.tf").write_text('resource "jetstream_consumer"' + consumer)

    assert {resource.title for resource in read([tmp_path], {}, {}).resources} == {"stream LOGS", "consumer LOGS/TAIL"}


def test_variables_come_from_the_line_the_environment_and_their_default(tmp_path):
    text = 'variable "name" { default = "C" }\nresource "jetstream_stream" "x" { name = var.name }'
    path = tmp_path / "main.tf"
    path.write_text(text)

    names = [
        read([path], given, environment).resources[0].name
        for given, environment in (({"name": "A"}, {"TF_VAR_name": "B"}), ({}, {"TF_VAR_name": "B"}), ({}, {}))
    ]

    assert names == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("max_age ", "max_aeg "), ":10: a stream has no field 'max_aeg'; did you mean max_age?"),
        (
            ("jetstream_stream.LOGS.id", "jetstream_stream.LOG.id"),
            ":14: there is no jetstream_stream 'LOG'; did you mean LOGS?",
        ),
        (("jetstream_stream.LOGS.id", "var.stream"), "there is no variable 'stream'"),
        (("jetstream_stream.LOGS.id", "module.x.y"), "module.x.y is not known here"),
        (('"LOGS"\n  subjects', "jetstream_stream.LOGS.name\n  subjects"), "refers to itself"),
        (("storage  =", "count = 2\n  storage ="), "count is not read"),
        (("deliver_all    = true", "deliver_all = true\n  deliver_last = true"), "starts in two ways"),
        (('"jetstream_stream" "LOGS"', '"jetstream_steram" "LOGS"'), "did you mean jetstream_stream?"),
        (('provider "jetstream"', "module"), "a block module is not read"),
    ],
)
def test_mistakes_are_refused_with_their_place(tmp_path, change, message):
    with pytest.raises(ConfigurationError) as refused:
        declared(tmp_path, SEED.replace(*change, 1), "main.tf")

    assert message in str(refused.value)
    assert "main.tf:" in str(refused.value)
