"""`AccessControl`: the users and accounts in force, by the configuration and by claims.

```python
access = AccessControl(options, log)
access.open()                               # operator mode finds its claims; raises StartError
gate = access.make_gate(engine, on_broken)
access.serve(engine, system, jetstream)     # changes reach them from now on
access.options()                            # with the accounts that are known by now
lines = access.reload(options, put_in_force)
```

Accounts of a file change by a reload; accounts of claims also when a user of a new one logs in, and when claims are
pushed. Both go the same way: the system account and JetStream answer in the existing accounts, and clients are checked
again if an account has changed.

Invariant: changes are applied one after another, so the server always serves the result of the last one.
"""

from collections.abc import Callable
from threading import RLock
from typing import TYPE_CHECKING

from jetlake._engine import Engine, EngineError
from jetlake.server.authentication.authenticator import Authenticator
from jetlake.server.authentication.gate import Gate
from jetlake.server.engine_errors import message_of
from jetlake.server.options import ServerOptions

if TYPE_CHECKING:
    from jetlake.server.callout.callout import Callout, PendingLogin
    from jetlake.server.claims.operator_mode import OperatorMode
    from jetlake.server.claims.requests import ClaimsRequests
    from jetlake.server.claims.shown import ShownClaims
    from jetlake.server.jetstream import JetStream
    from jetlake.server.log import Log
    from jetlake.server.system.account import SystemAccount


CALLOUT_THREADS_SLOW = 4
"""Threads that check what services answer, if that may mean to fetch the claims of an account from elsewhere."""


