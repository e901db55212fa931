"""Where a server finds the claims of an account: in memory, in a folder, or at a web address.

```python
resolver = make_resolver(trust)
resolver.open()                       # raises StartError
text = resolver.fetch("A…")           # empty = not found
```

A resolver keeps texts; `accounts` decides whether to trust them.
"""

from typing import TYPE_CHECKING, Protocol

from jetlake.errors import StartError
from jetlake.server.claims.lookups import ClaimsLookup
from jetlake.server.claims.model import read_account
from jetlake.server.claims.store import ClaimsStore, StoreFullError
from jetlake.server.claims.token import InvalidTokenError
from jetlake.server.options.trust import (
    CACHE_ACCOUNTS_MAX,
    ResolverOptions,
    ResolverTls,
    TrustOptions,
    without_credentials,
)

if TYPE_CHECKING:
    from ssl import SSLContext

ANSWER_BYTES_MAX = 2 * 1024 * 1024
"""Twice the largest token: what a web address sends beyond it is not read."""


class FetchError(Exception):
    """Claims could not be looked up; the message says why."""


class Resolver(Protocol):
    """What keeps claims. `is_slow` = looking them up may take seconds."""

    @property
    def is_slow(self) -> bool: ...
    def open(self) -> None: ...
    def fetch(self, account: str) -> str: ...


class MemoryResolver:
    """Claims that stand in the configuration, and nothing else."""

    is_slow = False

    def __init__(self, preloaded: dict[str, str]) -> None:
        self._claims = dict(preloaded)

    def open(self) -> None:
        """Do nothing: everything is there."""

    def fetch(self, account: str) -> str:
        """Return the claims of an account; empty = there are none."""
        return self._claims.get(account, "")


class FolderResolver:
    """Claims in a folder, which others may add to, replace and delete."""

    def __init__(self, options: ResolverOptions, preloaded: dict[str, str]) -> None:
        self.options = options
        self._preloaded = preloaded
        is_cache = options.kind == "cache"
        # A cache has not all claims, and asks those who have.
        self.lookup = ClaimsLookup(options.timeout_s) if is_cache else None
        default_max = CACHE_ACCOUNTS_MAX if is_cache else None
        self.store = ClaimsStore(
            options.directory,
            accounts_max=options.accounts_max or default_max,
            evicts=is_cache,
            keep_s=options.keep_s,
        )

    def open(self) -> None:
        """Open the folder, and put what is preloaded into it unless newer claims are there. Raises `StartError`."""
        self.store.open()
        try:
            self.preload(self._preloaded)
        except (OSError, StoreFullError) as error:
            raise StartError(f"The claims under resolver_preload cannot be kept: {error}") from error

    def preload(self, preloaded: dict[str, str]) -> list[str]:
        """Keep claims that are newer than those in the folder, and return whose these are."""
        return [
            account
            for account, text in preloaded.items()
            if _is_newer(text, self.store.load(account)) and self.store.save(account, text)
        ]

    @property
    def is_slow(self) -> bool:
        return self.lookup is not None

    def fetch(self, account: str) -> str:
        """Return the claims of an account; empty = there are none. Raises `FetchError`."""
        found = self.store.load(account)
        if found or self.lookup is None:
            return found
        found = self.lookup.ask(account)
        if not found:
            return ""
        try:
            if read_account(found).sub != account:
                raise FetchError("the claims that were sent are those of another account")
            self.store.save(account, found)
        except (InvalidTokenError, OSError, StoreFullError) as error:
            raise FetchError(f"the claims that were sent cannot be kept: {error}") from error
        return found


class UrlResolver:
    """Claims at a web address, to which the key of the account is appended."""

    is_slow = True

    def __init__(self, options: ResolverOptions) -> None:
        self._url = options.url if options.url.endswith("/") else f"{options.url}/"
        self._timeout_s = options.timeout_s
        self._tls = options.tls
        self._context: SSLContext | None = None

    def open(self) -> None:
        """Check whether the server answers. Raises `StartError`."""
        if self._url.startswith("https://"):
            self._context = _make_context(self._tls)
        try:
            self.fetch("")
        except FetchError as error:
            raise StartError(f"{error}; check the address in `resolver`") from error

    def fetch(self, account: str) -> str:
        """Return the claims of an account. Raises `FetchError`."""
        # Only servers with such an address pay for loading it.
        from http.client import HTTPException
        from urllib.request import urlopen

        try:
            # The scheme was checked when the configuration was read.
            with urlopen(self._url + account, timeout=self._timeout_s, context=self._context) as answer:  # noqa: S310
                return str(answer.read(ANSWER_BYTES_MAX).decode("ascii").strip())
        except (OSError, HTTPException, ValueError, OverflowError) as error:
            # Also for an address that is none, such as one with a port that does not exist.
            raise FetchError(f"could not fetch <{without_credentials(self._url)}{account}>: {error}") from error


def _make_context(tls: ResolverTls) -> "SSLContext":
    """Return how to shake hands. Raises `StartError`."""
    from ssl import create_default_context

    try:
        context = create_default_context(cafile=tls.authority_file or None)
        if tls.certificate_file:
            context.load_cert_chain(tls.certificate_file, tls.key_file or None)
    except OSError as error:
        raise StartError(f"The certificates under resolver_tls cannot be used: {error}; check its files") from error
    return context


def make_resolver(trust: TrustOptions) -> Resolver:
    """Return what keeps the claims of accounts, not yet opened."""
    options = trust.resolver or ResolverOptions(kind="memory")
    if options.has_folder:
        return FolderResolver(options, trust.preloaded)
    return UrlResolver(options) if options.kind == "url" else MemoryResolver(trust.preloaded)


def _is_newer(text: str, existing: str) -> bool:
    """Tell whether claims replace those that are there: equal ones and older ones do not."""
    if not existing:
        return True
    try:
        before = read_account(existing)
    except InvalidTokenError:
        return True
    after = read_account(text)
    return text != existing and (after.jti != before.jti or not after.jti) and after.iat >= before.iat
