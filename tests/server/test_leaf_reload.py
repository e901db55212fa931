"""What of the block `leafnodes` a reload changes, and what it refuses in nats-server's words."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration.load import load_text
from jetlake.server.leaf_reload import LISTENER_FIELDS, REMOTE_FIELDS, plan_leaf_reload
from jetlake.server.options import LeafListenerOptions, LeafRemote

A = 'urls=["nats://u:xxxxx@a:7422"], account="$G"'


def leaf(keys):
    return load_text(f"leafnodes {{ {keys} }}\naccounts {{ EDGE {{}} }}").options.leaf


def plan(old, new):
    return plan_leaf_reload(leaf(old), leaf(new))


def remotes(*keys):
    return "remotes: [ " + ", ".join(f"{{ url: 'nats://u:hidden@a', {each} }}" for each in keys) + " ]"


def test_same_block_changes_nothing():
    text = f"port: -1, authorization {{ user: a, password: b }}, {remotes('hub: true')}"

    assert plan(text, text) == []
    assert plan("", "") == []


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("port: -1", "port: -1, compression: s2_fast", "Compression value is: {s2_fast []}"),
        ("", remotes(""), f"Remote {A} added"),
        (remotes(""), "", f"Remote {A} removed"),
        (remotes(""), remotes("disabled: true"), f"Remote {A} Disabled value is: true"),
        (remotes("disabled: true"), remotes(""), f"Remote {A} Disabled value is: false"),
        (remotes("compression: off"), remotes(""), f"Remote {A} Compression value is: {{s2_auto [10ms 50ms 100ms]}}"),
        (
            remotes("tls { insecure: true }"),
            remotes("tls { insecure: true, first: true }"),
            f"Remote {A} TLS HandshakeFirst value is: true",
        ),
        (
            "port: -1, tls { cert_file: c, key_file: k }",
            "port: -1, tls { cert_file: c, key_file: k, first: true }",
            "TLS HandshakeFirst value is: true",
        ),
    ],
)
def test_change_has_a_line(old, new, line):
    assert plan(old, new) == [f"Reloaded: LeafNode {line}"]


def test_certificates_change_without_a_line():
    assert plan(remotes("tls { ca_file: a }"), remotes("tls { ca_file: b }")) == []


def test_remote_with_other_credentials_is_another_one():
    lines = plan(remotes("credentials: a"), remotes("credentials: b"))

    assert lines == [
        f'Reloaded: LeafNode Remote {A}, credentials="a" removed',
        f'Reloaded: LeafNode Remote {A}, credentials="b" added',
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "port: 7422", 'field "Port": old=0, new=7422'),
        ("port: 7422", "port: 7422, host: a", 'field "Host": old=, new=a'),
        ("port: 1", "port: 1, isolate: true", 'field "IsolateLeafnodeInterest": old=false, new=true'),
        ("port: 1", "port: 1, min_version: '2.9.0'", 'field "MinVersion": old=, new=2.9.0'),
        ("port: 1", "port: 1, authorization { account: EDGE }", 'field "Account": old=$G, new=EDGE'),
        (
            "port: 1, authorization { user: a, password: hidden }",
            "port: 1, authorization { user: a, password: hidden2 }",
            'field "Users": old=[REDACTED], new=[REDACTED]',
        ),
        ("port: 1", "port: 1, reconnect: '5s'", 'field "ReconnectInterval": old=1s, new=5s'),
        ("port: 1", "port: 1, tls { cert_file: c, key_file: k }", 'field "TLSConfig": old=disabled, new=enabled'),
        (remotes(""), remotes("hub: true"), f'remote {A}: field "Hub": old=false, new=true'),
        (
            remotes(""),
            remotes("deny_imports: x"),
            f"remote {A}: field \"DenyImports\": old=[], new=['x']",
        ),
    ],
)
def test_change_that_cannot_be_is_refused(old, new, reason):
    with pytest.raises(ConfigurationError) as caught:
        plan(old, new)

    assert str(caught.value) == (
        f"config reload not supported for LeafNode: {reason}; restart the server for this change"
    )


def test_order_of_users_does_not_matter():
    users = ["{user: a, password: p}", "{user: b, password: p}"]
    old, new = (f"port: 1, authorization {{ users: [{', '.join(each)}] }}" for each in (users, users[::-1]))

    assert plan(old, new) == []


def test_every_field_is_compared_or_may_change():
    """A field that nobody looks at would be lost in a reload without a word."""

    class Spy:
        def __init__(self, fields):
            self._fields, self.looked_at = fields, set()

        def __getattr__(self, name):
            self.looked_at.add(name)
            return getattr(self._fields, name)

    listener = Spy(LeafListenerOptions(port=1))
    remote = Spy(LeafRemote(urls=()))
    for spy, fields in ((listener, LISTENER_FIELDS), (remote, REMOTE_FIELDS)):
        for _, get in fields:
            get(spy)

    assert set(LeafListenerOptions.__struct_fields__) - listener.looked_at == {"compression"}
    # Its identity, what may change, and what has no effect.
    identity = {"urls", "account", "credentials_file", "seed"}
    assert set(LeafRemote.__struct_fields__) - remote.looked_at == {
        *identity,
        "compression",
        "disabled",
        "without_effect",
    }
