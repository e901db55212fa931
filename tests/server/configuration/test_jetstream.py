"""The block `jetstream` of the server; those of accounts are in `test_accounts`."""

import pytest

from jetlake.errors import ConfigurationError
from jetlake.server.configuration import unsupported
from jetlake.server.configuration.load import load_text
from jetlake.server.options import JetStreamOptions


def jetstream_of(text):
    return load_text(text).options.jetstream


def mistakes_of(text):
    with pytest.raises(ConfigurationError) as caught:
        load_text(text)
    return [line.partition(": ")[2] for line in str(caught.value).splitlines()]


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        ("jetstream: true", True),
        ("jetstream: enabled", True),
        ("jetstream: Enable", True),
        ("jetstream: disabled", False),
        ("jetstream: off", False),
        ("jetstream {}", True),
        ("jetstream { enabled: false }", False),
        ("port: 1", False),
    ],
)
def test_switch(text, enabled):
    assert jetstream_of(text).enabled is enabled


def test_block():
    assert jetstream_of("""
        jetstream { store_dir: "/data", max_mem: 1GB, max_file_store: "2T", domain: hub, sync_interval: "1s"
          strict: false, max_buffered_size: "1M", max_buffered_msgs: 10, unique_tag: "az:", max_concurrent_io: 8
          limits { max_ack_pending: 100, max_request_batch: 50, duplicate_window: "1m", max_ha_assets: 3
                   batch { max_msgs: 5, timeout: "1s" } } }
    """) == JetStreamOptions(
        enabled=True,
        store_directory="/data",
        max_memory_bytes=1 << 30,
        max_storage_bytes=2 << 40,
        domain="hub",
        sync_interval_s=1,
        strict=False,
        buffered_bytes_max=1 << 20,
        buffered_messages_max=10,
        max_acknowledgements_pending=100,
        max_request_batch=50,
        duplicate_window_s=60,
        batch_messages_max=5,
        batch_idle_s_max=1,
    )


def test_sync_always():
    options = jetstream_of("jetstream { sync: Always }")

    assert options.sync_always


def test_store_directory_may_stand_outside():
    assert jetstream_of("jetstream: true\nstore_dir: '/data'").store_directory == "/data"
    assert mistakes_of("store_dir: '/a'\njetstream { store_dir: '/b' }") == ["Duplicate 'store_dir' configuration"]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("jetstream: 1", '"jetstream" must be a map, true, false, enabled or disabled, not an integer'),
        ("jetstream { max_mem: '1MB' }", "\"max_memory_store\": '1MB' is not a size"),
        ("jetstream { max_mem: true }", '"max_memory_store" must be a size'),
        ("jetstream { foo: 1 }", 'unknown field "foo"'),
        ("jetstream { sync: sometimes }", "\"sync_interval\": 'sometimes' is not a duration"),
        ("jetstream { limits { foo: 1 } }", 'unknown field "foo"'),
        ("jetstream { limits { batch { foo: 1 } } }", 'unknown field "foo"'),
    ],
)
def test_what_cannot_work_is_refused(text, mistake):
    (line,) = mistakes_of(text)

    assert line.startswith(mistake)


@pytest.mark.parametrize("key", sorted(unsupported.JETSTREAM))
def test_what_is_not_supported_is_one_line_that_shows_no_value(key):
    (line,) = mistakes_of(f"jetstream {{ {key}: hidden }}")

    assert line.startswith(f'"{key}" is not supported yet: ')
    assert "hidden" not in line


@pytest.mark.parametrize(("name", "previous_name"), [("key", "prev_key"), ("ek", "prev_ek")])
def test_keys_are_texts_by_any_of_their_names(name, previous_name):
    options = jetstream_of(f"jetstream {{ {name}: one, {previous_name}: other }}")

    assert (options.key, options.previous_key) == ("one", "other")


def test_a_key_that_is_no_text_is_refused_without_showing_it():
    (line,) = mistakes_of("jetstream { key: 12345 }")

    assert line.startswith('"key" must be ')
    assert "12345" not in line
