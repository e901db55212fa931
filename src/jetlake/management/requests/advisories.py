"""What management tells without being asked, below `$JS.EVENT.ADVISORY`.

| subject                          | when                                              | in           |
|----------------------------------|---------------------------------------------------|--------------|
| `API`                            | a request was answered                            | its account  |
| `STREAM.CREATED.<stream>` …      | a stream was created, updated or deleted          | its account  |
| `CONSUMER.CREATED.<stream>.<consumer>` … | a consumer was created or deleted         | its account  |
| `CONSUMER.PAUSE.<stream>.<consumer>` | a consumer pauses, or goes on                | its account  |
| `STREAM.SNAPSHOT_CREATE.<stream>` … | a snapshot or a restore has begun or ended  | its account  |
| `API.LIMIT_REACHED`              | requests were dropped because too many waited     | the system's |

Building an advisory costs more than checking for a subscriber, so none is built without one.

Invariant: an advisory that cannot be published changes nothing for the request it is about.
"""

import secrets
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from jetlake._engine import EngineError
from jetlake.management.engine.protocols import EnginePublisher, Request
from jetlake.management.settings import ManagementSettings
from jetlake.management.wire.json_dialect import write_json
from jetlake.management.wire.replies import ZERO_TIME
from jetlake.management.wire.times import Timestamp
from jetlake.shared.engine_reports import CLIENT_TYPES, KINDS, Connection
from jetlake.shared.go_text import time_text

SUBJECT_PREFIX = "$JS.EVENT.ADVISORY."
TYPE_PREFIX = "io.nats.jetstream.advisory.v1."

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ID_LENGTH = 22
"""nats-server's: 131 random bits, so that no two are ever equal."""

StreamAction = Literal["create", "modify", "delete"]
ConsumerAction = Literal["create", "delete"]
ArchiveKind = Literal["snapshot_create", "snapshot_complete", "restore_create", "restore_complete"]

_SUBJECTS_OF_ACTIONS = {"create": "STREAM.CREATED", "modify": "STREAM.UPDATED", "delete": "STREAM.DELETED"}
_SUBJECTS_OF_CONSUMER_ACTIONS = {"create": "CONSUMER.CREATED", "delete": "CONSUMER.DELETED"}
_CONNECTION = msgspec.json.Decoder(Connection)


class Advisories:
    """Reports to subscribers. `settings` returns those in force, `clock` unix nanoseconds."""

    def __init__(
        self,
        engine: EnginePublisher,
        settings: Callable[[], ManagementSettings],
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._clock = clock

    def tell_stream_action(self, account: str, stream: str, action: StreamAction) -> None:
        """Tell that a stream was created, updated or deleted."""
        subject = f"{SUBJECT_PREFIX}{_SUBJECTS_OF_ACTIONS[action]}.{stream}"
        if self._engine.has_interest(account, subject):
            self._publish(account, subject, "stream_action", {"stream": stream, "action": action})

    def tell_consumer_action(self, account: str, stream: str, consumer: str, action: ConsumerAction) -> None:
        """Tell that a consumer was created or deleted."""
        subject = f"{SUBJECT_PREFIX}{_SUBJECTS_OF_CONSUMER_ACTIONS[action]}.{stream}.{consumer}"
        if self._engine.has_interest(account, subject):
            fields = {"stream": stream, "consumer": consumer, "action": action}
            self._publish(account, subject, "consumer_action", fields)

    def tell_pause(self, account: str, stream: str, consumer: str, until: Timestamp | None) -> None:
        """Tell whether a consumer pauses, and until when."""
        subject = f"{SUBJECT_PREFIX}CONSUMER.PAUSE.{stream}.{consumer}"
        if self._engine.has_interest(account, subject):
            is_paused = until is not None and self._clock() < until.unix_ns
            fields: dict[str, Any] = {"stream": stream, "consumer": consumer, "paused": is_paused}
            fields["pause_until"] = ZERO_TIME if until is None else until.text
            self._publish(account, subject, "consumer_pause", fields)

    def tell_answer(self, request: Request, subject: str, response: bytes) -> None:
        """Tell who asked what, and what the answer was."""
        audit_subject = f"{SUBJECT_PREFIX}API"
        if not self._engine.has_interest(request.account, audit_subject):
            return
        fields: dict[str, Any] = {
            "server": self._settings().server_name,
            "client": self.describe_client(request.account, request.connection_id),
            "subject": subject,
        }
        if request.payload:
            fields["request"] = request.payload.decode(errors="replace")
        fields["response"] = response.decode()
        self._publish(request.account, audit_subject, "api_audit", fields)

    def tell_archive(self, account: str, kind: ArchiveKind, stream: str, fields: dict[str, Any]) -> None:
        """Report that a snapshot or a restore has begun or ended."""
        subject = f"{SUBJECT_PREFIX}STREAM.{kind.upper()}.{stream}"
        if self._engine.has_interest(account, subject):
            self._publish(account, subject, kind, {"stream": stream, **fields})

    def tell_limit_reached(self, dropped: int) -> None:
        """Tell the system account how many requests were dropped."""
        settings = self._settings()
        subject = f"{SUBJECT_PREFIX}API.LIMIT_REACHED"
        if settings.system_account and self._engine.has_interest(settings.system_account, subject):
            fields = {"server": settings.server_name, "dropped": dropped}
            self._publish(settings.system_account, subject, "api_limit_reached", fields)

    def _publish(self, account: str, subject: str, kind: str, fields: dict[str, Any]) -> None:
        head = {"type": TYPE_PREFIX + kind, "id": new_id(), "timestamp": time_text(self._clock())}
        domain = self._settings().domain
        tail = {"domain": domain} if domain else {}
        try:
            self._engine.publish(account, subject, write_json({**head, **fields, **tail}))
        except EngineError:
            # A name that no subject can have: no client could subscribe to it.
            return

    def describe_client(self, account: str, connection_id: int) -> dict[str, Any]:
        """Return who a connection is."""
        server = {"server": self._settings().server_name, "kind": "Client", "client_type": CLIENT_TYPES["STANDARD"]}
        report = self._engine.connection(connection_id)
        if report is None:
            # It has gone before it was answered.
            return {"id": connection_id, "acc": account, **server}
        connection = _CONNECTION.decode(report)
        described: dict[str, Any] = {
            "start": time_text(connection.started_unix_ns),
            "host": connection.ip,
            "id": connection.id,
            "acc": connection.account,
        }
        optional = {
            "user": connection.user,
            "name": connection.name,
            "lang": connection.language,
            "ver": connection.version,
            "rtt": connection.round_trip_ns,
        }
        kind, client_type = KINDS[connection.connection_type], CLIENT_TYPES[connection.connection_type]
        own = {"server": server["server"], "kind": kind} | ({"client_type": client_type} if client_type else {})
        return {**described, **{key: value for key, value in optional.items() if value}, **own}


def new_id() -> str:
    """Return letters and digits that nobody else has."""
    return "".join(secrets.choice(LETTERS) for _ in range(ID_LENGTH))
