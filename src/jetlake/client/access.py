"""`Access`: everything needed to reach a server, and `connect`, which does.

It comes from three places; what is more explicit wins:

1. options given by hand, such as `--server`
2. the variables NATS_URL, NATS_USER and so on
3. a context: the one that is named, else NATS_CONTEXT's, else the chosen one, if there is any

```python
access = resolve({"url": "nats://127.0.0.1:4222"})
connection = await connect(access)
```
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from jetlake.client import contexts
from jetlake.client.connection import DEFAULT_URL, HasUrl, login_of
from jetlake.client.first_connect import first_connect, without_secrets
from jetlake.errors import ClientError, ConfigurationError, reason_of

if TYPE_CHECKING:
    import ssl

    from nats.aio.client import Client

SCHEMES = ("nats", "tls", "ws", "wss")

DEFAULT_TIMEOUT_S = 5.0
DEFAULT_API_PREFIX = "$JS.API"

RECONNECT_WAIT_S = 1.0
"""Between two attempts of a command that outlives its connection."""

VARIABLES = {
    "url": "NATS_URL",
    "user": "NATS_USER",
    "password": "NATS_PASSWORD",
    "token": "NATS_TOKEN",
    "credentials": "NATS_CREDS",
    "nkey": "NATS_NKEY",
    "tls_certificate": "NATS_CERT",
    "tls_key": "NATS_KEY",
    "tls_ca": "NATS_CA",
    "tls_first": "NATS_TLS_FIRST",
    "timeout_s": "NATS_TIMEOUT",
    "api_prefix": "NATS_JS_API_PREFIX",
    "domain": "NATS_JS_DOMAIN",
    "inbox_prefix": "NATS_INBOX_PREFIX",
}
"""The variable of each field."""

CONTEXT_VARIABLE = "NATS_CONTEXT"

CONTEXT_KEYS = {
    "url": "url",
    "user": "user",
    "password": "password",
    "token": "token",
    "credentials": "creds",
    "nkey": "nkey",
    "tls_certificate": "cert",
    "tls_key": "key",
    "tls_ca": "ca",
    "tls_first": "tls_first",
    "api_prefix": "jetstream_api_prefix",
    "domain": "jetstream_domain",
    "inbox_prefix": "inbox_prefix",
}
"""The key that each field has in the file of a context."""

UNSUPPORTED_KEYS = ("nsc", "user_jwt", "user_seed", "socks_proxy")
"""What a connection cannot do without, and is not understood here."""

OnError = Callable[[Exception], None]

_PATHS = ("credentials", "nkey", "tls_certificate", "tls_key", "tls_ca")
_CREDENTIALS = (("user", "password"), ("token",), ("credentials",), ("nkey",))
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is reached, and as whom. `url` may name several servers, with commas between them."""

    url: str = DEFAULT_URL
    user: str | None = None
    password: str | None = None
    token: str | None = None
    # A file with a JWT and the seed of its key, or one with a seed alone.
    credentials: Path | None = None
    nkey: Path | None = None
    tls_ca: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    # Shake hands before the server has said anything, as it must be configured to do too.
    tls_first: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S
    api_prefix: str = DEFAULT_API_PREFIX
    # Of JetStream; it makes the prefix, and wins over one that is given.
    domain: str | None = None
    inbox_prefix: str | None = None
    # Shown by the server among its connections.
    name: str | None = None

    def __post_init__(self) -> None:
        if self.timeout_s <= 0:
            raise ConfigurationError(f"a timeout of {self.timeout_s:g} s cannot work: give more than 0")
        if not self.urls:
            raise ConfigurationError("no server is named: give an address such as nats://127.0.0.1:4222")
        for url in self.urls:
            _check(url)
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ConfigurationError("a TLS certificate and its key belong together: give both, or neither")

    @property
    def urls(self) -> list[str]:
        """The servers to try, in order."""
        named = [part.strip() for part in self.url.split(",") if part.strip()]
        return [part if "://" in part else f"nats://{part}" for part in named]

    @property
    def wants_tls(self) -> bool:
        """Whether nothing may be said in the clear: the address or an option says so."""
        return bool(
            self.tls_ca or self.tls_certificate or self.tls_first or any(url.startswith("tls://") for url in self.urls)
        )

    @property
    def shown(self) -> str:
        """The servers without user names, passwords and tokens, for messages."""
        return ", ".join(without_secrets(url) for url in self.urls)

    def api_subject(self, request: str) -> str:
        """Return the whole subject of a request such as `STREAM.NAMES`."""
        prefix = f"$JS.{self.domain}.API" if self.domain else self.api_prefix
        return f"{prefix.rstrip('.')}.{request}"


def resolve(
    options: Mapping[str, Any] | None = None,
    *,
    context: str | None = None,
    environment: Mapping[str, str] | None = None,
    use_context: bool = True,
) -> Access:
    """Return the access that options, variables and a context make together. Raises `ConfigurationError`.

    Options are fields of `Access`; those that are None are not given. Credentials are taken from one place as a
    whole: a token on the command line does not meet a context's password.
    """
    variables = os.environ if environment is None else environment
    name = ""
    if use_context:
        name = context or variables.get(CONTEXT_VARIABLE, "") or (contexts.chosen() if not _is_broken_choice() else "")
    content = contexts.read(name) if name else {}
    unknown = [key for key in UNSUPPORTED_KEYS if content.get(key)]
    if unknown:
        raise ConfigurationError(
            f"the context {name!r} has {', '.join(unknown)}, which only NATS' own tools understand: use creds or nkey"
        )
    layers: list[dict[str, Any]] = [
        {field: content[key] for field, key in CONTEXT_KEYS.items() if content.get(key)},
        {field: variables[variable] for field, variable in VARIABLES.items() if variables.get(variable)},
        {field: value for field, value in (options or {}).items() if value is not None},
    ]
    merged: dict[str, Any] = {}
    for layer in layers:
        if any(field in layer for group in _CREDENTIALS for field in group):
            for field in (field for group in _CREDENTIALS for field in group):
                if not _completes(field, layer):
                    merged.pop(field, None)
        merged.update(layer)
    return _made(merged)


