"""Our own options in the metadata of a consumer."""

import pytest

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.consumers.options import check_options
from jetlake.management.wire.error_codes import RequestError as ApiError


def refusal(config: ConsumerConfig) -> str:
    with pytest.raises(ApiError) as raised:
        check_options(config)
    return f"{raised.value.code.number} {raised.value.description}"


@pytest.mark.parametrize("key", ["subject.1", "subject.12", "header.Order-Id", "header.x!y"])
def test_key_is_a_token_of_the_subject_or_a_header(key):
    check_options(ConsumerConfig(ack_policy="explicit", metadata={"jetlake.key": key}))


@pytest.mark.parametrize(
    "key",
    ["", "subject", "subject.0", "subject.01", "subject.-1", "subject.x", "header.", "header.a b", "header.a:", "x.1"],
)
def test_key_that_is_nowhere_is_refused(key):
    config = ConsumerConfig(ack_policy="explicit", metadata={"jetlake.key": key})

    assert refusal(config) == (
        f'10012 metadata jetlake.key can not be "{key}": it does not say where the key of a message is; set it to '
        '"subject.<n>" for the n-th token of the subject, from 1, or to "header.<Name>"'
    )


def test_keys_are_shared_by_clients_that_pull_and_acknowledge():
    metadata = {"jetlake.key": "subject.2"}

    assert refusal(ConsumerConfig(deliver_subject="x", metadata=metadata)) == (
        '10012 metadata jetlake.key can not be "subject.2": only clients of a pull consumer can share keys; remove '
        "deliver_subject"
    )
    assert refusal(ConsumerConfig(ack_policy="all", metadata=metadata)) == (
        '10012 metadata jetlake.key can not be "subject.2": the next message of a key waits for the acknowledgement of '
        'the last; set ack_policy to "explicit"'
    )
    assert refusal(
        ConsumerConfig(
            ack_policy="explicit", deliver_policy="last_per_subject", filter_subject="a.*", metadata=metadata
        )
    ) == (
        '10012 metadata jetlake.key can not be "subject.2": the messages of a key come in their order, all of them; '
        "choose another deliver_policy"
    )


@pytest.mark.parametrize("value", ["", "True", "1", "yes"])
def test_nak_backoff_is_true_or_false(value):
    for allowed in ("true", "false"):
        check_options(ConsumerConfig(metadata={"jetlake.nak_backoff": allowed}))
    assert refusal(ConsumerConfig(metadata={"jetlake.nak_backoff": value})) == (
        f'10012 metadata jetlake.nak_backoff can not be "{value}": it is neither true nor false; set it to "true" or '
        '"false"'
    )


def test_other_metadata_is_not_looked_at():
    check_options(ConsumerConfig())
    check_options(ConsumerConfig(metadata={"jetlake.other": "", "key": "x"}))
