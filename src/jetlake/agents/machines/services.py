"""`Services`: what the machines of a node share: its identity, its connection, its facts, its commands.

Machines know nothing of each other but names, states and events; they learn these here.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetlake.agents.machines.commands import Commands
from jetlake.agents.machines.events import EventQueue
from jetlake.agents.machines.key_watches import KeyWatches
from jetlake.agents.machines.prometheus import TextFiles

if TYPE_CHECKING:
    from jetlake.agents.machines.states import StateChange
    from jetlake.client.api import Api

__all__ = ["Services"]

CONNECTED_CHECK_S = 0.2
"""How soon a caller that waits for the connection notices that it is there."""

FILE_THREADS_MAX = 16
"""For looking at files: a network file system that hangs must not hold up what writes the states."""


class Services:
    """The services of one node."""

    def __init__(
        self,
        *,
        identity: str,
        collective: str,
        api: "Callable[[], Api]",
        is_connected: Callable[[], bool],
        facts: Callable[[], dict[str, Any]],
        report: Callable[[str, str], None],
        events: EventQueue | None = None,
        commands: Commands | None = None,
        prometheus_folder: str = "",
        overrides_file: str = "",
    ) -> None:
        self.identity = identity
        self.collective = collective
        # Raises `ClientError` while there is no connection.
        self.api = api
        self.is_connected = is_connected
        self.keys = KeyWatches(api, report)
        self.facts = facts
        self.report = report
        self.events = EventQueue() if events is None else events
        self.commands = commands or Commands()
        self.file_threads = ThreadPoolExecutor(FILE_THREADS_MAX, thread_name_prefix="jetlake-machine-files")
        self.text_files = TextFiles(prometheus_folder, report)
        self.overrides_file = Path(overrides_file) if overrides_file else None
        # Set by the host: the state of another machine, None if no machine has that name.
        self.state_of: Callable[[str], str | None] = lambda _name: None
        # Set by the host: tells the other machines.
        self.on_change: Callable[[str, StateChange], None] = lambda _name, _change: None

    async def wait_for_api(self, timeout_s: float) -> "Api":
        """Return the API as soon as there is a connection. Raises `ClientError` after some time."""
        deadline_s = time.monotonic() + timeout_s
        while not self.is_connected() and time.monotonic() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(min(CONNECTED_CHECK_S, timeout_s))
        return self.api()

    def close(self) -> None:
        """Kill the commands that run, and let the threads end."""
        self.commands.close()
        self.file_threads.shutdown(wait=False, cancel_futures=True)
