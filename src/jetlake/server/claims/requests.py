"""Requests of the system account about claims: what `nsc push`, `nsc pull` and `nsc delete` send.

| subject                                | answer                                                  |
|----------------------------------------|---------------------------------------------------------|
| `$SYS.REQ.CLAIMS.UPDATE`               | claims of an account are kept from now on               |
| `$SYS.REQ.ACCOUNT.<key>.CLAIMS.UPDATE` | the same, for the account that is named                 |
| `$SYS.ACCOUNT.<key>.CLAIMS.UPDATE`     | the same, as older tools ask                            |
| `$SYS.REQ.ACCOUNT.<key>.CLAIMS.LOOKUP` | the claims of an account, or nothing                    |
| `$SYS.REQ.CLAIMS.LIST`                 | the keys of all accounts                                |
| `$SYS.REQ.CLAIMS.PACK`                 | a message for each account, then an empty one           |
| `$SYS.REQ.CLAIMS.DELETE`               | claims are deleted, if an operator signed the request   |

Without a folder only the two subjects that name an account are answered: claims of accounts that are known are replaced
until the next start.

Invariant: claims are kept only if their signature fits, a trusted operator signed them, and they are valid.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.server.claims.accounts import UnknownAccountError
from jetlake.server.claims.model import AccountClaims, read_account
from jetlake.server.claims.operator_mode import OperatorMode
from jetlake.server.claims.resolvers import FolderResolver
from jetlake.server.claims.store import StoreFullError
from jetlake.server.claims.token import InvalidTokenError, open_token
from jetlake.server.claims.validation import account_issues, blocks
from jetlake.server.nkeys import is_public_account_key

if TYPE_CHECKING:
    from jetlake.management.engine.protocols import Request
    from jetlake.monitoring.statsz import ServerInformation
    from jetlake.server.log import Log

UPDATE = "$SYS.REQ.CLAIMS.UPDATE"
LIST = "$SYS.REQ.CLAIMS.LIST"
PACK = "$SYS.REQ.CLAIMS.PACK"
DELETE = "$SYS.REQ.CLAIMS.DELETE"
LOOKUP_OF = "$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP"
UPDATE_OF = ("$SYS.REQ.ACCOUNT.*.CLAIMS.UPDATE", "$SYS.ACCOUNT.*.CLAIMS.UPDATE")

OF_ALL = frozenset({UPDATE, LIST, PACK, DELETE})

UPDATED, FAILED = 200, 500


class UpdateStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of an update."""

    account: str = ""
    code: int
    message: str


class UpdateError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why nothing came of it."""

    account: str = ""
    code: int
    description: str


class UpdateReply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to an update or a deletion."""

    server: "ServerInformation"
    data: UpdateStatus | msgspec.UnsetType = msgspec.UNSET
    error: UpdateError | msgspec.UnsetType = msgspec.UNSET


class RefusedClaimsError(Exception):
    """A request is refused: for which account, what failed, and why."""

    def __init__(self, account: str, message: str, reason: object) -> None:
        super().__init__(f"{message} - {reason}")
        self.account = account


