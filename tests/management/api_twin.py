"""The API of one server without sockets: requests in, answers out, on an engine of dictionaries."""

from __future__ import annotations

import json
import time
from typing import Any

from jetlake.management.catalog.streams import StoreOptions, StreamCatalog
from jetlake.management.manager import Manager
from jetlake.management.settings import ManagementSettings
from jetlake.management.streams.context import ServerLimits, StreamAccountLimits
from tests.management.engine_twin import EngineTwin, TwinRequest

SETTINGS = ManagementSettings(
    server_name="probe",
    system_account="$SYS",
    accounts={"$G": StreamAccountLimits()},
    server=ServerLimits(max_memory=1_000_000_000, max_storage=10_000_000_000),
)


class ApiTwin:
    """A manager with its engine. Requests are answered at once, in the thread that makes them."""

    def __init__(self, settings: ManagementSettings = SETTINGS, engine: EngineTwin | None = None) -> None:
        self.engine = engine or EngineTwin()
        self.warnings: list[str] = []
        self.catalog = StreamCatalog(self.engine)
        self.findings = self.catalog.open("store", StoreOptions())
        self.manager = Manager(self.engine, self.catalog, settings, self.warnings.append)

    def request(self, subject: str, body: bytes = b"", header: bytes = b"", account: str = "$G") -> bytes | None:
        """Return the answer to a request below `$JS.API`; None = none."""
        full = subject if subject.startswith("$") else f"$JS.API.{subject}"
        before = len(self.engine.published)
        self.manager.answer(TwinRequest(subject=full, payload=body, header=header, account=account))
        tasks = self.manager._lanes.lane_of(account).tasks
        while tasks:
            for _ in tasks.popleft():
                pass
        answers = [each for each in self.engine.published[before:] if each[1] == "reply"]
        assert len(answers) <= 1, answers
        return (answers[0][3] or b"") + answers[0][2] if answers else None

    def ask(self, subject: str, body: bytes | dict[str, Any] = b"", **options: Any) -> dict[str, Any]:
        """Return the answer to a request as what it says."""
        answer = self.request(subject, body if isinstance(body, bytes) else json.dumps(body).encode(), **options)
        assert answer is not None
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    def error(self, subject: str, body: bytes | dict[str, Any] = b"", **options: Any) -> str:
        """Return the error of a request that is refused: its number and its text."""
        error = self.ask(subject, body, **options)["error"]
        return f"{error['err_code']} {error['description']}"

    def publish(self, stream: str, subject: str, payload: bytes = b"x", account: str = "$G") -> None:
        """Store a message."""
        self.engine.streams[account, stream].publish(subject, payload, time.time_ns())
