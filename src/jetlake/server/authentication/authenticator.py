"""The decision about a client: by the rules of the way it connects, or in operator mode by the claims it shows.

There is one way through: whatever the client said first, and whether it is asked again after a reload, `decide` is what
decides.
"""

from typing import TYPE_CHECKING, Protocol

from jetlake.server.authentication.passwords import Comparison, HashNeededError, Passwords, is_bcrypt
from jetlake.server.authentication.presented import Login, read_presented
from jetlake.server.authentication.rules import Rules
from jetlake.server.authentication.verdict import Refusal, Verdict
from jetlake.server.options.accounts import AccessOptions
from jetlake.server.options.leafnodes import LeafOptions
from jetlake.server.options.users import LEAF, LEAF_TYPES, LEAF_WEBSOCKET, STANDARD, WEBSOCKET
from jetlake.server.options.websocket import WebSocketOptions

if TYPE_CHECKING:
    from jetlake.server.callout.authorization_answer import AuthorizationAnswer
    from jetlake.server.callout.configured import ConfiguredCallout
    from jetlake.server.callout.delegation import Delegation


class ClaimsDecision(Protocol):
    """What decides in operator mode; `jetlake.server.claims.operator_mode.OperatorMode` does."""

    @property
    def is_slow(self) -> bool: ...
    def decide(self, login: Login) -> "Verdict | Delegation | Refusal | None": ...
    def decide_quickly(self, login: Login) -> "Verdict | Delegation | None": ...
    def conclude(self, login: Login, delegation: "Delegation", answer: "AuthorizationAnswer") -> Verdict: ...


class Authenticator:
    """Decides by one configuration; a reload makes a new one, which may share the memory of passwords."""

    def __init__(
        self,
        access: AccessOptions,
        passwords: Passwords | None = None,
        websocket: WebSocketOptions | None = None,
        claims: ClaimsDecision | None = None,
        leaf: LeafOptions | None = None,
    ) -> None:
        self._access = access
        self._claims = claims
        self._websocket = websocket
        self._passwords = passwords or Passwords()
        self._rules = {STANDARD: Rules(access, STANDARD)}
        if websocket is not None:
            self._rules[WEBSOCKET] = Rules(websocket.access(access), WEBSOCKET)
        listener = None if leaf is None else leaf.listener
        if listener is not None:
            for connection_type in (LEAF, LEAF_WEBSOCKET):
                self._rules[connection_type] = Rules(listener.access(access), connection_type)
        # Users of the block `leafnodes` decide before claims and services do.
        self._has_leaf_users = listener is not None and listener.overrides_access
        self._certificate_users = frozenset(
            user.name
            for user in access.users
            if not user.nkey and not user.password and any(rules.maps(user) for rules in self._rules.values())
        )
        stored = [secret for rules in self._rules.values() for secret in rules.stored_secrets()]
        # What is compared when nothing else is, so that every refusal takes as long as that of a known user.
        self._decoy = next((secret for secret in stored if is_bcrypt(secret)), "")
        self._callout: ConfiguredCallout | None = None
        if access.callout is not None:
            # Only servers whose clients are decided about by a service pay for loading what asks it.
            from jetlake.server.callout import configured

            self._callout = configured.ConfiguredCallout(access, access.callout)

    @property
    def slow(self) -> bool:
        """Tell whether a decision may take a tenth of a second, or longer."""
        return bool(self._decoy) if self._claims is None else self._claims.is_slow

    @property
    def passwords(self) -> Passwords:
        return self._passwords

    @property
    def has_plain_passwords(self) -> bool:
        """Tell whether a password stands in the configuration as it is, for everybody who can read it."""
        stored = [
            user.password
            for user in self._access.users
            # They need none.
            if not user.nkey and user.name not in self._certificate_users
        ]
        shared = [self._access.credentials.password]
        if self._websocket is not None:
            shared.append(self._websocket.credentials.password)
        stored += [password for password in shared if password]
        return any(not is_bcrypt(password) for password in stored)

    @property
    def reviews_admitted(self) -> bool:
        """Tell whether clients that are in are asked about again by what they were admitted with."""
        return self._claims is not None

    def mistakes(self) -> list[str]:
        """Return what of the configuration leads nowhere: a line each."""
        return [] if self._callout is None else self._callout.mistakes()

    def decide(self, login: Login) -> "Verdict | Delegation | Refusal | None":
        """Return the verdict on a client, or that a service decides; None = refused, like one with a cause.

        If any password is a hash, every refusal takes as long as computing one: a refused client does not learn whether
        there is such a user, or what kind of password it has.
        """
        if self._claims is not None and not self._is_by_leaf_users(login):
            return self._claims.decide(login)
        comparison = Comparison(self._passwords, is_quick=False)
        verdict = self._decide(login, comparison)
        if verdict is None and self._decoy and not comparison.has_hashed:
            comparison.match(self._decoy, "")
        return verdict

    def decide_quickly(self, login: Login) -> "Verdict | Delegation | None":
        """Return the verdict over a client that needs no hash to be computed; None = it is for `decide`."""
        if self._claims is not None and not self._is_by_leaf_users(login):
            return self._claims.decide_quickly(login)
        try:
            return self._decide(login, Comparison(self._passwords, is_quick=True))
        except HashNeededError:
            return None

    def conclude(self, login: Login, delegation: "Delegation", answer: "AuthorizationAnswer") -> Verdict:
        """Return as whom a client is let in that a service has admitted. Raises `RefusedAnswerError`."""
        decides = self._claims or self._callout
        assert decides is not None, "only these delegate"
        return decides.conclude(login, delegation, answer)

    def _decide(self, login: Login, comparison: Comparison) -> "Verdict | Delegation | None":
        verdict = self._rules[login.connection_type].decide(login, comparison, self._certificate_users)
        if self._callout is None or self._is_by_leaf_users(login):
            return verdict
        return self._callout.review(read_presented(login.connect), verdict)

    def _is_by_leaf_users(self, login: Login) -> bool:
        return self._has_leaf_users and login.connection_type in LEAF_TYPES