class ClaimsRequests:
    """Answers the requests. Only the thread of the system account calls."""

    def __init__(self, mode: OperatorMode, log: "Log") -> None:
        self._mode = mode
        self._log = log

    def subjects(self) -> tuple[str, ...]:
        """Return the subjects that are answered in the system account."""
        folder = self._mode.folder
        if folder is None:
            return UPDATE_OF
        # A cache has not all claims, so it does not answer for others who look for some.
        complete = (LOOKUP_OF, PACK) if folder.lookup is None else (folder.lookup.subject,)
        return (UPDATE, LIST, DELETE, *UPDATE_OF, *complete)

    def serves(self, subject: str) -> bool:
        """Tell whether a request to this subject is one about claims, and not about an account of that name."""
        return subject in OF_ALL or subject.endswith((".CLAIMS.LOOKUP", ".CLAIMS.UPDATE")) or self._is_answer(subject)

    def _is_answer(self, subject: str) -> bool:
        folder = self._mode.folder
        return folder is not None and folder.lookup is not None and folder.lookup.hears(subject)

    def answer(self, request: "Request", server: "Callable[[], ServerInformation]") -> Iterator[bytes]:
        """Do what is asked, and yield the replies."""
        if self._is_answer(request.subject):
            lookup = self._folder().lookup
            assert lookup is not None, "it is an answer"
            lookup.hear(request.subject, request.payload)
            return
        tokens = request.subject.split(".")
        match tokens[-1]:
            case "UPDATE":
                named = tokens[-3] if request.subject != UPDATE else ""
                yield self._answered(lambda: self._update(request.payload, named), server)
            case "DELETE":
                yield self._answered(lambda: self._delete(request.payload), server)
            case "LOOKUP":
                yield self._folder().store.load(tokens[-3]).encode()
            case "LIST":
                yield msgspec.json.encode({"server": server(), "data": self._listed()})
            case _:
                assert request.subject == PACK, "only these subjects are subscribed to"
                yield from self._packed(request.payload)

    def _answered(self, act: Callable[[], UpdateStatus], server: "Callable[[], ServerInformation]") -> bytes:
        try:
            status = act()
        except RefusedClaimsError as error:
            self._log.error(f"{error} ({error.account})" if error.account else str(error))
            failure = UpdateError(account=error.account, code=FAILED, description=str(error))
            return msgspec.json.encode(UpdateReply(server=server(), error=failure))
        self._log.write("debug", f"{status.message} - {status.account}")
        return msgspec.json.encode(UpdateReply(server=server(), data=status))

    def _update(self, payload: bytes, named: str) -> UpdateStatus:
        folder = self._mode.folder
        is_cache = folder is not None and folder.options.kind == "cache"
        what = "jwt update cache" if is_cache else "jwt update"
        claims, token = self._read(payload, named, what)
        key = claims.sub
        if (is_cache or folder is None) and self._mode.find(key) is None:
            # Not needed yet; it is looked up when a user of the account logs in.
            return UpdateStatus(account=key, code=UPDATED, message=f"{what} skipped")
        try:
            # First: only what an operator has signed is worth the time that looking through it takes.
            self._mode.check_signer(claims)
        except UnknownAccountError as error:
            raise RefusedClaimsError(key, f"{what} resulted in error", error) from error
        issues = account_issues(claims, now_unix_s=0)
        if blocks(issues, with_times=False):
            described = " ".join(issue.description for issue in issues)
            validation = "jwt update cache validation failed" if is_cache else "jwt validation failed"
            raise RefusedClaimsError(key, validation, f"validation errors: [{described}]")
        try:
            self._mode.verify(token)
            if folder is not None:
                folder.store.save(key, token)
            self._mode.update(key, token)
        except (UnknownAccountError, StoreFullError, OSError) as error:
            raise RefusedClaimsError(key, f"{what} resulted in error", error) from error
        return UpdateStatus(account=key, code=UPDATED, message="jwt updated cache" if is_cache else "jwt updated")

    def _read(self, payload: bytes, named: str, what: str) -> tuple[AccountClaims, str]:
        """Return the claims of a request to store them. Raises `RefusedClaimsError`."""
        try:
            token = payload.decode("ascii").strip()
            claims = read_account(token)
        except (UnicodeDecodeError, InvalidTokenError) as error:
            # nats-server names the account only if it does not keep claims, or has only some of them.
            folder = self._mode.folder
            known = named if named and (folder is None or folder.options.kind == "cache") else "n/a"
            raise RefusedClaimsError(known, f"{what} resulted in error", error) from error
        if named and claims.sub != named:
            raise RefusedClaimsError(named, f"{what} resulted in error", "subject does not match jwt content")
        if not is_public_account_key(claims.sub):
            raise RefusedClaimsError(claims.sub, f"{what} resulted in error", "invalid public key")
        for operator in self._mode.operators()[:1]:
            if operator.nats.strict_signing_key_usage and claims.iss == operator.sub:
                reason = "operator requires issuer to be a signing key"
                raise RefusedClaimsError(claims.sub, f"{what} resulted in error", reason)
        return claims, token

    def _delete(self, payload: bytes) -> UpdateStatus:
        folder = self._folder()
        subject = ""
        try:
            request = open_token(payload.decode("ascii"))
            subject = str(request.payload.get("sub", ""))
            keys = self._deletable(request.issuer, subject, request.payload.get("nats"))
        except (UnicodeDecodeError, InvalidTokenError, ValueError) as error:
            raise RefusedClaimsError("", f"delete accounts request by {subject} failed", error) from error
        for key in keys:
            try:
                folder.store.delete(key, keeps_file=folder.options.kind == "full" and not folder.options.hard_delete)
            except OSError as error:
                raise RefusedClaimsError(key, "deleting claims failed", error) from error
            self._mode.disable(key)
        return UpdateStatus(code=UPDATED, message=f"deleted {len(keys)} accounts")

    def _deletable(self, issuer: str, subject: str, body: Any) -> list[str]:
        """Return the accounts whose claims to delete. Raises `ValueError` if that is not allowed."""
        options = self._folder().options
        if options.kind == "full" and not options.allow_delete:
            raise ValueError("delete must be enabled in server config")
        if subject != issuer:
            raise ValueError("not self signed")
        if issuer not in [key for operator in self._mode.operators()[:1] for key in operator.issuers()]:
            raise ValueError("not trusted")
        keys = body.get("accounts") if isinstance(body, dict) else None
        if not isinstance(keys, list) or not all(isinstance(key, str) and is_public_account_key(key) for key in keys):
            raise ValueError("malformed request")
        if self._mode.system_account in keys:
            raise ValueError("not allowed to delete system account")
        return keys

    def _listed(self) -> list[str]:
        return [key for key, _ in self._valid_claims()]

    def _packed(self, digest: bytes) -> Iterator[bytes]:
        """Yield the claims of all accounts, unless the requester has the same; an empty message is the end."""
        if digest != self._folder().store.digest():
            for key, token in self._valid_claims():
                yield f"{key}|{token}".encode()
        yield b""

    def _valid_claims(self) -> Iterator[tuple[str, str]]:
        """Yield the claims that have not expired."""
        store, now = self._folder().store, self._mode.now_unix_s()
        for key in store.accounts():
            token = store.load(key)
            try:
                is_expired = 0 < read_account(token).exp < now
            except InvalidTokenError:
                # Pass it on as it is: the receiver checks it, too.
                is_expired = not token
            if not is_expired:
                yield key, token

    def _folder(self) -> FolderResolver:
        folder = self._mode.folder
        assert folder is not None, "only servers with a folder answer this"
        return folder
