"""Shows messages as they come, until the user stops it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jetlake.client.connection import flush
from jetlake.client.preview import PreviewClient

if TYPE_CHECKING:
    from nats.aio.msg import Msg

WAITING_MESSAGES_MAX = 65_536
"""Messages that came and are not shown yet; a terminal slower than that loses some, like any slow subscriber."""


async def listen(client: PreviewClient, subject: str, queue: str, show: Callable[[str], None]) -> None:
    """Show every message on a subject, numbered; ends only when it is interrupted or the connection is."""
    count = 0

    async def received(message: "Msg") -> None:
        nonlocal count
        count += 1
        show(f"[#{count}] Received on [{message.subject}]: '{message.data.decode(errors='replace')}'")

    await client.client.subscribe(subject, queue=queue, cb=received, pending_msgs_limit=WAITING_MESSAGES_MAX)
    await flush(client.client)
    await client.closed.wait()
