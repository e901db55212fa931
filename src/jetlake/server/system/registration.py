"""The subjects under `$SYS` that the server answers, and in which account.

In the system account everything can be asked. Every other account has four subjects, which answer about that account
and nothing else; what is not in these lists has no responder.

Invariant: after `update`, exactly the accounts it was given are answered.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jetlake.server.system.protocols import EngineSubscriptions

SERVER_BODIES = (
    "ACCOUNTZ",
    "CONNZ",
    "EXPVARZ",
    "GATEWAYZ",
    "HEALTHZ",
    "IDZ",
    "IPQUEUESZ",
    "JSZ",
    "LEAFZ",
    "PROFILEZ",
    "RAFTZ",
    "ROUTEZ",
    "STATSZ",
    "SUBSZ",
    "VARZ",
)
"""What one server, or all of them by PING, can be asked about."""

COMMANDS = ("KICK", "LDM", "RELOAD")
"""What only a server that is named does."""

ACCOUNT_BODIES = ("CONNS", "CONNZ", "INFO", "JSZ", "LEAFZ", "STATZ", "SUBSZ")
"""What can be asked about an account; `PING` in the place of its name means all of them, for STATZ."""

PING = "$SYS.REQ.SERVER.PING"
USER_INFORMATION = "$SYS.REQ.USER.INFO"
SUBSCRIBERS = "$SYS.DEBUG.SUBSCRIBERS"

ACCOUNT_REFUSALS = "$SYS.ACCOUNT.CLIENT.AUTH.ERR"
"""Where refused clients are reported to the account of the service that decides about them."""

OWN_CONNECTIONS = frozenset({"$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.SERVER.PING.CONNZ"})
OWN_STATISTICS = "$SYS.REQ.ACCOUNT.PING.STATZ"

SUBJECTS_OF_ANY_ACCOUNT = (*sorted(OWN_CONNECTIONS), OWN_STATISTICS, USER_INFORMATION)


def system_subjects(server_id: str) -> list[str]:
    """Return what is answered in the system account."""
    return [
        PING,
        *(f"{PING}.{body}" for body in SERVER_BODIES),
        *(f"$SYS.REQ.SERVER.{server_id}.{word}" for word in (*SERVER_BODIES, *COMMANDS)),
        *(f"$SYS.REQ.ACCOUNT.*.{body}" for body in ACCOUNT_BODIES),
        USER_INFORMATION,
        SUBSCRIBERS,
    ]


class Registration:
    """The subscriptions of the server itself. Without a system account there are none."""

    def __init__(self, engine: "EngineSubscriptions", system_account: str, further: tuple[str, ...] = ()) -> None:
        self._engine = engine
        self._system_account = system_account
        # What is answered in the system account besides.
        self._further = further
        self._services: dict[str, list[int]] = {}

    def update(self, accounts: Iterable[str]) -> None:
        """Answer in these accounts, and in no others."""
        wanted = set(accounts) if self._system_account else set()
        for account in self._services.keys() - wanted:
            for service in self._services.pop(account):
                self._engine.unsubscribe(service)
        for account in sorted(wanted - self._services.keys()):
            is_system = account == self._system_account
            of_system = [*system_subjects(self._engine.server_id), *self._further]
            subjects = of_system if is_system else SUBJECTS_OF_ANY_ACCOUNT
            self._services[account] = [self._engine.subscribe(account, subject) for subject in subjects]
