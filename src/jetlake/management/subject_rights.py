"""Where a client may have the server publish for it: the subjects of deliveries, and those of republished messages.

Whoever may ask the API for a consumer could otherwise send what it likes to subjects it must not publish to: by storing
it, and having it delivered there. A delivery to a subject one may listen on is one's own affair.

Invariant: a user without permissions of its own may do everything; nobody else gets more here than on the wire.
"""

import re
from collections.abc import Callable

import msgspec

from jetlake.management.calls import Call
from jetlake.management.error_codes import ApiError, ErrorCode
from jetlake.management.names import ANY_ONE, collide, is_subset
from jetlake.management.protocols import Publisher
from jetlake.management.settings import ManagementSettings, SubjectLists
from jetlake.management.stream_config import StreamConfig
from jetlake.monitoring.readings import Connection

_CONNECTIONS = msgspec.json.Decoder(list[Connection])
_PLACEHOLDER = re.compile(r"\{\{[^}]*\}\}|\$[0-9]+")


class SubjectRights:
    """Asks the settings in force, which `settings` returns, about whoever calls."""

    def __init__(self, engine: Publisher, settings: Callable[[], ManagementSettings]) -> None:
        self._engine = engine
        self._settings = settings

    def check_delivery(self, call: Call, subject: str) -> None:
        """Raise `ApiError` unless the client may publish or subscribe to where a consumer delivers."""
        rights = self._settings().rights
        user = self._user_of(call) if subject and rights else None
        if user is None or user not in rights:
            return
        publish, subscribe = rights[user]
        if not (covers(publish, subject) or covers(subscribe, subject)):
            reason = f"permissions violation for deliver subject {subject!r}: neither publish nor subscribe is allowed"
            raise ApiError(ErrorCode.CONSUMER_CREATE, err=reason)

    def check_republishing(self, call: Call, config: StreamConfig) -> None:
        """Raise `ApiError` unless the client may publish to wherever a stream republishes."""
        rights = self._settings().rights
        user = self._user_of(call) if config.republish is not None and rights else None
        if user is None or user not in rights:
            return
        assert config.republish is not None, "it was looked at"
        pattern = pattern_of(config.republish.dest or config.republish.src or ">")
        if not covers(rights[user][0], pattern):
            reason = (
                f"permissions violation for republish destination {config.republish.dest!r}: publish is not allowed"
            )
            raise ApiError(ErrorCode.STREAM_INVALID_CONFIG, err=reason)

    def _user_of(self, call: Call) -> tuple[str, str] | None:
        connections = _CONNECTIONS.decode(self._engine.connections())
        # Who has gone meanwhile has nobody's rights, and no rights are written down for nobody.
        user = next((each.user for each in connections if each.id == call.connection_id), "")
        return (call.account, user)


def covers(lists: SubjectLists, pattern: str) -> bool:
    """Return whether all subjects of a pattern are allowed, and none of them is denied."""
    allow, deny = lists
    # What follows a blank names a queue group, which this is not about.
    allowed = allow is None or any(is_subset(pattern, each) for each in allow if " " not in each)
    return allowed and not any(collide(pattern, each.partition(" ")[0]) for each in deny)


def pattern_of(destination: str) -> str:
    """Return what a destination with placeholders can become."""
    tokens = _PLACEHOLDER.sub(ANY_ONE, destination).split(".")
    return ".".join(ANY_ONE if ANY_ONE in token else token for token in tokens)