class AccessControl:
    """Who may come in, of one server. `reload_engine` tells the engine other options."""

    def __init__(self, options: ServerOptions, log: "Log", reload_engine: Callable[[ServerOptions], None]) -> None:
        self._given = options
        self._log = log
        self._reload_engine = reload_engine
        self.mode: OperatorMode | None = None
        self._shown: ShownClaims | None = None
        if options.access.trust is not None:
            # Only servers in operator mode wait for what checks signatures.
            from jetlake.server.claims import operator_mode, shown

            self.mode = operator_mode.OperatorMode(options.access, log, on_change=self._apply)
            self._shown = shown.ShownClaims(self.mode)
        self._authenticator = Authenticator(
            options.access, websocket=options.websocket, claims=self.mode, leaf=options.leaf
        )
        self._engine: Engine | None = None
        self._gate: Gate | None = None
        self._system: SystemAccount | None = None
        self._jetstream: JetStream | None = None
        # One that is taken twice: a reload may find accounts it has to look up.
        self._applying = RLock()
        self._told = _told_of(options)

    @property
    def has_plain_passwords(self) -> bool:
        return self._authenticator.has_plain_passwords

    def options(self) -> ServerOptions:
        """Return the options in force, with the accounts known from claims."""
        return self.completed(self._given)

    def completed(self, options: ServerOptions) -> ServerOptions:
        """Return options with the accounts known from claims."""
        return options if self.mode is None else self.mode.complete(options)

    def requests(self) -> "ClaimsRequests | None":
        """Return what answers requests about claims; None = this server has none."""
        if self.mode is None:
            return None
        from jetlake.server.claims.requests import ClaimsRequests

        return ClaimsRequests(self.mode, self._log)

    def shown(self) -> "ShownClaims | None":
        """Return what may be shown of claims; None = there are none."""
        return self._shown

    def open(self) -> None:
        """Find the claims, before the first client. Raises `StartError`."""
        for mistake in self._authenticator.mistakes():
            self._log.error(mistake)
        if self.mode is not None:
            self.mode.open()

    def know(self, accounts: list[str]) -> None:
        """Look these accounts up now: they have streams, which must not wait for a user to be limited."""
        if self.mode is not None:
            self.mode.look_up(accounts)

    def make_gate(self, engine: Engine, on_broken: Callable[[str], None]) -> Gate:
        """Return what answers clients that ask to come in."""

        def make_callout(gate: Gate) -> "Callout":
            # Only servers whose clients are decided about by a service pay for loading what asks it.
            from jetlake.server.callout import authorization_request, callout

            return callout.Callout(
                engine,
                server=lambda: authorization_request.describe_server(self._given, engine.server_id),
                timeout_s=lambda: self._given.limits.auth_timeout_ms / 1000,
                conclude=gate.conclude,
                on_refused=self._tell_refused,
                log=self._log,
                on_broken=on_broken,
                thread_count=CALLOUT_THREADS_SLOW if self.mode is not None and self.mode.is_slow else 1,
            )

        self._gate = Gate(engine, self._authenticator, on_broken, make_callout, self._log.error)
        return self._gate

    def serve(self, engine: Engine, system: "SystemAccount", jetstream: "JetStream | None") -> None:
        """Tell these of every change from now on."""
        self._engine, self._system, self._jetstream = engine, system, jetstream
        folder = None if self.mode is None else self.mode.folder
        if self.mode is not None and folder is not None and folder.lookup is not None:
            folder.lookup.connect(engine, self.mode.system_account)
        self._tell_engine()
        system.update()

    def close(self) -> None:
        """Stop reporting changes."""
        self._engine = None
        if self.mode is not None:
            self.mode.close()

    def reload(self, options: ServerOptions, put_in_force: Callable[[ServerOptions], None]) -> list[str]:
        """Go by other options from now on, and return a line for each account that is gone.

        `put_in_force` gives the engine the options with the accounts known from claims. What it raises is raised; then
        nothing has changed.
        """
        with self._applying:
            # Under the lock: accounts that come by claims meanwhile would be missing, or put the old options back.
            completed = self.completed(options)
            put_in_force(completed)
            self._told = _told_of(completed)
            before, self._given = self._given, options
            lines = [] if self.mode is None else self.mode.reload(options.access)
            # First, because clients go by their old rights until they have been asked about.
            self._replace_authenticator()
            # Claims may have changed though the file has not.
            if self.mode is not None or options.access != before.access:
                self._running_engine().reauthenticate()
            self._update()
        return lines

    def _apply(self, changed: frozenset[str]) -> None:
        """Accounts have come by claims; those of `changed` are not what they were."""
        with self._applying:
            if self._engine is None:
                return
            try:
                self._update()
                if changed:
                    self._replace_authenticator()
                for account in changed:
                    self._engine.reauthenticate(account)
            except EngineError as error:
                # The engine is ending, and its clients with it.
                self._log.warning(f"Changed accounts are not served: {message_of(error)}")

    def _update(self) -> None:
        """Serve the current accounts, before any client is let into them."""
        assert self._system is not None, "nothing changes before the start"
        self._tell_engine()
        self._system.update()
        if self._jetstream is not None:
            self._jetstream.update()

    def _tell_engine(self) -> None:
        """Tell the engine its options again, if there is something of accounts in them that it does not know."""
        options = self.options()
        told = _told_of(options)
        if told != self._told:
            self._reload_engine(options)
            self._told = told

    def _replace_authenticator(self) -> None:
        """Decide by a new one, so that no verdict by what was before reaches the engine."""
        assert self._gate is not None, "nothing changes before the start"
        given = self._given
        self._authenticator = Authenticator(
            given.access, self._authenticator.passwords, given.websocket, self.mode, given.leaf
        )
        self._gate.replace_authenticator(self._authenticator)

    def _tell_refused(self, pending: "PendingLogin", reason: str) -> None:
        """Tell the subscribers in the account of a service that a client was refused, and why."""
        if self._system is not None:
            self._system.tell_refused(pending, reason)

    def _running_engine(self) -> Engine:
        assert self._engine is not None, "nothing changes before the start"
        return self._engine


def _told_of(options: ServerOptions) -> list[object]:
    """Return the parts of accounts that are among the engine's options."""
    return [
        (account.name, account.message_trace, account.mappings, account.exports, account.imports)
        for account in options.access.accounts
        if account.message_trace or account.mappings or account.exports or account.imports
    ]
