"""`Session` and `Sessions`: who is logged in, and their connections.

Invariant: a session is found only by its cookie, a random value that is never written to a log or page. It ends after
`IDLE_S_MAX` without a request and an open page, after `SESSION_S_MAX` in any case, and at the logout; its NATS
connection and its credentials end with it.
"""

import asyncio
import contextlib
import secrets
import shutil
import tempfile
import time
from collections import deque
from pathlib import Path

import msgspec

from jetlake.client.access import Access
from jetlake.dashboard.metrics import MetricsReader
from jetlake.dashboard.profile import ServerProfile
from jetlake.dashboard.sampler import Sampler
from jetlake.dashboard.session_api import SessionApi
from jetlake.errors import ClientError

__all__ = ["Session", "Sessions", "TooManySessionsError"]

SESSIONS_MAX = 100
"""Each has a connection and a sampling task; a hundred people at one dashboard are a lot."""

IDLE_S_MAX = 30 * 60.0
"""A browser that was left open without a page of the dashboard."""

SESSION_S_MAX = 12 * 3600.0
"""A working day; a wall display logs in again each day."""

SWEEP_S = 30.0
"""How often sessions that have ended are removed."""

MESSAGES_MAX = 5
"""A page that tells more is not read."""

TOKEN_BYTES = 32

JWT_HEADING = b"BEGIN NATS USER JWT"
"""In a credentials file; one without it holds the seed of a key alone."""


class TooManySessionsError(ClientError):
    """Is raised when all sessions are in use."""


class Session:
    """One login: its connection, what its server is, and its live figures."""

    def __init__(
        self, api: SessionApi, profile: ServerProfile, metrics: MetricsReader | None, secret_folder: Path | None
    ) -> None:
        self.key = secrets.token_urlsafe(TOKEN_BYTES)
        # Sent with every request that changes something; other sites cannot read it.
        self.form_token = secrets.token_urlsafe(TOKEN_BYTES)
        self.api = api
        self.profile = profile
        self.sampler = Sampler(api, profile, metrics)
        self.is_closed = asyncio.Event()
        # What pages keep for a while, such as the names of all streams; `cached` of `listing` uses it.
        self.cache: dict[str, tuple[float, object]] = {}
        # What a page keeps until it makes a new one, such as the last answer of a query; by the name of the page.
        self.kept: dict[str, object] = {}
        # What was done, for the next page to show.
        self.messages: deque[str] = deque(maxlen=MESSAGES_MAX)
        self._secret_folder = secret_folder
        self._begin_s = self._used_s = time.monotonic()

    def touch(self) -> None:
        """Note that the session is in use."""
        self._used_s = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Since the last request; an open page is use."""
        return 0.0 if self.sampler.is_watched else time.monotonic() - self._used_s

    @property
    def has_ended(self) -> bool:
        return self.idle_s > IDLE_S_MAX or time.monotonic() - self._begin_s > SESSION_S_MAX

    async def close(self) -> None:
        """End it: pages, sampling, connection, credentials."""
        self.is_closed.set()
        await self.sampler.close()
        await self.api.close()
        if self._secret_folder is not None:
            shutil.rmtree(self._secret_folder, ignore_errors=True)


class Sessions:
    """All sessions of one dashboard."""

    def __init__(self, metrics: MetricsReader | None) -> None:
        self._metrics = metrics
        self._sessions: dict[str, Session] = {}
        # Connections that are being made count as well.
        self._opening = 0

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie, or None if it has ended."""
        session = self._sessions.get(key)
        if session is None or session.has_ended:
            return None
        session.touch()
        return session

    async def open(self, access: Access, *, credentials: bytes = b"") -> Session:
        """Log in. `credentials` is the content of a credentials file. Raises `ClientError`."""
        await self._make_room()
        self._opening += 1
        folder = None
        try:
            if credentials:
                # nats-py reads it again at every reconnection, so it stays while the session does; for us alone.
                folder = Path(tempfile.mkdtemp(prefix="jetlake-dashboard-"))
                path = folder / "user.creds"
                path.touch(mode=0o600)
                path.write_bytes(credentials)
                field = "credentials" if JWT_HEADING in credentials else "nkey"
                access = msgspec.structs.replace(access, **{field: path})
            api = await SessionApi.open(access)
            try:
                session = Session(api, await ServerProfile.of(api), self._metrics, folder)
            except BaseException:
                await api.close()
                raise
        except BaseException:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._opening -= 1
        self._sessions[session.key] = session
        return session

    async def close(self, session: Session) -> None:
        """Log out."""
        self._sessions.pop(session.key, None)
        await session.close()

    async def close_all(self) -> None:
        """End all sessions, at the end of the dashboard."""
        await asyncio.gather(*(self.close(session) for session in list(self._sessions.values())))

    async def sweep(self) -> None:
        """Remove sessions that have ended, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_S)
            for session in [each for each in self._sessions.values() if each.has_ended]:
                with contextlib.suppress(ClientError, OSError):
                    await self.close(session)

    async def _make_room(self) -> None:
        """Close the session that was idle longest if all are taken. Raises `TooManySessionsError`."""
        if len(self._sessions) + self._opening < SESSIONS_MAX:
            return
        idle = [each for each in self._sessions.values() if not each.sampler.is_watched]
        if not idle:
            raise TooManySessionsError(
                f"All {SESSIONS_MAX} sessions of this dashboard are in use. Close a page elsewhere, or log out there."
            )
        await self.close(max(idle, key=lambda each: each.idle_s))
