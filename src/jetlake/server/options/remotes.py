"""Other servers, and other accounts of this one, that streams may be copied from.

The files are named here and read when the engine is told about them, at the start.
"""

import msgspec

from jetlake.config import EngineRemote, EngineRemoteTls
from jetlake.errors import ConfigurationError, reason_of
from jetlake.shared.credentials import find_seed, find_user_jwt

USER_SEED_PREFIX = "SU"


class RemoteTls(msgspec.Struct, frozen=True, kw_only=True):
    """Certificates for a connection to another server."""

    # Empty = the authorities of this machine.
    authority_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    handshake_first: bool = False

    def for_engine(self) -> EngineRemoteTls:
        """Read the files. Raises `ConfigurationError`."""
        return EngineRemoteTls(
            ca_pem=_read(self.authority_file or _system_authorities(), "certificate authority"),
            certificate_pem=_read(self.certificate_file, "certificate") if self.certificate_file else "",
            key_pem=_read(self.key_file, "private key") if self.key_file else "",
            handshake_first=self.handshake_first,
        )


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
        seed, jwt = "", ""
        if self.seed_file:
            seed = _seed_in(_read(self.seed_file, "key"), self.seed_file)
        if self.credentials_file:
            text = _read(self.credentials_file, "credentials")
            jwt = find_user_jwt(text) or ""
            if not jwt:
                raise _is_missing(self.credentials_file, "user JWT between its two lines of dashes")
            seed = _seed_in(text, self.credentials_file)
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


def _system_authorities() -> str:
    # Only servers with such a remote pay for loading the library.
    import ssl

    path = ssl.get_default_verify_paths().cafile
    if path is None:
        raise ConfigurationError("this machine has no certificate authorities: name a ca_file in the remote's tls")
    return path


def _seed_in(text: str, path: str) -> str:
    seed = find_seed(text, USER_SEED_PREFIX)
    if seed is None:
        raise _is_missing(path, "seed of a user's NKEY, SU…")
    return seed


def _is_missing(path: str, what: str) -> ConfigurationError:
    return ConfigurationError(f"{path} has no {what}: make one with `nsc`, or name another file")


def _read(path: str, what: str) -> str:
    try:
        # Bundles of authorities have comments in any language.
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise ConfigurationError(f"the {what} of a remote cannot be read: open {path}: {reason_of(error)}") from error
    except ValueError as error:
        raise ConfigurationError(f"the {what} of a remote in {path} is not text; convert it to PEM") from error
