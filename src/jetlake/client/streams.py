"""What is asked of a server about its streams once, over a connection of its own.

```python
description = await fork(server, "ORDERS", "TRIAL", last_sequence=1000)
```

Every function raises `ClientError` with what the server said and what to do. For more than one request, open an `Api`.
"""

import re
from typing import Any

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api, token
from jetlake.client.connection import HasUrl
from jetlake.errors import ClientError, reworded

ANSWER_S_MAX = 30.0
"""A server with a slow disk may take a while; one that does not know a request says nothing at all."""


async def fork(
    server: Access | str | HasUrl,
    origin: str,
    name: str,
    *,
    last_sequence: int = 0,
    subjects: list[str] | None = None,
) -> dict[str, Any]:
    """Make a writable copy of a stream as it was at a sequence, or as it is, and return its description."""
    request: dict[str, Any] = {"name": name}
    if last_sequence:
        request["seq"] = last_sequence
    if subjects:
        request["subjects"] = subjects
    return await ask(server, f"STREAM.FORK.{token(origin)}", request)


async def why(server: Access | str | HasUrl, stream: str, consumer: str = "") -> dict[str, Any]:
    """Return why messages of a stream, or of one of its consumers, move or do not."""
    subject = f"CONSUMER.WHY.{token(stream)}.{token(consumer)}" if consumer else f"STREAM.WHY.{token(stream)}"
    async with open_api(server) as api:
        return await _request(api, subject, {}, api.access.timeout_s)


async def reasons_of(api: Api, stream: str, consumer: str = "") -> list[dict[str, Any]]:
    """Return the same over a connection that is there: texts, each with the command that would change it."""
    subject = f"CONSUMER.WHY.{token(stream)}.{token(consumer)}" if consumer else f"STREAM.WHY.{token(stream)}"
    return in_own_words((await api.request(subject, {}))["reasons"])


def in_own_words(reasons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return reasons with commands of `jetlake`: a server answers in the words of NATS' own tool."""
    return [
        reason | ({"command": re.sub(r"^nats ", "jetlake ", reason["command"])} if "command" in reason else {})
        for reason in reasons
    ]


async def ask(server: Access | str | HasUrl, request: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send one request to the API of streams, and return the answer."""
    async with open_api(server) as api:
        return await _request(api, request, body, max(ANSWER_S_MAX, api.access.timeout_s))


async def _request(api: Api, request: str, body: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    try:
        return await api.request(request, body, timeout_s=timeout_s)
    except ClientError as error:
        if isinstance(error.__cause__, TimeoutError):
            raise reworded(error, f"{error}; is it a Jetlake server?") from error
        raise
