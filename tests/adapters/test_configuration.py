"""The formats adapters are configured in: all say the same, and mistakes are named."""

import json

import pytest
import yaml

from jetlake.adapters.configuration import read_file, read_hash
from jetlake.adapters.puppet import parse_manifest
from jetlake.cli.nats_conf import read_nats_conf
from jetlake.errors import ConfigurationError
from tests.seeds.transcript import DOCUMENTS

FLAT = """
# the broker's own settings are left alone
plugin.choria.broker_network = true
plugin.choria.adapters = node_data
plugin.choria.adapter.node_data.type = jetstream
plugin.choria.adapter.node_data.stream.topic = choria.node_metadata
plugin.choria.adapter.node_data.stream.workers = 10
plugin.choria.adapter.node_data.stream.servers = js1.example.net:4222
plugin.choria.adapter.node_data.ingest.topic = choria.discovery
plugin.choria.adapter.node_data.ingest.protocol = request
plugin.choria.adapter.node_data.ingest.workers = 10
"""

CONF = """
port: 4222
choria {
  adapters {
    node_data {
      type: jetstream
      stream { topic: choria.node_metadata, workers: 10, servers: ["js1.example.net:4222"] }
      ingest { topic: choria.discovery, protocol: request, workers: 10 }
    }
  }
}
"""


def printed_manifest():
    return (DOCUMENTS / "choria_jetstream.md").read_text().partition("```puppet\n")[2].partition("```")[0]


@pytest.fixture
def printed(tmp_path):
    """What the document configures, read as it is printed."""
    path = tmp_path / "printed.pp"
    path.write_text(printed_manifest())
    return read_file(path)


def test_the_printed_configuration_is_read_as_printed(printed):
    (adapter,) = printed.adapters
    assert printed.problems == ()
    assert (adapter.name, adapter.kind) == ("node_data", "jetstream")
    assert (adapter.stream.topic, adapter.stream.workers) == ("choria.node_metadata", 10)
    assert adapter.stream.servers == ("js1.example.net:4222",)
    assert (adapter.ingest.topic, adapter.ingest.protocol, adapter.ingest.workers) == (
        "choria.discovery",
        "request",
        10,
    )
    assert adapter.group == "nats_ingest_node_data"
    assert adapter.queue_messages_max == 1000


@pytest.mark.parametrize("form", ["yaml", "json", "hiera", "bare", "flat", "conf"])
def test_every_format_says_the_same(printed, tmp_path, form):
    content = parse_manifest(printed_manifest())
    name, text = {
        "yaml": ("a.yaml", yaml.safe_dump(content)),
        "json": ("a.json", json.dumps(content)),
        "hiera": ("a.yaml", yaml.safe_dump({"choria::broker::adapters": content["adapters"]})),
        "bare": ("a.json", json.dumps(content["adapters"])),
        "flat": ("a.cfg", FLAT),
        "conf": ("a.conf", CONF),
    }[form]
    (tmp_path / name).write_text(text)

    assert read_file(tmp_path / name, read_nats_conf).adapters == printed.adapters


def test_the_type_may_stand_beside_the_stream_or_in_it():
    beside = {"a": {"type": "choria_streams", "ingest": {"topic": "x"}, "stream": {}}}
    inside = {"a": {"ingest": {"topic": "x"}, "stream": {"type": "choria_streams"}}}

    assert read_hash({"adapters": beside}).adapters == read_hash({"adapters": inside}).adapters


def test_defaults_are_those_of_the_original():
    (adapter,) = read_hash({"adapters": {"a": {"type": "jetstream", "ingest": {"topic": "x"}}}}).adapters

    assert adapter.stream.topic == "a"
    assert adapter.stream.workers == adapter.ingest.workers == 10
    assert adapter.ingest.protocol == "reply"
    assert adapter.stream.servers == ()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"ingest": {"topic": "x"}}, "adapter a: type is missing"),
        ({"type": "jetstrem", "ingest": {"topic": "x"}}, "did you mean jetstream"),
        ({"type": "nats_stream", "ingest": {"topic": "x"}}, "NATS Streaming is no longer there"),
        ({"type": "jetstream"}, "ingest: topic is missing"),
        ({"type": "jetstream", "ingest": {"topic": "a b"}}, "not a subject"),
        ({"type": "jetstream", "ingest": {"topic": "x", "protocol": "reqest"}}, "must be one of request, reply, raw"),
        ({"type": "jetstream", "ingest": {"topic": "x", "workers": 0}}, "from 1 to 100"),
        ({"type": "jetstream", "ingest": {"topic": "x", "workers": "many"}}, "whole number"),
        ({"type": "jetstream", "ingest": {"topic": "x"}, "stream": {"topic": "a.*"}}, "cannot be published to"),
        ({"type": "jetstream", "ingest": {"topic": "x"}, "stream": {"servers": ["js1"]}}, "write host:port"),
        ({"type": "jetstream", "ingest": {"topic": "x"}, "queue_length": 5}, "did you mean queue_len"),
        ({"type": "jetstream", "ingest": {"topic": "x"}, "queue_wait": "1h"}, "at most 9s"),
        ({"type": "jetstream", "ingest": {"topic": "x", "verify": {}}}, "ca is missing"),
        ({"type": "jetstream", "ingest": "x"}, "ingest: must be a map"),
        ("nonsense", "adapter a: must be a map"),
    ],
)
def test_a_mistake_is_named_and_the_other_adapters_are_read(content, problem):
    good = {"type": "jetstream", "ingest": {"topic": "x"}}

    configuration = read_hash({"adapters": {"a": content, "good": good}})

    assert [adapter.name for adapter in configuration.adapters] == ["good"]
    assert any(problem in each for each in configuration.problems), configuration.problems


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.yaml", "a: [", "not YAML"),
        ("a.json", "{", "not JSON"),
        ("a.yaml", "- a", "no map"),
        ("a.yaml", "nothing: 1", "no adapter is configured"),
        ("a.cfg", "plugin.choria.broker_network = 1", "configures no adapter"),
        ("a.pp", "class{'x': adapters => $adapters }", "not understood"),
        ("a.pp", "class{'x': adapters => {", "key is expected"),
        ("a.pp", "define x", "begins with class"),
        ("a.pp", 'class{"x": adapters => "${y}" }', "variables are not understood"),
        ("a.pp", "class{'x': a => " + "{a => " * 100, "nested deeper"),
        ("a.conf", "choria {", "map"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, text, reason):
    (tmp_path / name).write_text(text)

    with pytest.raises(ConfigurationError, match=reason):
        read_file(tmp_path / name, read_nats_conf)


def test_settings_of_an_adapter_that_is_not_listed_are_reported(tmp_path):
    (tmp_path / "a.cfg").write_text(FLAT + "plugin.choria.adapter.other.type = jetstream\n")

    assert "adapter other has settings" in read_file(tmp_path / "a.cfg").problems[0]
