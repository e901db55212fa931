"""`SystemAccount`: the system account of one server, from its start to its end.

```python
system = SystemAccount(engine, access=…, facts=…, reload=…, warn=log.warning)
system.update()                 # requests are answered; again after every reload
system.desk.receive(request)    # by the thread that receives from the engine
system.announce("SHUTDOWN")     # to subscribers
system.desk.close()
```
"""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from jetlake._engine import Engine
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.system.desk import Desk
from jetlake.server.system.registration import ACCOUNT_REFUSALS, Registration

if TYPE_CHECKING:
    from jetlake.monitoring.facts import ServerFacts
    from jetlake.monitoring.jsz import AccountUsage
    from jetlake.server.callout.callout import PendingLogin
    from jetlake.server.claims.requests import ClaimsRequests
    from jetlake.server.system.handler import Handler


class SystemAccount:
    """Answers and reports in the system account. The functions it is given are called by other threads."""

    def __init__(
        self,
        engine: Engine,
        *,
        access: Callable[[], AccessOptions],
        facts: "Callable[[], ServerFacts]",
        reload: Callable[[], str],
        warn: Callable[[str], None],
        usages: "Callable[[], list[AccountUsage]] | None" = None,
        claims: "ClaimsRequests | None" = None,
    ) -> None:
        self._engine = engine
        self._access = access
        self._facts = facts
        self._reload = reload
        self._warn = warn
        self._usages = usages
        self._claims = claims
        # A reload cannot change it.
        self._name = access().system_account
        self._registration = Registration(engine, self._name, () if claims is None else claims.subjects())
        self._handler_lock = Lock()
        self._handler: Handler | None = None
        self.desk = Desk(engine, self._name, lambda: access().account_names(), self._get_handler, warn)

    def update(self) -> None:
        """Answer in the accounts there are now."""
        self._registration.update(self._access().account_names())

    def announce(self, event: str) -> None:
        """Publish `LAMEDUCK` or `SHUTDOWN` to subscribers, before this returns."""
        if self._name and self._engine.has_interest(self._name, f"$SYS.SERVER.{self._engine.server_id}.{event}"):
            self._get_handler().announce(event)

    def tell_refused(self, pending: "PendingLogin", reason: str) -> None:
        """Report to subscribers in the account of a service that a client it was asked about was refused."""
        if self._name and self._engine.has_interest(pending.delegation.account, ACCOUNT_REFUSALS):
            self._get_handler().tell_refused(pending, reason)

    def _get_handler(self) -> "Handler":
        with self._handler_lock:
            if self._handler is None:
                # Most servers are never asked.
                from jetlake.server.system.handler import Handler

                self._handler = Handler(
                    self._engine, self._facts, self._access, self._reload, self._warn, self._usages, self._claims
                )
            return self._handler
