"""The flags every command takes, wherever on the line they stand, and what this line says about them.

```text
jetlake --server nats://a:4222 stream ls          the same
jetlake stream ls -s nats://a:4222                the same
```

Invariant: a line is taken apart once, before any command sees it; commands ask `current()`.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jetlake.client.access import Access


class CommonFlag(NamedTuple):
    """One flag of all commands. Without a metavar it is a switch."""

    names: tuple[str, ...]
    # The field of `Access` it fills; empty for flags that are not part of it.
    field: str
    metavar: str
    help: str


FLAGS = (
    CommonFlag(("--server", "-s"), "url", "URL", "Address of the server, or several with commas; NATS_URL."),
    CommonFlag(("--context",), "", "NAME", "A named connection, see `jetlake context`; NATS_CONTEXT."),
    CommonFlag(("--no-context",), "", "", "Do not use a context, even if one is selected."),
    CommonFlag(("--user",), "user", "NAME", "User name; NATS_USER."),
    CommonFlag(("--password",), "password", "PASSWORD", "Password; NATS_PASSWORD."),
    CommonFlag(("--token",), "token", "TOKEN", "Token; NATS_TOKEN."),
    CommonFlag(("--creds",), "credentials", "FILE", "Credentials file of a user; NATS_CREDS."),
    CommonFlag(("--nkey",), "nkey", "FILE", "File with the seed of a user's key; NATS_NKEY."),
    CommonFlag(("--tlscert",), "tls_certificate", "FILE", "TLS certificate of this client; NATS_CERT."),
    CommonFlag(("--tlskey",), "tls_key", "FILE", "Its private key; NATS_KEY."),
    CommonFlag(("--tlsca",), "tls_ca", "FILE", "CA file for verifying the server; NATS_CA."),
    CommonFlag(("--tlsfirst",), "tls_first", "", "Start TLS before the server's INFO line; NATS_TLS_FIRST."),
    CommonFlag(("--timeout",), "timeout_s", "TIME", "How long to wait for an answer, 5s unless given; NATS_TIMEOUT."),
    CommonFlag(("--js-api-prefix",), "api_prefix", "PREFIX", "Prefix of JetStream's API; NATS_JS_API_PREFIX."),
    CommonFlag(("--js-domain",), "domain", "NAME", "Domain of JetStream; NATS_JS_DOMAIN."),
    CommonFlag(("--inbox-prefix",), "inbox_prefix", "PREFIX", "Prefix of inboxes; NATS_INBOX_PREFIX."),
    CommonFlag(("--connection-name",), "name", "NAME", "Name that the server shows for this connection."),
    CommonFlag(("--trace",), "", "", "Print requests to JetStream's API and their answers to standard error."),
    CommonFlag(("--no-color",), "", "", "Print without colours; NO_COLOR."),
)

_FLAG_OF_NAME = {name: flag for flag in FLAGS for name in flag.names}


class UsageError(ValueError):
    """Is raised when a flag has no value."""


class Invocation(NamedTuple):
    """One line: what it says about the connection, and which command it calls."""

    options: dict[str, Any]
    context: str | None = None
    color: bool = True
    command: tuple[str, ...] = ()
    use_context: bool = True
    trace: bool = False
    # Errors are printed as JSON.
    json_errors: bool = False
    # The command itself has no --json, so what it says is printed as JSON for it.
    json_notes: bool = False

    def access(self) -> "Access":
        """Return how this line reaches its server. Raises `ConfigurationError`."""
        from jetlake.client.access import resolve

        named = {"name": "jetlake " + " ".join(self.command)} | self.options
        return resolve(named, context=self.context, use_context=self.use_context)


_CURRENT: ContextVar[Invocation | None] = ContextVar("jetlake_invocation", default=None)


def current() -> Invocation:
    """Return what the line that is running says; a line that says nothing when none is."""
    return _CURRENT.get() or Invocation({})


def enter(invocation: Invocation) -> None:
    """Make an invocation the current one."""
    _CURRENT.set(invocation)


def hoist(words: list[str], *, own: frozenset[str] = frozenset()) -> tuple[Invocation, list[str]]:
    """Take the flags of all commands out of a line, and return them and the rest. `--` ends the flags.

    `own` are flags that mean something else to the command, and stay where they are.
    """
    options: dict[str, Any] = {}
    context = None
    switches = {"--no-color": False, "--no-context": False, "--trace": False}
    rest: list[str] = []
    remaining = iter(words)
    for word in remaining:
        if word == "--":
            rest += [word, *remaining]
            break
        name, equals, text = word.partition("=")
        flag = None if name in own else _FLAG_OF_NAME.get(name)
        if flag is None:
            rest.append(word)
            continue
        value: Any = True
        if flag.metavar:
            value = text if equals else next(remaining, None)
            if value is None:
                raise UsageError(f"{name} needs a value: {name} {flag.metavar}")
        elif equals:
            value = text.lower() in ("1", "true", "yes", "on")
        if flag.field:
            options[flag.field] = value
        elif name == "--context":
            context = value
        else:
            switches[name] = value
    if context and switches["--no-context"]:
        raise UsageError("--context and --no-context contradict each other: give one of them")
    return (
        Invocation(
            options,
            context,
            color=not switches["--no-color"],
            use_context=not switches["--no-context"],
            trace=switches["--trace"],
        ),
        rest,
    )
