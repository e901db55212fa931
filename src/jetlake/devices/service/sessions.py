"""One connection for each user, made with that user's own credentials.

What a user may publish and read is decided by the server, as for every other client of it; users of different accounts
see different streams.

Invariant: a session is used by callers that showed its very credentials, and by nobody else.
"""

import asyncio
import os
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

import msgspec

from jetlake.client.access import Access
from jetlake.client.api import Api, open_api
from jetlake.devices.failures import as_device_error, as_login_error
from jetlake.devices.live_twin import LiveTwin
from jetlake.devices.publisher import EventPublisher
from jetlake.devices.service.credentials import UserCredentials
from jetlake.devices.session import UserSession
from jetlake.devices.settings import Settings
from jetlake.devices.store.in_memory import MemoryStore
from jetlake.devices.store.in_stream import StreamStore
from jetlake.devices.stream import check_store, find_stream
from jetlake.errors import ClientError, ConfigurationError, DeviceError

SESSIONS_MAX = 256
"""Users with a connection at the same time; the one that was idle for longest makes room."""

USER_INFORMATION = "$SYS.REQ.USER.INFO"
USER_INFORMATION_S_MAX = 2.0
DEFAULT_ACCOUNT = "$G"


class _Open:
    """A session and what must be closed after it."""

    def __init__(self, session: UserSession, stack: AsyncExitStack) -> None:
        self.session = session
        self.stack = stack
        self.callers = 0


class UserSessions:
    """The sessions of all users of one service."""

    def __init__(self, settings: Settings, access: Access) -> None:
        self._settings = settings
        # Where the server is; credentials in it are the service's own and are left out.
        self._access = msgspec.structs.replace(
            access, user=None, password=None, token=None, credentials=None, nkey=None, name="jetlake device serve"
        )
        self._open: OrderedDict[UserCredentials, _Open] = OrderedDict()
        # Held while a caller connects with these credentials; gone with the last waiting caller.
        self._locks: WeakValueDictionary[UserCredentials, asyncio.Lock] = WeakValueDictionary()
        # Core mode: what is in memory, by account.
        self._memory: dict[str, MemoryStore] = {}

    @asynccontextmanager
    async def use(self, credentials: UserCredentials) -> AsyncIterator[UserSession]:
        """Give the session of a user for the time of one call. Raises `DeviceError`."""
        from nats.errors import Error

        opened = await self._get(credentials)
        try:
            yield opened.session
        except ConfigurationError as error:
            raise DeviceError("FAILED_PRECONDITION", str(error)) from error
        except ClientError as error:
            raise as_device_error(error) from error
        except Error as error:
            # Of the client library, such as a connection that is being made again.
            raise DeviceError("UNAVAILABLE", str(error) or type(error).__name__) from error
        finally:
            opened.callers -= 1

    async def close(self) -> None:
        for opened in self._open.values():
            await _close(opened)
        self._open.clear()

    async def _get(self, credentials: UserCredentials) -> _Open:
        lock = self._locks.setdefault(credentials, asyncio.Lock())
        async with lock:
            opened = self._open.get(credentials)
            if opened is not None and opened.session.api.connection.is_closed:
                # The server has closed it for good: the user was removed, or must show itself again.
                del self._open[credentials]
                await _close(opened)
                opened = None
            if opened is None:
                await self._make_room()
                opened = self._open[credentials] = await self._connect(credentials)
            self._open.move_to_end(credentials)
            # Counted before anybody else can make room.
            opened.callers += 1
            return opened

    async def _make_room(self) -> None:
        if len(self._open) < SESSIONS_MAX:
            return
        for credentials, opened in list(self._open.items()):
            if not opened.callers:
                del self._open[credentials]
                await _close(opened)
                return
        raise DeviceError("RESOURCE_EXHAUSTED", f"{SESSIONS_MAX} users are connected: try again later")

    async def _connect(self, credentials: UserCredentials) -> _Open:
        stack = AsyncExitStack()
        try:
            access = self._access_of(credentials, stack)
            try:
                api = await stack.enter_async_context(open_api(access, reconnect=True))
            except ClientError as error:
                raise as_login_error(error) from error
            user, account = await _user_of(api)
            session = await self._session(api, user, account)
        except BaseException:
            await stack.aclose()
            raise
        return _Open(session, stack)

    async def _session(self, api: Api, user: str, account: str) -> UserSession:
        settings = self._settings
        if not settings.jetstream:
            memory = self._memory.setdefault(account, MemoryStore())
            publisher = EventPublisher(api, jetstream=False, flush_timeout_s=settings.flush_timeout_s)
            return UserSession(api, memory.on_bus(publisher), settings, user_id=user, owner=account)
        try:
            stream = await find_stream(api)
            await check_store(api, stream)
        except ConfigurationError as error:
            raise DeviceError("FAILED_PRECONDITION", str(error)) from error
        except ClientError as error:
            raise as_device_error(error) from error
        twin = LiveTwin(api, stream)
        return UserSession(api, StreamStore(api, stream), settings, user_id=user, owner=account, live_twin=twin)

    def _access_of(self, credentials: UserCredentials, stack: AsyncExitStack) -> Access:
        if credentials.file:
            path = _private_file(credentials.file, stack)
            field = {"credentials": path} if credentials.has_jwt else {"nkey": path}
            return msgspec.structs.replace(self._access, **field)
        return msgspec.structs.replace(
            self._access, user=credentials.user, password=credentials.password, token=credentials.token
        )


async def _close(opened: _Open) -> None:
    await opened.session.close()
    with suppress(Exception):
        await opened.stack.aclose()


async def _user_of(api: Api) -> tuple[str, str]:
    """Ask the server who this is: user and account. A server that does not say has one account."""
    try:
        answer = await api.ask(USER_INFORMATION, b"", timeout_s=USER_INFORMATION_S_MAX)
    except ClientError:
        return "", DEFAULT_ACCOUNT
    data = answer.get("data")
    if not isinstance(data, dict):
        return "", DEFAULT_ACCOUNT
    return str(data.get("user", "")), str(data.get("account", "")) or DEFAULT_ACCOUNT


def _private_file(content: bytes, stack: AsyncExitStack) -> Path:
    """Write credentials where only this user can read them, for as long as the session lasts: it may reconnect."""
    number, name = tempfile.mkstemp(prefix="jetlake-", suffix=".creds")
    stack.callback(Path(name).unlink, missing_ok=True)
    with os.fdopen(number, "wb") as file:
        file.write(content)
    return Path(name)
