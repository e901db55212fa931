"""`Stage`: the folder and the server that all scenes share, and how much they do.

| in the folder | what it is                                        |
|---------------|---------------------------------------------------|
| `store`       | streams, buckets and objects of the server        |
| `lake`        | tables that the pipelines wrote                   |
| `spool`       | the spool of the submission                       |
| `demo.log`    | what the server and the libraries logged          |
| `*.html`      | the page, and the report of each pipeline         |
| `.demo`       | marks the folder as one that a demo may clear     |

Invariant: when the block ends, the server has stopped, whatever happened inside; the store stays.
"""

import asyncio
import fcntl
import logging
import shutil
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.errors import ConfigurationError, StartError, reason_of
from jetlake.server.server import Server

__all__ = ["Scale", "Stage"]

PORT = 4222
"""The default port of every client; another one is used if it is taken."""

MARK = ".demo"

OWN_FOLDERS = ("store", "lake", "spool", "crash")
"""What an earlier demo may have left, and this one begins without."""

SETTLE_S_MAX = 30.0
"""How long a count may take to become what it must be, on a busy machine."""

POLL_S = 0.02
"""Between two looks at a count."""

LOGGERS = ("jetlake", "nats", "asyncio")

T = TypeVar("T")


class Scale(msgspec.Struct, frozen=True):
    """How much the demo does, by the seconds that its live part may take.

    The shares of the timed scenes add up to four fifths; the others are done in a few seconds together.
    """

    seconds: float

    @property
    def fleet_s(self) -> float:
        return self.seconds * 0.25

    @property
    def devices_s(self) -> float:
        return self.seconds * 0.2

    @property
    def speed_s(self) -> float:
        return self.seconds * 0.2

    @property
    def crash_s(self) -> float:
        return self.seconds * 0.15

    def count(self, per_second: float, lowest: int, highest: int) -> int:
        """Return how many of something there are."""
        return max(lowest, min(highest, round(per_second * self.seconds)))


class Stage:
    """See the module. `tell` is called with progress messages for the user."""

    def __init__(self, folder: Path, scale: Scale, tell: Callable[[str], None] = lambda _text: None) -> None:
        self.folder = folder
        self.scale = scale
        self.tell = tell
        # What one scene leaves for a later one to compare with, by the name of the scene.
        self.truths: dict[str, dict[str, Any]] = {}
        # Called when the stage is left: processes that a scene started and that may still be ending.
        self.endings = ExitStack()
        self._server: Server | None = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._claim(opened)
            opened.callback(self._stop)
            self._log(opened)
            self._server = self._start_first()
            opened.push(self.endings)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    @property
    def server(self) -> Server:
        assert self._server is not None, "a stage that is open has a server"
        return self._server

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def access(self) -> Access:
        return Access(url=self.url, name="jetlake demo")

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    def stop_server(self) -> None:
        """Take the server away; `start_server` brings it back with everything it had."""
        self.server.stop()

    def start_server(self) -> None:
        """Start the server again, on the port it had."""
        self._server = self._made(self.server.port).start()

    def with_api(self, work: Callable[[Api], Awaitable[T]]) -> T:
        """Connect, do the work, and return what it returns."""

        async def connected() -> T:
            async with open_api(self.access) as api:
                return await work(api)

        return asyncio.run(connected())

    def create_stream(self, name: str, *subjects: str, **settings: Any) -> None:
        """Create a stream that keeps everything."""
        self.with_api(
            lambda api: api.request(
                f"STREAM.CREATE.{name}", {"name": name, "subjects": list(subjects), "allow_direct": True, **settings}
            )
        )

    def count_messages(self, name: str, expected: int) -> int:
        """Return how many messages a stream has; waits a while for the expected number."""

        async def counted(api: Api) -> int:
            loop = asyncio.get_running_loop()
            deadline_s = loop.time() + SETTLE_S_MAX
            while True:
                count = int((await api.request(f"STREAM.INFO.{name}"))["state"]["messages"])
                if count >= expected or loop.time() > deadline_s:
                    return count
                await asyncio.sleep(POLL_S)

        return self.with_api(counted)

    def _claim(self, opened: ExitStack) -> None:
        """Make the folder ours and empty. Raises `ConfigurationError` for one that holds something else."""
        mark = self.folder / MARK
        try:
            if self.folder.exists() and not mark.exists() and any(self.folder.iterdir()):
                raise ConfigurationError(
                    f"{self.folder} is not empty and was not made by a demo, which clears its folder first: "
                    "give another one with --folder"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = opened.enter_context(mark.open("ab"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigurationError(
                    f"another demo is running in {self.folder}: wait for its end, or give another folder with --folder"
                ) from error
            for name in OWN_FOLDERS:
                shutil.rmtree(self.folder / name, ignore_errors=True)
            for page in self.folder.glob("*.html"):
                page.unlink()
        except OSError as error:
            raise ConfigurationError(f"cannot use the folder {self.folder}: {reason_of(error)}") from error

    def _log(self, opened: ExitStack) -> None:
        """Have libraries log into a file: a server that is down on purpose is not worth reporting."""
        handler = logging.FileHandler(self.folder / "demo.log", mode="w", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        opened.callback(handler.close)
        for name in LOGGERS:
            logger = logging.getLogger(name)
            opened.callback(logger.removeHandler, handler)
            opened.callback(setattr, logger, "propagate", logger.propagate)
            logger.addHandler(handler)
            logger.propagate = False

    def _start_first(self) -> Server:
        try:
            return self._made(PORT).start()
        except StartError:
            return self._made(0).start()

    def _made(self, port: int) -> Server:
        return Server(port=port, name="demo", store_directory=self.folder / "store")

    def _stop(self) -> None:
        if self._server is not None:
            self._server.stop()
