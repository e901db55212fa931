"""The options that cross into the engine: what is valid, and what a refusal says."""

import json

import pytest

from jetlake.config import EngineOptions, Limits
from jetlake.errors import ConfigurationError


def test_options_become_one_flat_object():
    fields = json.loads(EngineOptions(host="127.0.0.1", port=0).to_json())

    assert fields == {
        "host": "127.0.0.1",
        "port": 0,
        "server_name": "",
        "version": "2.15.1",
        "git_commit": "",
        "client_advertise": None,
        "max_connections": 65536,
        "max_subscriptions": 0,
        "max_subscription_tokens": 0,
        "max_control_line_bytes": 4096,
        "max_payload_bytes": 1048576,
        "max_pending_bytes": 67108864,
        "write_deadline_ms": 10000,
        "ping_interval_ms": 120000,
        "ping_max": 2,
        "auth_required": False,
        "info_auth_required": None,
        "admits_without_connect": False,
        "nonce": False,
        "system_account": "",
        "server_tags": [],
        "server_metadata": {},
        "message_traces": {},
        "mappings": {},
        "imports": {},
        "max_closed_connections": 10000,
        "tls": None,
        "websocket": None,
        "leaf": None,
        "auth_timeout_ms": 2000,
        "handshake_timeout_ms": 30000,
        "headers": True,
        "fast_producer_stall": True,
        "worker_threads": 0,
        "jetstream": False,
        "domain": None,
        "manual_clock": False,
        "debug": False,
        "trace": False,
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_connections", -1),
        ("max_subscriptions", -1),
        ("max_subscription_tokens", 256),
        ("max_control_line_bytes", 0),
        ("max_payload_bytes", 64 * 1024 * 1024 + 1),
        ("write_deadline_ms", 0),
        ("ping_interval_ms", -5),
    ],
)
def test_limit_out_of_range_is_refused_by_name_with_the_range(field, value):
    with pytest.raises(ConfigurationError, match=f"{field} is {value}: it must be"):
        Limits(**{field: value})


def test_payload_larger_than_what_may_wait_is_refused():
    with pytest.raises(ConfigurationError, match="raise max_pending_bytes"):
        Limits(max_payload_bytes=2000, max_pending_bytes=1000)


def test_empty_host_is_refused():
    with pytest.raises(ConfigurationError, match="host is empty"):
        EngineOptions(host="", port=0)
