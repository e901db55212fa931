"""The configuration file of the service, and the variable JETSTREAM."""

from pathlib import Path

import pytest

from jetlake.devices.settings import Settings, from_environment, parse_settings, read_settings
from jetlake.errors import ConfigurationError

FRAGMENT = """...
clients:
  eventBus:
    nats:
      jetstream: true
...
"""
"""As the documentation has it, dots included."""


def test_fragment_of_the_documentation_is_accepted_as_written(tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(FRAGMENT)

    assert read_settings(path) == Settings(jetstream=True)


def test_jetstream_is_off_unless_told():
    assert not parse_settings("").jetstream
    assert not parse_settings("clients: {eventBus: {nats: {url: 'nats://x:1'}}}").jetstream


def test_every_documented_key_is_read():
    text = """
log: {level: debug}
apis: {grpc: {address: "127.0.0.1:1", subscriptionBufferSize: 5}, http: {address: "127.0.0.1:2"}}
clients:
  eventBus:
    goPoolSize: 16
    nats:
      url: nats://10.0.0.1:4222
      jetstream: false
      flusherTimeout: 5s
      pendingLimits: {msgLimit: -1, bytesLimit: 100}
      tls: {caPool: ca.pem, keyFile: key.pem, certFile: cert.pem, useSystemCAPool: false}
      leadResourceType: {enabled: false, regexFilter: []}
  eventStore: {snapshotThreshold: 4, occMaxRetry: 2, defaultCommandTimeToLive: 10s, use: mongoDB}
"""

    assert parse_settings(text) == Settings(
        url="nats://10.0.0.1:4222",
        flush_timeout_s=5.0,
        pending_messages_max=-1,
        pending_bytes_max=100,
        tls_ca="ca.pem",
        tls_key="key.pem",
        tls_certificate="cert.pem",
        snapshot_threshold=4,
        conflict_retries_max=2,
        time_to_live_ns=10_000_000_000,
        grpc_address="127.0.0.1:1",
        http_address="127.0.0.1:2",
        subscription_buffer_max=5,
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("clients: {eventBus: {nats: {jetsream: true}}}", "unknown key clients.eventBus.nats.jetsream.*jetstream"),
        ("clients: {eventBus: {nats: {jetstream: 'true'}}}", "must be true or false"),
        ("clients: {eventBus: {nats: {pendingLimits: {msgLimit: 0}}}}", "must not be 0"),
        ("clients: {eventStore: {snapshotThreshold: 0}}", "at least 1"),
        ("clients: {eventStore: {snapshotThreshold: true}}", "a whole number"),
        ("clients: {eventStore: {occMaxRetry: -1}}", "negative"),
        ("clients: {eventStore: {defaultCommandTimeToLive: 1ms}}", "100ms"),
        ("clients: {eventBus: {nats: {flusherTimeout: soon}}}", "not a duration"),
        ("clients: {eventBus: {nats: {flusherTimeout: 0s}}}", "more than 0"),
        ("- 1", "must be a mapping"),
        ("a: [", "is not YAML"),
    ],
)
def test_wrong_settings_are_a_clear_error(text, reason):
    with pytest.raises(ConfigurationError, match=reason):
        parse_settings(text)


def test_missing_file_is_a_clear_error(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="no such file"):
        read_settings(tmp_path / "none.yaml")


@pytest.mark.parametrize(("value", "expected"), [("true", True), ("false", False), ("1", False), ("TRUE", False)])
def test_variable_turns_jetstream_on_only_if_it_is_true(value, expected):
    assert from_environment(Settings(), {"JETSTREAM": value}).jetstream is expected
    assert from_environment(Settings(jetstream=True), {"JETSTREAM": value}).jetstream is expected


def test_without_the_variable_the_file_decides():
    assert from_environment(Settings(jetstream=True), {}).jetstream
