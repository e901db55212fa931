"""What is asked of a server about its streams, over a connection of its own.

```python
description = await fork(server, "ORDERS", "TRIAL", last_sequence=1000)
```

Every function raises `ClientError` with what the server said and what to do.
"""

import json
from typing import Any

from jetlake.client.connection import HasUrl, connect
from jetlake.errors import ClientError

ANSWER_S_MAX = 30.0
"""A server with a slow disk may take a while; one that does not know a request says nothing at all."""


async def fork(
    server: str | HasUrl, origin: str, name: str, *, last_sequence: int = 0, subjects: list[str] | None = None
) -> dict[str, Any]:
    """Make a writable copy of a stream as it was at a sequence, or as it is, and return its description."""
    request: dict[str, Any] = {"name": name}
    if last_sequence:
        request["seq"] = last_sequence
    if subjects:
        request["subjects"] = subjects
    return await ask(server, f"STREAM.FORK.{origin}", request)


async def why(server: str | HasUrl, stream: str, consumer: str = "") -> dict[str, Any]:
    """Return why messages of a stream, or of one of its consumers, move or do not."""
    subject = f"CONSUMER.WHY.{stream}.{consumer}" if consumer else f"STREAM.WHY.{stream}"
    return await ask(server, subject, {})


async def ask(server: str | HasUrl, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send one request to the API of streams, and return the answer."""
    from nats.errors import Error, NoRespondersError

    connection = await connect(server, allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0)
    try:
        message = await connection.request(f"$JS.API.{subject}", json.dumps(body).encode(), timeout=ANSWER_S_MAX)
    except NoRespondersError as error:
        raise ClientError("this server has no streams: start it with -js") from error
    except (TimeoutError, Error) as error:
        raise ClientError(f"the server did not answer {subject}; is it a Jetlake server?") from error
    finally:
        await connection.close()
    answer: dict[str, Any] = json.loads(message.data)
    refusal = answer.get("error")
    if refusal:
        raise ClientError(f"{refusal['description']} ({refusal['err_code']})")
    return answer
