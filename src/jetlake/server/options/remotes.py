"""Other servers, and other accounts of this one, that streams may be copied from.

The files are named here and read when the engine gets them, at the start.
"""

import msgspec

from jetlake.config import EngineRemote
from jetlake.server.options.remote_files import RemoteTls, read_credentials, read_seed


class Remote(msgspec.Struct, frozen=True, kw_only=True):
    """One of them.

    | usage                                            | what it is                                               |
    |--------------------------------------------------|----------------------------------------------------------|
    | `Remote(name="hub", addresses=("hub.lan:4222",))` | another server, asked through `$JS.API`                  |
    | `Remote(…, domain="hub")`                        | the same, asked through `$JS.hub.API`                    |
    | `Remote(name="b", account="B")`                  | the account B of this server                             |
    """

    name: str
    # Of this server; None = another server.
    account: str | None = None
    # `host:port`, tried in turn.
    addresses: tuple[str, ...] = ()
    user: str = ""
    password: str = ""
    token: str = ""
    # A file with the seed of a user's NKEY, or with JWT and seed.
    seed_file: str = ""
    credentials_file: str = ""
    tls: RemoteTls | None = None
    # What is asked there; empty = `$JS.API`.
    domain: str = ""
    api_prefix: str = ""
    # Those whose streams may read from it; empty = all.
    allowed_accounts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # Options end up in logs and tracebacks; a password must not.
        return f"Remote(name={self.name!r})"

    @property
    def api_names(self) -> list[str]:
        """What an origin may write as `external.api` to mean this one."""
        names = [f"$JS.{self.name}.API"]
        if self.domain and self.domain != self.name:
            names.append(f"$JS.{self.domain}.API")
        return names if self.api_prefix in ("", *names) else [*names, self.api_prefix]

    def for_engine(self) -> EngineRemote:
        """Read the files. Raises `ConfigurationError`."""
        jwt, seed = "", ""
        if self.credentials_file:
            jwt, seed = read_credentials(self.credentials_file)
        elif self.seed_file:
            seed = read_seed(self.seed_file)
        return EngineRemote(
            name=self.name,
            account=self.account,
            addresses=self.addresses,
            user=self.user,
            password=self.password,
            token=self.token,
            seed=seed,
            jwt=jwt,
            tls=None if self.tls is None else self.tls.for_engine(),
            domain=self.domain,
            api_prefix=self.api_prefix,
            allowed_accounts=self.allowed_accounts,
        )
