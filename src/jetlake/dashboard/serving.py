"""`Dashboard`: the application on a port, from its start to its end.

Invariant: when `start` returns, the port answers; when `stop` returns, all sessions and their connections are closed.
"""

import errno

from aiohttp import web

from jetlake.dashboard.app import make_app
from jetlake.dashboard.keys import ENTRY_KEY
from jetlake.dashboard.options import DashboardOptions
from jetlake.errors import StartError, reason_of

__all__ = ["Dashboard"]

STOP_S_MAX = 2.0
"""For answers that are being written; open websockets are closed at once."""


class Dashboard:
    """One dashboard that runs in the current event loop."""

    def __init__(self, options: DashboardOptions) -> None:
        self._options = options
        self._app = make_app(options)
        self._runner = web.AppRunner(self._app, access_log=None, shutdown_timeout=STOP_S_MAX, handle_signals=False)
        self.port = options.port

    @property
    def url(self) -> str:
        """Where browsers find it."""
        host = self._options.host
        name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host  # noqa: S104
        return f"http://{name}:{self.port}"

    @property
    def entry_url(self) -> str:
        """The address that opens a session as the user of the command line; the plain one if there is none."""
        return f"{self.url}/enter?key={self._app[ENTRY_KEY]}" if self._options.has_login else self.url

    async def start(self) -> None:
        """Listen. Raises `StartError`."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._options.host, self._options.port)
        try:
            await site.start()
        except OSError as error:
            await self._runner.cleanup()
            advice = "choose another with --port" if error.errno == errno.EADDRINUSE else "check --host and --port"
            raise StartError(
                f"cannot listen on {self._options.host}:{self._options.port}: {reason_of(error)}; {advice}"
            ) from error
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Close sessions and the port."""
        await self._runner.cleanup()
