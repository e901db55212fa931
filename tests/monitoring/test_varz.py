"""`/varz` from recorded readings."""

import msgspec

from jetlake.monitoring import varz
from jetlake.monitoring.facts import LeafFacts, LeafRemoteFacts, TlsFacts, WebSocketFacts
from jetlake.monitoring.varz import VarzOptions
from tests.monitoring.recorded import JETSTREAM, SECOND_NS, STARTED_NS, as_json, leaf_link, recorded, traffic

ALWAYS_THERE = [
    *["server_id", "server_name", "version", "proto", "git_commit", "go", "host", "port", "max_connections"],
    *["ping_interval", "ping_max", "http_host", "http_port", "http_base_path", "https_port", "auth_timeout"],
    *["max_control_line", "max_payload", "max_pending", "cluster", "gateway", "leaf", "mqtt", "websocket", "jetstream"],
    *["tls_timeout", "write_deadline", "start", "now", "uptime", "mem", "cores", "gomaxprocs", "cpu", "connections"],
    *["total_connections", "routes", "remotes", "leafnodes", "in_msgs", "in_bytes", "in_client_msgs"],
    *["in_client_bytes", "out_msgs", "out_bytes", "out_client_msgs", "out_client_bytes", "slow_consumers"],
    *["stale_connections", "stalled_clients", "subscriptions", "http_req_stats", "config_load_time", "config_digest"],
    *["feature_flags", "system_account", "slow_consumer_stats", "stale_connection_stats", "disk_io_wait_stats"],
]


def build(source):
    return as_json(varz.build(source, VarzOptions()))


def test_the_keys_and_their_order_are_those_of_nats_server():
    assert list(build(recorded())) == ALWAYS_THERE


def test_counters_come_from_the_engine():
    page = build(
        recorded(
            connections=[],
            total_connections=9,
            slow_consumers=2,
            stale_connections=1,
            stalls=4,
            subscriptions=5,
            traffic=traffic(1, 2, 3, 4),
        )
    )

    assert page["total_connections"] == 9
    assert (page["in_msgs"], page["in_bytes"], page["out_msgs"], page["out_bytes"]) == (1, 2, 3, 4)
    assert (page["in_client_msgs"], page["out_client_bytes"]) == (1, 4)
    assert (page["slow_consumers"], page["slow_consumer_stats"]["clients"]) == (2, 2)
    assert (page["stale_connections"], page["stale_connection_stats"]["clients"]) == (1, 1)
    assert (page["stalled_clients"], page["subscriptions"]) == (4, 5)


def test_times_are_texts_and_durations_are_nanoseconds():
    page = build(recorded())

    assert (page["start"], page["now"]) == ("2023-11-14T22:13:20Z", "2023-11-14T23:15:23Z")
    assert page["uptime"] == "1h2m3s"
    assert (page["ping_interval"], page["write_deadline"]) == (120_000_000_000, 10_000_000_000)
    assert page["auth_timeout"] == 2


def test_hub_shows_its_listener_and_counts_its_leaf_nodes():
    facts = LeafFacts(host="127.0.0.1", port=7422, auth_timeout_s=2.0, tls_timeout_s=2.0)

    page = build(recorded({"leaf": facts}, leaf_links=[leaf_link(1), leaf_link(2)]))

    assert page["leaf"] == {"host": "127.0.0.1", "port": 7422, "auth_timeout": 2, "tls_timeout": 2}
    assert page["leafnodes"] == 2


def test_leaf_node_shows_its_hubs_without_what_it_logs_in_with():
    remotes = (
        LeafRemoteFacts(account="B", addresses=("hub:7422",), deny_imports=("x.>",), deny_exports=("y",)),
        LeafRemoteFacts(account="$G", addresses=("a:1", "b:2"), tls_timeout_s=2.0),
    )

    page = build(recorded({"leaf": LeafFacts(remotes=remotes)}))

    assert page["leaf"] == {
        "remotes": [
            {"local_account": "B", "urls": ["hub:7422"], "deny": {"exports": ["y"], "imports": ["x.>"]}},
            {"local_account": "$G", "tls_timeout": 2, "urls": ["a:1", "b:2"]},
        ]
    }


def test_certificates_of_the_listener_for_leaf_nodes_are_shown():
    facts = LeafFacts(host="h", port=1, tls_required=True, tls_verify=True, certificate_expires_unix_ns=STARTED_NS)

    leaf = build(recorded({"leaf": facts}))["leaf"]

    assert (leaf["tls_required"], leaf["tls_verify"]) == (True, True)
    assert leaf["tls_cert_not_after"] == "2023-11-14T22:13:20Z"


def test_listener_for_websocket_is_shown_without_what_is_not_configured():
    facts = WebSocketFacts(host="0.0.0.0", port=8080, allows_plain=True, auth_timeout_s=1.5)

    assert build(recorded())["websocket"] == {}
    assert build(recorded(facts={"websocket": facts}))["websocket"] == {
        "host": "0.0.0.0",
        "port": 8080,
        "auth_timeout": 1.5,
        "no_tls": True,
    }


def test_what_is_configured_is_shown_and_what_is_not_is_left_out():
    tls = TlsFacts(required=True, verify=True, certificate_expires_unix_ns=STARTED_NS + SECOND_NS)

    page = build(
        recorded(
            facts={
                "auth_required": True,
                "tls": tls,
                "max_subscriptions": 99,
                "tags": ("a:b",),
                "metadata": {"x": "y"},
                "connect_urls": ("10.0.0.1:4222",),
                "system_account": "",
            }
        )
    )

    assert (page["auth_required"], page["tls_required"], page["tls_verify"]) == (True, True, True)
    assert (page["max_subscriptions"], page["tags"], page["metadata"]) == (99, ["a:b"], {"x": "y"})
    assert page["tls_cert_not_after"] == "2023-11-14T22:13:21Z"
    assert page["connect_urls"] == ["10.0.0.1:4222"]
    assert "system_account" not in page


def test_jetstream_is_an_empty_object_while_it_is_off():
    assert build(recorded())["jetstream"] == {}


def test_jetstream_shows_its_configuration_and_limits():
    page = build(recorded(facts={"jetstream": JETSTREAM}))

    assert page["jetstream"]["config"] == {
        "max_memory": 1_000,
        "max_storage": 2_000,
        "store_dir": "store/jetstream",
        "sync_interval": 120_000_000_000,
        "strict": True,
    }
    assert page["jetstream"]["stats"]["accounts"] == 2
    assert page["jetstream"]["limits"] == {"max_ack_pending": 7}


def test_every_first_level_number_is_a_number_of_the_struct():
    """A poller makes a gauge of each; a number that became a text would be lost without a word."""
    page = build(recorded())

    for field in msgspec.structs.fields(varz.Varz):
        if field.type in {int, float} and field.name in page:
            assert isinstance(page[field.name], int | float), field.name
