"""The block `leafnodes`: every key, and every refusal with what to do."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server import unserved
from jetlake.server.configuration.load import load_text
from jetlake.server.options import LeafListenerOptions, TlsOptions, User
from jetlake.server.options.leafnodes import LeafAuthorization, LinkCompression

KEY = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4"
ACCOUNT_KEY = "ADCB6SYJZP5EH7J3LNQNJNCOQ6S6O7WBN2K5PUVY22MLVZJFLWBLW4BQ"


def leaf_of(keys, rest=""):
    return load_text(f"leafnodes {{ {keys} }}\n{rest}").options.leaf


def listener_of(keys, rest=""):
    return leaf_of(f"port: 7422, {keys}", rest).listener


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()]


def test_server_without_the_block_is_neither_hub_nor_leaf_node():
    assert load_text("port: 4222").options.leaf is None


@pytest.mark.parametrize("name", ["leafnodes", "leaf"])
@pytest.mark.parametrize("keys", ["", "host: a", "port: 0", "remotes: []", "reconnect: '2s'", "listen: 'a:0'"])
def test_block_that_asks_for_nothing_has_no_effect(name, keys):
    assert load_text(f"{name} {{ {keys} }}").options.leaf is None


@pytest.mark.parametrize(
    ("keys", "host", "port"),
    [
        ("port: 7422", "", 7422),
        ("port: -1", "", 0),
        ("listen: 7422", "", 7422),
        ("listen: '127.0.0.1:7422'", "127.0.0.1", 7422),
        ("listen: '[::1]:-1'", "::1", 0),
        ("host: a, port: 1", "a", 1),
        ("net: a, port: 1", "a", 1),
    ],
)
def test_address(keys, host, port):
    listener = leaf_of(keys).listener

    assert (listener.host, listener.port) == (host, port)
    assert listener.listen_host == (host or "0.0.0.0")


def test_every_key_of_the_listener_is_read():
    leaf = leaf_of(
        """
        listen: "10.0.0.1:7422"
        advertise: "hub.example.com:443"
        no_advertise: true
        tls { cert_file: c.pem, key_file: k.pem, verify: true, handshake_first: true }
        authorization { user: edge, password: secret, account: EDGE, timeout: 1.5 }
        compression { mode: s2_auto, rtt_thresholds: ["0s", "20ms"] }
        isolate_leafnode_interest: true
        min_version: "2.10.0"
        reconnect_interval: "3s"
        """,
        "accounts { EDGE {} }",
    )

    assert leaf.reconnect_s == 3.0
    assert leaf.listener == LeafListenerOptions(
        host="10.0.0.1",
        port=7422,
        advertise="hub.example.com:443",
        no_advertise=True,
        tls=TlsOptions(certificate_file="c.pem", key_file="k.pem", verify_clients=True, handshake_first_ms=0),
        authorization=LeafAuthorization(
            users=(User(name="edge", password="secret", account="EDGE"),), default_account="EDGE"
        ),
        auth_timeout_s=1.5,
        compression=LinkCompression(mode="s2_auto", rtt_ms=(0, 20)),
        isolate=True,
        min_version="2.10.0",
    )


@pytest.mark.parametrize(
    ("keys", "advertise"),
    [
        ("advertise: 'hub.example.com'", "hub.example.com:7422"),
        ("advertise: 'hub.example.com:0'", "hub.example.com:7422"),
        ("leafnode_advertise: '[::1]:1'", "[::1]:1"),
        ("advertise: ''", ""),
    ],
)
def test_advertised_address_has_the_port_of_the_listener_unless_it_has_its_own(keys, advertise):
    assert listener_of(keys).advertise == advertise


def test_defaults_are_those_of_nats_server():
    leaf = leaf_of("port: 7422")

    assert leaf.reconnect_s == 1.0
    assert leaf.listener.compression == LinkCompression(mode="s2_auto", rtt_ms=(10, 50, 100))
    assert leaf.listener.login_timeout_s == 2.0
    assert listener_of("tls { cert_file: c, key_file: k, timeout: 4 }").login_timeout_s == 5.0


def test_users_have_accounts_of_their_own():
    listener = listener_of(
        "authorization { users: [{user: a, password: x}, {user: b, password: y, account: B}] }", "accounts { B {} }"
    )

    assert listener.authorization.users == (
        User(name="a", password="x"),
        User(name="b", password="y", account="B"),
    )


def test_key_is_a_user_of_the_account():
    listener = listener_of(f"authorization {{ nkey: {KEY}, account: B }}", "accounts { B {} }")

    assert listener.authorization.users == (User(name=KEY, nkey=True, account="B"),)


def test_account_alone_is_where_leaf_nodes_come_in():
    authorization = listener_of("authorization { account: B }", "accounts { B {} }").authorization

    assert (authorization.users, authorization.default_account) == ((), "B")


@pytest.mark.parametrize(
    ("keys", "mistake"),
    [
        ("nonsense: 2", 'unknown field "nonsense"'),
        ("min_version: '2.7.9'", 'the minimum version should be at least 2.8.0, not "2.7.9"'),
        ("min_version: '2.10'", 'invalid leafnode\'s minimum version: "2.10" is not one such as "2.10.0"'),
        ("advertise: 'a:b:c'", "\"advertise\": 'a:b:c' is not an address"),
        ("advertise: ':1'", "\"advertise\" is ':1': write the host and the port"),
        ("tls {}", "missing 'cert_file' in TLS configuration"),
        ("write_timeout: never", "write_timeout must be 'default', 'close' or 'retry'"),
        ("authorization { token: t }", 'unknown field "token"'),
        ("authorization { password: p }", "a password is given without its user: add the user"),
        ("authorization { nkey: U }", "Not a valid public nkey for leafnode authorization"),
        ("authorization { users: [] }", '"users" is empty'),
        ("authorization { users: [{password: p}] }", "User entry requires a user"),
        (
            "authorization { user: a, password: p, users: [{user: b, password: p}] }",
            "can not have a single user/pass and a users array",
        ),
        (
            f"authorization {{ nkey: {KEY}, users: [{{user: b, password: p}}] }}",
            "can not have a single nkey and a users array",
        ),
        (f"authorization {{ nkey: {KEY}, user: b, password: p }}", "can not have a single user/pass and a single nkey"),
        (
            "authorization { users: [{user: a, password: p}, {user: a, password: q}] }",
            'duplicate user "a" detected in leafnode authorization',
        ),
        ("authorization { account: B }", 'cannot find local account "B" specified in leafnode authorization'),
        (
            "authorization { users: [{user: a, password: p, account: B}] }",
            'cannot find local account "B" specified in leafnode authorization',
        ),
        ("authorization { user: a, password: p, proxy_required: true }", '"proxy_required" is not supported yet'),
        ("remotes: [{url: 'nats://a', account: B}]", 'cannot find local account "B" specified in leafnode remote'),
    ],
)
def test_mistakes_are_named(keys, mistake):
    assert any(each.startswith(mistake) for each in mistakes_of(f"leafnodes {{ port: 7422, {keys} }}"))


@pytest.mark.parametrize("keys", ["port: 65536", "listen: 'a:65536'", "listen: nowhere"])
def test_ports_that_do_not_exist_are_refused(keys):
    assert len(mistakes_of(f"leafnodes {{ {keys} }}")) == 1


def test_no_mistake_shows_a_password():
    mistakes = mistakes_of(
        "leafnodes { port: 1, authorization { user: a, password: hidden, users: [{user: b, password: hidden}] } }"
    )

    assert "hidden" not in "".join(mistakes)


def test_long_time_to_log_in_is_warned_about():
    (warning,) = load_text("leafnodes { port: 1, authorization { timeout: 90 } }").warnings

    assert "90 seconds is high" in warning


def test_keys_without_effect_are_warned_about_at_the_start_and_not_refused():
    configuration = load_text(
        """
        leafnodes {
          port: 7422, write_deadline: "3s", write_timeout: retry
          remotes: [{url: "nats://a", jetstream_cluster_migrate: true, proxy { url: "http://p:1" }}]
        }
        """
    )

    assert configuration.warnings == ()
    warnings = unserved.warnings(configuration.options)
    assert [warning.partition(" of ")[0] for warning in warnings] == [
        '"write_deadline"',
        '"write_timeout"',
        '"proxy"',
        '"jetstream_cluster_migrate"',
    ]


def test_operator_mode_needs_accounts_by_their_keys():
    trust = f"trusted_keys: ODXJPDUSOZEWNYVJQMOPKFZDL3NOYUWDFX7KYCLSFLVJZQFPZLB6VLVB\nsystem_account: {ACCOUNT_KEY}\n"
    remotes = [
        each for each in mistakes_of(f"leafnodes {{ remotes: [{{url: 'nats://a'}}] }}\n{trust}") if "leaf" in each
    ]
    users = mistakes_of(
        "leafnodes { port: 1, authorization { users: [{user: a, password: p}, {user: b, password: p}] } }\n" + trust
    )

    assert any(each.startswith("operator mode requires account nkeys in remotes") for each in remotes)
    assert any(each.startswith("operator mode does not allow specifying users in leafnode config") for each in users)