async def connect(access: Access, *, reconnect: bool = False, on_error: OnError | None = None) -> "Client":
    """Connect to the first server of `access` that answers. Raises `ClientError`.

    With `reconnect` the connection comes back by itself once it was there; without it ends with its server. `on_error`
    receives what the server reports unasked, such as a publish that is not permitted.
    """

    async def tell(error: Exception) -> None:
        """The call that fails reports its failure; without this nats-py would log it as well."""
        if on_error is not None:
            on_error(error)

    signer = None if access.credentials is None and access.nkey is None else _client(access)
    return await first_connect(
        lambda: _client(access),
        access.urls,
        _options(access, signer),
        later={
            "allow_reconnect": reconnect,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": RECONNECT_WAIT_S,
        },
        on_error=tell,
        login_hint=_login_hint(access),
    )


def access_of(server: "str | HasUrl") -> Access:
    """Return how an address or a running server is reached; of a server its credentials are known."""
    if isinstance(server, str):
        return Access(url=server)
    return Access(url=server.url, **login_of(server))  # type: ignore[arg-type]  # user, password or token, all texts


def _login_hint(access: Access) -> str:
    if access.user is not None:
        return f"Check the password of user {access.user}."
    if access.token is not None:
        return "Check the token."
    if access.credentials is not None or access.nkey is not None:
        return f"Check that the server knows the user of {access.credentials or access.nkey}."
    return "Use --user and --password."


def _client(access: Access) -> "Client":
    if access.credentials is None and access.nkey is None:
        from jetlake.client.guarded import GuardedClient

        return GuardedClient(wants_tls=access.wants_tls)
    from jetlake.client.signing import SigningClient

    return SigningClient(wants_tls=access.wants_tls, credentials=access.credentials, key=access.nkey)


def _options(access: Access, signer: "Client | None") -> dict[str, Any]:
    options: dict[str, Any] = {"connect_timeout": access.timeout_s, "name": access.name}
    if access.user is not None:
        options |= {"user": access.user, "password": access.password or ""}
    if access.token is not None:
        options["token"] = access.token
    if access.inbox_prefix:
        options["inbox_prefix"] = access.inbox_prefix.rstrip(".>")
    if signer is not None:
        options["signature_cb"] = signer.sign  # type: ignore[attr-defined]
    if access.credentials is not None:
        options["user_jwt_cb"] = signer.jwt  # type: ignore[union-attr]
    if access.wants_tls:
        options["tls"] = _tls(access)
        options["tls_handshake_first"] = access.tls_first
    return options


def _tls(access: Access) -> "ssl.SSLContext":
    import ssl

    try:
        made = ssl.create_default_context(cafile=access.tls_ca)
        if access.tls_certificate is not None:
            made.load_cert_chain(access.tls_certificate, access.tls_key)
    except ssl.SSLError as error:
        raise ClientError(
            f"the TLS files are refused: {error}; they must be PEM, and key and certificate a pair"
        ) from (error)
    except OSError as error:
        raise ClientError(f"a TLS file cannot be read: {reason_of(error)}") from error
    return made


def _made(fields: dict[str, Any]) -> Access:
    """Return the access of texts: paths are expanded, times and switches read."""
    made = dict(fields)
    for field in _PATHS:
        if isinstance(made.get(field), str):
            if "://" in made[field]:
                raise ConfigurationError(f"{made[field]!r} is not a file: only files on this machine can be read")
            made[field] = Path(os.path.expandvars(made[field])).expanduser()
    if isinstance(made.get("timeout_s"), str):
        made["timeout_s"] = _seconds(made["timeout_s"])
    if isinstance(made.get("tls_first"), str):
        made["tls_first"] = made["tls_first"].lower() in ("1", "t", "true", "yes", "on")
    return Access(**made)


def _seconds(text: str) -> float:
    number = text.rstrip("hms")
    try:
        return float(number) * _UNITS_S[text[len(number) :] or "s"]
    except (ValueError, KeyError) as error:
        raise ConfigurationError(f"{text!r} is not a time: write 5s, 500ms or 1m") from error


def _completes(field: str, layer: dict[str, Any]) -> bool:
    """Tell whether a field is the other half of what a layer gives: a password for the user of a context."""
    return any(field in group and any(other in layer for other in group) for group in _CREDENTIALS)


def _is_broken_choice() -> bool:
    """Tell whether the chosen context is gone: its file was deleted by hand, and nobody asked for it by name."""
    return contexts.chosen() not in contexts.names()


def _check(url: str) -> None:
    """Refuse what is not a server address."""
    try:
        address = urlsplit(url)
        is_good = address.scheme in SCHEMES and bool(address.hostname) and url.isprintable() and " " not in url
        # Reading the port raises if it is not a number or too large.
        is_good = is_good and address.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise ConfigurationError(
            f"{without_secrets(url)!r} is not a server address: write nats://host:4222, or tls://host:4222"
        )
