"""`ServerProfile`: which server a session talks to, as whom, and what the server offers.

Pages ask `profile.offers(Feature.…)` and are hidden where the answer is no.

Invariant: a profile is made once, when a session begins; a server that is replaced by another kind needs a new login.
"""

from enum import Enum
from typing import Any, Self

import msgspec

from jetlake.client.api import Api
from jetlake.dashboard.session_api import PermissionRefusedError, SessionApi
from jetlake.errors import ClientError

__all__ = ["Feature", "ServerProfile"]

BUILD_PREFIX = "jetlake-"
"""How `git_commit` begins in the INFO of Jetlake; docs/reference/differences.md."""

QUESTION_S_MAX = 1.0
"""A server that does not offer something may leave the question without an answer."""

SYSTEM_PROBE = "$SYS.REQ.SERVER.PING.STATSZ"
"""Only the system account has a responder for it."""


class Feature(Enum):
    """What a page can need of a server."""

    JETSTREAM = "jetstream"
    # Figures of the whole server, for users of the system account.
    SYSTEM = "system"
    # What only Jetlake has: dead letters by the server, `why`, scans.
    JETLAKE = "jetlake"


class ServerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a server and of the user who is connected to it."""

    is_jetlake: bool
    name: str
    version: str
    cluster: str
    user: str
    account: str
    features: frozenset[Feature]

    @property
    def product(self) -> str:
        return "Jetlake" if self.is_jetlake else "nats-server"

    def offers(self, feature: Feature | None) -> bool:
        """Tell whether the server has a feature; None needs nothing."""
        return feature is None or feature in self.features

    @classmethod
    async def of(cls, api: SessionApi) -> Self:
        """Ask the server of a new session."""
        said = api.server_info
        build = str(said.get("git_commit", ""))
        is_jetlake = build.startswith(BUILD_PREFIX)
        who = await _data_of(api, "$SYS.REQ.USER.INFO")
        features = {Feature.JETLAKE} if is_jetlake else set()
        if await _data_of(api, SYSTEM_PROBE, key="statsz"):
            features.add(Feature.SYSTEM)
        if await _has_jetstream(api):
            features.add(Feature.JETSTREAM)
        return cls(
            is_jetlake=is_jetlake,
            name=_name(said),
            version=build.removeprefix(BUILD_PREFIX) if is_jetlake else str(said.get("version", "")),
            cluster=str(said.get("cluster") or ""),
            user=str(who.get("user") or ""),
            account=str(who.get("account") or ""),
            features=frozenset(features),
        )


def _name(said: dict[str, Any]) -> str:
    """Return the name that a server was given; one without a name calls itself by its id, which is too long."""
    name = str(said.get("server_name", ""))
    return "" if name == said.get("server_id") else name


async def _has_jetstream(api: SessionApi) -> bool:
    """Tell whether the account has JetStream; a user who may not ask for its figures may still see streams."""
    for question in ("INFO", "STREAM.NAMES"):
        try:
            await api.request(question, timeout_s=QUESTION_S_MAX)
        except PermissionRefusedError:
            continue
        except ClientError:
            return False
        return True
    return bool(api.server_info.get("jetstream"))


async def _data_of(api: Api, subject: str, key: str = "data") -> dict[str, Any]:
    try:
        answer = await api.ask(subject, b"", timeout_s=QUESTION_S_MAX)
    except ClientError:
        return {}
    data = answer.get(key)
    return data if isinstance(data, dict) else {}
