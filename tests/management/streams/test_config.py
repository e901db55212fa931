"""The configuration as a value."""

from jetlake.management.streams.config import STREAM_CONFIG, STREAM_CONFIG_REQUEST, StreamConfig, StreamSource
from jetlake.management.wire.json_dialect import read_request, write_json

FULL = (
    '{"name":"S","description":"d","subjects":["a","b.*"],"retention":"workqueue","max_consumers":3,"max_msgs":4,'
    '"max_bytes":5,"max_age":100000000,"max_msgs_per_subject":1,"max_msg_size":7,"discard":"new","storage":"memory",'
    '"num_replicas":1,"no_ack":true,"duplicate_window":100000000,"placement":{"cluster":"c","tags":["t"]},'
    '"mirror":{"name":"M","opt_start_seq":4,"opt_start_time":"2020-01-01T00:00:00Z","filter_subject":"x",'
    '"subject_transforms":[{"src":"q","dest":""}],"external":{"api":"$JS.X.API","deliver":""},'
    '"consumer":{"name":"c","deliver_subject":"d"}},"sources":[{"name":"A"},{"name":"B"}],"compression":"s2",'
    '"first_seq":9,"subject_transform":{"src":"a","dest":"c"},"republish":{"src":"a","dest":"r","headers_only":true},'
    '"allow_direct":true,"mirror_direct":true,"discard_new_per_subject":true,"sealed":true,"deny_delete":true,'
    '"deny_purge":true,"allow_rollup_hdrs":true,"consumer_limits":{"inactive_threshold":5,"max_ack_pending":6},'
    '"allow_msg_ttl":true,"subject_delete_marker_ttl":1000000000,"allow_msg_counter":true,"allow_atomic":true,'
    '"allow_msg_schedules":true,"persist_mode":"async","allow_batched":true,"metadata":{"a":"2","z":"1"}}'
)
EMPTY = (
    '{"name":"","retention":"limits","max_consumers":0,"max_msgs":0,"max_bytes":0,"max_age":0,'
    '"max_msgs_per_subject":0,"discard":"old","storage":"file","num_replicas":0,"compression":"none",'
    '"allow_direct":false,"mirror_direct":false,"sealed":false,"deny_delete":false,"deny_purge":false,'
    '"allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false}'
)


def test_full_configuration_is_written_as_it_was_read():
    config = read_request(STREAM_CONFIG_REQUEST, FULL.encode()).value.config

    assert write_json(config.to_json()).decode() == FULL


def test_empty_configuration_shows_what_is_always_written():
    assert write_json(StreamConfig().to_json()).decode() == EMPTY


def test_configuration_that_was_written_can_be_read_again():
    config = read_request(STREAM_CONFIG_REQUEST, FULL.encode()).value.config

    assert StreamConfig.from_json(write_json(config.to_json())) == config


def test_every_attribute_is_a_field_and_in_its_order():
    assert tuple(field.key for field in STREAM_CONFIG.fields) == StreamConfig.__struct_fields__


def test_configuration_is_a_value():
    assert StreamConfig(name="S") == StreamConfig(name="S")
    assert StreamConfig(sources=(StreamSource(name="A"),)) != StreamConfig(sources=(StreamSource(name="B"),))
