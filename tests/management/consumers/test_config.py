"""The configuration as a value."""

from jetlake.management.consumers.config import CONSUMER_CONFIG, ConsumerConfig
from jetlake.management.wire.json_dialect import write_json

FULL = (
    '{"durable_name":"C","name":"C","description":"d","deliver_policy":"by_start_time","opt_start_seq":4,'
    '"opt_start_time":"2020-01-01T00:00:00+01:00","ack_policy":"explicit","ack_wait":5,"max_deliver":6,"backoff":[7,8],'
    '"filter_subject":"a","filter_subjects":["b","c"],"replay_policy":"original","rate_limit_bps":9,'
    '"sample_freq":"10%","max_waiting":11,"max_ack_pending":12,"flow_control":true,"headers_only":true,"max_batch":13,'
    '"max_expires":14,"max_bytes":15,"deliver_subject":"x","deliver_group":"g","idle_heartbeat":16,'
    '"inactive_threshold":17,"num_replicas":1,"mem_storage":true,"direct":true,"sourcing":true,'
    '"metadata":{"a":"2","z":"1"},"pause_until":"2030-01-01T00:00:00Z","priority_groups":["g"],'
    '"priority_policy":"pinned_client","priority_timeout":18}'
)
EMPTY = '{"deliver_policy":"all","ack_policy":"none","replay_policy":"instant","num_replicas":0}'


def test_full_configuration_is_written_as_it_was_read():
    assert write_json(ConsumerConfig.from_json(FULL.encode()).to_json()).decode() == FULL


def test_empty_configuration_shows_what_is_always_written():
    assert write_json(ConsumerConfig().to_json()).decode() == EMPTY
    assert ConsumerConfig.from_json(b'{"priority_policy":"none","deliver_policy":"undefined"}') == ConsumerConfig()


def test_every_attribute_is_a_field_and_in_its_order():
    assert tuple(field.key for field in CONSUMER_CONFIG.fields) == ConsumerConfig.__struct_fields__


def test_what_kind_of_consumer_it_is():
    assert ConsumerConfig().is_pull
    assert not ConsumerConfig(deliver_subject="x").is_pull
    assert ConsumerConfig(durable_name="C").is_durable
    assert ConsumerConfig(sourcing=True).is_internal
    assert ConsumerConfig(filter_subject="a").filters == ("a",)
    assert ConsumerConfig(filter_subjects=("a", "b")).filters == ("a", "b")
    assert ConsumerConfig().filters == ()
