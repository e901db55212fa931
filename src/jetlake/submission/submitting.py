"""`submit`: put a message into a spool, without any connection. A sender delivers it.

```python
from jetlake.submission import submit

message_id = submit("tasks.status", b"done", spool="/var/spool/jetlake", reliable=True)
```
"""

import asyncio
import os
import socket
import time
import uuid

from jetlake.errors import ConfigurationError
from jetlake.submission.message import (
    DEFAULT_TRIES_MAX,
    DEFAULT_TTL_S,
    LOWEST_PRIORITY,
    SpoolMessage,
)
from jetlake.submission.spool import DEFAULT_MESSAGES_MAX, Spool

SPOOL_VARIABLE = "JETLAKE_SPOOL"
"""The variable that names the spool of a machine."""


def submit(
    subject: str,
    payload: bytes | str,
    *,
    spool: Spool | str | os.PathLike[str] | None = None,
    reliable: bool = False,
    priority: int = LOWEST_PRIORITY,
    ttl_s: float = DEFAULT_TTL_S,
    max_tries: int = DEFAULT_TRIES_MAX,
    sender: str = "",
    identity: str = "",
    headers: dict[str, str] | None = None,
    sign: bool = False,
) -> str:
    """Put a message into a spool, and return its id.

    It is published to `<collective>.submission.in.<subject>`. A `reliable` one is tried until a stream acknowledges it,
    `max_tries` times and for `ttl_s` at most, and in the order of the others of its subject and priority; another one
    is published once. Priority 0 goes first. `spool` is a folder, JETLAKE_SPOOL unless given.

    Raises `ConfigurationError` for a message that cannot be delivered, and `SpoolError` if the spool is full or cannot
    be written. When it returns, a reliable message is on disk.
    """
    chosen = spool if spool is not None else os.environ.get(SPOOL_VARIABLE, "")
    place = chosen if isinstance(chosen, Spool) else Spool(chosen, messages_max=DEFAULT_MESSAGES_MAX)
    name = identity or socket.getfqdn()
    message = SpoolMessage(
        id=str(uuid.uuid4()),
        subject=subject,
        payload=payload.encode() if isinstance(payload, str) else bytes(payload),
        reliable=reliable,
        priority=priority,
        created_ns=time.time_ns(),
        ttl_s=float(ttl_s),
        max_tries=max_tries,
        sender=sender or name,
        identity=name,
        sign=sign,
        headers=headers or {},
    )
    place.put(message)
    return message.id


async def submit_async(subject: str, payload: bytes | str, **options: object) -> str:
    """Do the same as `submit` without holding up the event loop while the disk writes."""
    unknown = options.keys() - set(submit.__kwdefaults__ or {})
    if unknown:
        raise ConfigurationError(f"submit has no option {', '.join(sorted(unknown))}")
    return await asyncio.to_thread(submit, subject, payload, **options)  # type: ignore[arg-type]
