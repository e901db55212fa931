"""`SubmissionSender`: the sender of a node's spool as a part of its agent.

It has a connection of its own: what it sends must not wait behind the node's other messages, and it knows best when to
try again.
"""

import asyncio
from pathlib import Path

from jetlake.agents.node import LocalNode
from jetlake.agents.options import NodeOptions
from jetlake.client.access import Access
from jetlake.client.uninterrupted import finish
from jetlake.submission.sender import SenderOptions, run_sender
from jetlake.submission.spool import DEFAULT_MESSAGES_MAX

__all__ = ["SubmissionSender", "sender_options"]

SPOOL_KEY = "plugin.choria.submission.spool"
SIZE_KEY = "plugin.choria.submission.max_spool_size"


def sender_options(options: NodeOptions, access: Access) -> SenderOptions | None:
    """Return the options of the sender; None if the node has no spool. Raises `ConfigurationError`."""
    spool = options.settings.text(SPOOL_KEY)
    if not spool:
        return None
    messages_max = options.settings.number(SIZE_KEY, DEFAULT_MESSAGES_MAX)
    if messages_max < 1:
        raise options.settings.refusal(SIZE_KEY, "give a number of messages, at least 1")
    return SenderOptions(
        spool=spool,
        access=access,
        collective=options.main_collective,
        messages_max=messages_max,
        seed_file=Path(options.seed_file) if options.seed_file else None,
        token_file=Path(options.token_file) if options.token_file else None,
    )


class SubmissionSender:
    """The part that sends."""

    name = "submission"

    def __init__(self, options: SenderOptions) -> None:
        self._options = options

    async def run(self, node: LocalNode) -> None:
        node.report("info", f"{self.name}: sending the messages of {self._options.spool}")
        stop = asyncio.Event()
        sending = asyncio.create_task(run_sender(self._options, stop=stop))
        try:
            await asyncio.shield(sending)
        finally:
            # What is under way is finished, so that nothing is sent twice.
            stop.set()
            await finish(_ended(sending))

    async def finish(self, node: LocalNode) -> None:
        """Everything was said when it stopped."""


async def _ended(sending: "asyncio.Task[object]") -> None:
    await asyncio.wait([sending])
    if not sending.cancelled() and (error := sending.exception()) is not None:
        raise error
