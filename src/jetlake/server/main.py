"""argv in, exit code out: the entry of `jetlake server` and of `jetlake-nats-server`.

The order of the decisions is nats-server's: unreadable flags, version, help, the one-word commands, `--signal`, the
configuration file, and only then a server.

Cold start is a feature (tests start hundreds of servers): nothing imported from here on may load asyncio, logging,
typer, rich or a client library. A test keeps that.
"""

import os
import sys

from jetlake.config import NATS_VERSION
from jetlake.errors import ConfigurationError, JetlakeError
from jetlake.server import flags, signals
from jetlake.server.options import from_flags

# A type checker takes this name for true; not importing `typing` keeps the start fast.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from jetlake.server.configuration.source import ConfigurationSource
    from jetlake.server.options import ServerOptions

VERSION_LINE = f"nats-server: v{NATS_VERSION}"
"""Exactly nats-server's: test suites read the version out of it. `jetlake version` tells the rest."""

TLS_HELP = """
TLS is configured with flags or in the tls section of a configuration file:

    tls {
      cert_file: "server-cert.pem"   # --tlscert
      key_file:  "server-key.pem"    # --tlskey
      ca_file:   "ca.pem"            # --tlscacert
      verify:    true                # --tlsverify: ask clients for a certificate
    }
"""


def main(arguments: list[str] | None = None) -> int:
    """Run nats-server's command line and return the exit code."""
    try:
        parsed = flags.parse(sys.argv[1:] if arguments is None else arguments)
    except flags.FlagError as error:
        # nats-server shows its usage, and ends with 0.
        print(error, file=sys.stderr)
        print(flags.usage())
        return 0
    word = parsed.words[0].lower() if parsed.words else ""
    if parsed.switch("version"):
        print(VERSION_LINE)
    elif parsed.switch("help"):
        print(flags.usage())
    elif parsed.switch("help_tls"):
        print(TLS_HELP)
    elif word == "version":
        print(VERSION_LINE)
    elif word == "help":
        print(flags.usage())
    else:
        try:
            return _act(parsed)
        except JetlakeError as error:
            print(f"nats-server: {error}", file=sys.stderr)
            return 1
    return 0


def _act(parsed: flags.ParsedFlags) -> int:
    if parsed.words:
        raise ConfigurationError(f'unrecognized command: "{parsed.words[0]}"')
    command = parsed.text("signal")
    if command:
        signals.send(command)
        return 0
    program = os.path.basename(sys.argv[0])
    path = parsed.text("config")
    if path:
        # Most servers of tests have no file, and do not wait for what reads one.
        from jetlake.server.configuration.source import ConfigurationSource

        return _act_by_file(ConfigurationSource(path, parsed, program), only_check=parsed.switch("t"))
    if parsed.switch("t"):
        raise ConfigurationError("must specify [-c, --config] option to check configuration file syntax")
    # Only a server needs the engine; help and version must not wait for it.
    from jetlake.server.process import run

    return run(from_flags(parsed, program))


def _act_by_file(source: "ConfigurationSource", *, only_check: bool) -> int:
    configuration = source.load()
    if only_check and configuration.warnings:
        # As in nats-server, a check finds no excuse.
        raise ConfigurationError("\n".join(configuration.warnings))
    for warning in configuration.warnings:
        print(warning, file=sys.stderr)
    if only_check:
        _check(configuration.options)
        print(f"nats-server: configuration file {source.path} is valid ({configuration.digest})", file=sys.stderr)
        return 0
    from jetlake.server.process import run

    return run(configuration.options, source, configuration.digest)


def _check(options: "ServerOptions") -> None:
    """Read certificates and the files of remotes, too: a file that could not start a server is not valid."""
    import msgspec

    from jetlake._engine import EngineError, check_options
    from jetlake.server.engine_errors import message_of

    remotes = [remote.for_engine() for remote in options.jetstream.remotes] if options.jetstream.enabled else []
    try:
        check_options(options.engine_options(git_commit="").to_json(), msgspec.json.encode(remotes))
    except EngineError as error:
        raise ConfigurationError(message_of(error)) from error


if __name__ == "__main__":
    sys.exit(main())
