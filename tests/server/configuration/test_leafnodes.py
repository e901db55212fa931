"""The block `leafnodes`: a file that only listens for leaf nodes starts, one that connects to a server does not."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server import unserved
from jetlake.server.configuration.load import load_text


@pytest.mark.parametrize("name", ["leafnodes", "leaf"])
@pytest.mark.parametrize(
    "keys",
    [
        'listen: "0.0.0.0:-1"',
        "port: 7422",
        "port: 7422, host: a, no_advertise: true, advertise: 'a:1', compression: off",
        "port: 7422, authorization { user: a, password: b, timeout: 2 }",
        "port: 7422, tls { cert_file: c.pem, key_file: k.pem }",
        "port: 7422, remotes: []",
    ],
)
def test_listening_for_leaf_nodes_is_warned_about(name, keys):
    configuration = load_text(f"{name} {{ {keys} }}")

    assert configuration.warnings == ()
    (warning,) = unserved.warnings(configuration.options)
    assert warning.startswith("Leaf nodes are not served yet")


@pytest.mark.parametrize("keys", ["", "host: a", "remotes: []", "reconnect: '2s'"])
def test_block_that_asks_for_nothing_is_passed_over(keys):
    assert unserved.warnings(load_text(f"leafnodes {{ {keys} }}").options) == []


def test_connection_to_another_server_is_refused_with_what_to_do():
    with pytest.raises(ConfigurationError) as caught:
        load_text("leafnodes { remotes: [{url: 'nats-leaf://hub:7422'}] }")

    assert str(caught.value).startswith('<text>:1:13: "remotes" of "leafnodes" is not supported yet: ')
    assert "run nats-server" in str(caught.value)


def test_unknown_key_is_refused():
    with pytest.raises(ConfigurationError, match='unknown field "nonsense"'):
        load_text("leafnodes { port: 1, nonsense: 2 }")
