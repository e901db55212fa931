"""Options of a node: Choria's keys and YAML say the same; mistakes are named."""

import pytest

from jetlake.agents.options import read_node_file
from jetlake.errors import ConfigurationError

KEYS = """
identity = web1.example.net
collectives = mcollective, ldn
plugin.choria.middleware_hosts = a.example.net:4222, b.example.net:4222
registration = file_content, inventory_content
registerinterval = 60
registration_splay = false
plugin.choria.registration.file_content.data = /etc/inventory.json
plugin.choria.registration.file_content.target = choria.discovery
plugin.choria.registration.inventory_content.compression = 0
plugin.choria.registration.size_trigger = 100
plugin.yaml = /etc/facts.yaml
"""

YAML = """
identity: web1.example.net
collectives: [mcollective, ldn]
server: [a.example.net:4222, b.example.net:4222]
facts: /etc/facts.yaml
registration:
  interval: 1m
  splay: false
  size_trigger: 100
  file_content: {data: /etc/inventory.json, target: choria.discovery}
  inventory_content: {compression: false}
"""


def read(tmp_path, text, name="server.conf"):
    (tmp_path / name).write_text(text)
    return read_node_file(tmp_path / name)


def facts(options):
    return (
        options.identity,
        options.collectives,
        options.servers,
        options.registration,
        options.facts_file,
        options.main_collective,
    )


def test_keys_and_yaml_say_the_same(tmp_path):
    keys, written = read(tmp_path, KEYS), read(tmp_path, YAML, "node.yaml")

    assert facts(keys) == facts(written)
    assert keys.registration.interval_s == 60
    assert [publisher.target for publisher in keys.registration.publishers] == [
        "choria.discovery",
        "mcollective.broadcast.agent.registration",
    ]
    assert [publisher.compression for publisher in keys.registration.publishers] == [True, False]


def test_defaults_are_those_of_the_original(tmp_path):
    options = read(tmp_path, "")

    assert options.identity
    assert options.main_collective == "mcollective"
    assert options.registration.publishers == ()
    assert options.registration.interval_s == 300
    assert options.registration.splay is True
    assert options.registration.size_interval_s == 30
    assert options.component == "server"


def test_the_main_collective_comes_first(tmp_path):
    options = read(tmp_path, "main_collective = ldn\ncollectives = mcollective,ldn\n")

    assert options.collectives == ("ldn", "mcollective")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("registration = facts", "'facts' is unknown; there are file_content and inventory_content"),
        ("registration = file_content", "file_content.data is missing"),
        ("registerinterval = 0", "at least 1 second"),
        ("registerinterval = soon", "write seconds"),
        ("registration_splay = maybe", "true or false"),
        ("plugin.choria.registration.size_trigger = -1", "number of bytes"),
        ("registration = inventory_content\nplugin.choria.registration.inventory_content.target = a.*", "wildcards"),
        ("plugin.security.file.certificate = x.pem", "belong together"),
        ("nonsense", "is not a setting"),
    ],
)
def test_mistakes_are_named(tmp_path, text, reason):
    with pytest.raises(ConfigurationError, match=reason):
        read(tmp_path, text)


@pytest.mark.parametrize(("text", "reason"), [("a: [", "not YAML"), ("- a", "no map"), ("a: [{}]", "list of texts")])
def test_yaml_that_cannot_be_used_is_refused(tmp_path, text, reason):
    with pytest.raises(ConfigurationError, match=reason):
        read(tmp_path, text, "node.yaml")
