"""Our own options, which stand in the metadata of a consumer below `jetlake.`.

| key                   | value                            | meaning                                               |
|-----------------------|----------------------------------|-------------------------------------------------------|
| `jetlake.nak_backoff` | `true` or `false`                | a refused message waits as one that timed out does    |
| `jetlake.key`         | `subject.<n>` or `header.<Name>` | messages with the same key go to one client at a time |

They stand there because clients of NATS can send them and other servers keep them without understanding them.

Invariant: a key that is not listed means nothing, and is kept.
"""

import re

from jetlake.management.consumers.config import ConsumerConfig
from jetlake.management.wire.error_codes import ErrorCode, RequestError

NAK_BACKOFF_KEY = "jetlake.nak_backoff"
KEY_KEY = "jetlake.key"

_KEY_OF_MESSAGES = re.compile(r"subject\.[1-9][0-9]{0,2}|header\.[!-9;-~]+")


def check_options(config: ConsumerConfig) -> None:
    """Raise `RequestError` for an option that cannot be obeyed."""
    metadata = config.metadata or {}
    nak_backoff = metadata.get(NAK_BACKOFF_KEY)
    if nak_backoff not in (None, "true", "false"):
        raise _refused(NAK_BACKOFF_KEY, nak_backoff, "it is neither true nor false", 'set it to "true" or "false"')
    key = key_of_messages(config)
    if key is None:
        return
    if _KEY_OF_MESSAGES.fullmatch(key) is None:
        remedy = 'set it to "subject.<n>" for the n-th token of the subject, from 1, or to "header.<Name>"'
        raise _refused(KEY_KEY, key, "it does not say where the key of a message is", remedy)
    if not config.is_pull:
        raise _refused(KEY_KEY, key, "only clients of a pull consumer can share keys", "remove deliver_subject")
    if config.ack_policy != "explicit":
        reason = "the next message of a key waits for the acknowledgement of the last"
        raise _refused(KEY_KEY, key, reason, 'set ack_policy to "explicit"')
    if config.deliver_policy == "last_per_subject":
        reason = "the messages of a key come in their order, all of them"
        raise _refused(KEY_KEY, key, reason, "choose another deliver_policy")


def key_of_messages(config: ConsumerConfig) -> str | None:
    """Return what says where the key of a message is, if messages have keys."""
    return (config.metadata or {}).get(KEY_KEY)


def _refused(key: str, value: str | None, reason: str, remedy: str) -> RequestError:
    return RequestError(ErrorCode.CONSUMER_CREATE, err=f'metadata {key} can not be "{value}": {reason}; {remedy}')
