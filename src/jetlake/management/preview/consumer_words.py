"""The configuration of a consumer in the words of each dialect, to and from today's.

| today                                  | 2020                                       | 2019          |
|----------------------------------------|--------------------------------------------|---------------|
| `deliver_subject`                      | `delivery_subject`                         | the same      |
| `filter_subject`                       | the same                                   | `subject`     |
| `deliver_policy` all, last             | `deliver_all`, `deliver_last`              | the same      |
| by_start_sequence, `opt_start_seq`     | `stream_seq`                               | `msg_set_seq` |
| by_start_time, `opt_start_time`        | `start_time`; the year 1 means none        | the same      |
| new                                    | none of these                              | the same      |
| words                                  | the same; numbers are read, too            | numbers       |

Invariant: at most one of the four ways to begin is said; which one is used is never guessed.
"""

from typing import Any

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.preview.answers import PreviewError
from jetlake.management.streams.dialect import DIALECT_KEY, OF_2019
from jetlake.management.wire.error_codes import ErrorCode, RequestError
from jetlake.management.wire.replies import ZERO_TIME

_ACK_POLICIES = ("none", "all", "explicit")
_REPLAY_POLICIES = ("instant", "original")
_TAKEN_OVER = ("durable_name", "ack_wait", "max_deliver", "sample_freq")
_ONE_START = "only one of {sequence}, start_time, deliver_all and deliver_last can be set"


def to_today(config: dict[str, Any], dialect: str) -> dict[str, Any]:
    """Return the configuration as today's API reads it, or raise `RequestError` or `PreviewError`."""
    is_of_2019 = dialect == OF_2019
    wanted = {key: config[key] for key in _TAKEN_OVER if config.get(key) is not None}
    wanted |= _start(config, "msg_set_seq" if is_of_2019 else "stream_seq")
    wanted["ack_policy"] = _word(config.get("ack_policy", 0), _ACK_POLICIES)
    wanted["replay_policy"] = _word(config.get("replay_policy", 0), _REPLAY_POLICIES)
    subject = config.get("subject" if is_of_2019 else "filter_subject")
    if subject:
        wanted["filter_subject"] = subject
    if config.get("delivery_subject"):
        wanted["deliver_subject"] = config["delivery_subject"]
    elif is_of_2019:
        wanted["ack_policy"] = "explicit"
    elif wanted["ack_policy"] != "explicit":
        raise PreviewError("consumer in pull mode requires explicit ack policy")
    if wanted["ack_policy"] == "none":
        # Nothing is waited for where nothing is acknowledged.
        wanted.pop("ack_wait", None)
    return {**wanted, "metadata": {DIALECT_KEY: dialect}}


def from_today(config: ConsumerConfig, dialect: str) -> dict[str, Any]:
    """Return the configuration as a dialect writes it."""
    is_of_2019 = dialect == OF_2019
    start_time = ZERO_TIME if config.opt_start_time is None else config.opt_start_time.text
    fields: dict[str, Any] = {
        "delivery_subject": config.deliver_subject,
        "durable_name": config.durable_name,
        "msg_set_seq" if is_of_2019 else "stream_seq": config.opt_start_seq,
        "start_time": start_time,
        "deliver_all": config.deliver_policy == "all",
        "deliver_last": config.deliver_policy in ("last", "last_per_subject"),
        "ack_policy": config.ack_policy,
        "ack_wait": config.ack_wait,
        "max_deliver": config.max_deliver,
        "subject" if is_of_2019 else "filter_subject": config.filter_subject or ",".join(config.filter_subjects or ()),
        "replay_policy": config.replay_policy,
        "sample_freq": config.sample_freq,
    }
    return {key: value for key, value in fields.items() if value}


def _start(config: dict[str, Any], sequence_key: str) -> dict[str, Any]:
    start_time = config.get("start_time")
    starts: list[dict[str, Any]] = []
    if config.get(sequence_key):
        starts.append({"deliver_policy": "by_start_sequence", "opt_start_seq": config[sequence_key]})
    if start_time and start_time != ZERO_TIME:
        starts.append({"deliver_policy": "by_start_time", "opt_start_time": start_time})
    if config.get("deliver_all"):
        starts.append({"deliver_policy": "all"})
    if config.get("deliver_last"):
        starts.append({"deliver_policy": "last"})
    if len(starts) > 1:
        raise PreviewError(_ONE_START.format(sequence=sequence_key))
    return starts[0] if starts else {"deliver_policy": "new"}


def _word(value: Any, words: tuple[str, ...]) -> str:
    if isinstance(value, int) and 0 <= value < len(words):
        return words[value]
    if value in words:
        return str(value)
    raise RequestError(ErrorCode.BAD_REQUEST)
