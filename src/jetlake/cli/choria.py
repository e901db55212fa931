"""`jetlake choria`: the commands of Choria Streams, with the output of that tool. Also the executable `choria`.

```text
jetlake choria kv put CFG auth.username bob
```

Each group is one line of `GROUPS`; its module is imported when the group is called. A group gets the words after its
name, and a `CommandLine` that says where the server is. A failure is one line on standard error, as Choria prints it,
and exit code 1.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from jetlake.choria.settings import ChoriaSettings, read_settings
from jetlake.cli.invocation import Invocation, UsageError, enter, hoist
from jetlake.errors import JetlakeError

DONE, FAILED, INTERRUPTED = 0, 1, 130

SERVERS_KEY = "plugin.choria.middleware_hosts"
"""The setting of Choria's configuration that names the servers, as `host:port,host:port`."""

OWN_FLAGS = frozenset(("--timeout", "--name"))
"""Flags that mean something else here than in the other commands of `jetlake`."""

CONFIG_FLAG = "--config"


class CommandGroup(NamedTuple):
    """One group of commands: the words that call it, the function that runs it, and a sentence for the help."""

    words: tuple[str, ...]
    module: str
    function: str
    help: str


GROUPS: tuple[CommandGroup, ...] = (
    CommandGroup(("kv",), "jetlake.cli.choria_kv", "main", "Create, read and write key-value buckets."),
    CommandGroup(("governor",), "jetlake.cli.choria_governor", "governor", "Limit how many do something at once."),
    CommandGroup(("gov",), "jetlake.cli.choria_governor", "governor", "The same as governor."),
    CommandGroup(
        ("tool", "submit"), "jetlake.cli.choria_governor", "submit", "Put a message into the spool of a sender."
    ),
    CommandGroup(("tool", "event"), "jetlake.cli.choria_events", "tool_event", "Show lifecycle events."),
    CommandGroup(("machine", "run"), "jetlake.cli.choria_machine", "run", "Run machines here."),
    CommandGroup(("machine", "validate"), "jetlake.cli.choria_machine", "validate", "Check a machine.yaml."),
    CommandGroup(("machine", "graph"), "jetlake.cli.choria_machine", "graph", "Print a machine in the DOT language."),
    CommandGroup(("machine", "watch"), "jetlake.cli.choria_events", "machine_watch", "Show events of machines."),
    CommandGroup(("scout", "watch"), "jetlake.cli.choria_events", "scout_watch", "Show the states of checks."),
    CommandGroup(("server", "run"), "jetlake.cli.choria_server", "main", "Run the agent of a node."),
)
"""A group is one line here."""


class CommandLine(NamedTuple):
    """What a line says besides its command."""

    # The file of `--config`; it may stand anywhere on the line, and need not exist.
    config: Path | None = None

    def settings(self) -> ChoriaSettings:
        """Return the settings of the configuration file; none without one. Raises `ConfigurationError`."""
        return ChoriaSettings({}) if self.config is None else read_settings(self.config)


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        line, words = take_config(words)
        invocation, words = hoist(words, own=OWN_FLAGS)
    except UsageError as error:
        return fail(str(error))
    group = find_group(words)
    if group is None:
        is_help = not words or words[0] in ("-h", "--help", "help")
        print(usage(), file=sys.stdout if is_help else sys.stderr)
        return DONE if is_help else fail(f"unknown command {' '.join(words[:2])!r}; the list above has all of them")
    enter(invocation._replace(command=("choria", *group.words)))
    try:
        code: int = getattr(import_module(group.module), group.function)(words[len(group.words) :], line)
    except JetlakeError as error:
        return fail(str(error))
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as end:
        # argparse has printed its help or what is wrong with the line.
        return DONE if not end.code else FAILED
    return code


def find_group(words: list[str]) -> CommandGroup | None:
    """Return the group that a line calls."""
    return next((group for group in GROUPS if tuple(words[: len(group.words)]) == group.words), None)


def take_config(words: list[str]) -> tuple[CommandLine, list[str]]:
    """Take `--config` out of a line, wherever it stands before `--`."""
    end = words.index("--") if "--" in words else len(words)
    line, rest = CommandLine(), []
    remaining = iter(words[:end])
    for word in remaining:
        flag, equals, value = word.partition("=")
        if flag != CONFIG_FLAG:
            rest.append(word)
            continue
        file = value if equals else next(remaining, None)
        if not file:
            raise UsageError(f"{CONFIG_FLAG} needs a value: {CONFIG_FLAG} FILE")
        line = CommandLine(Path(file))
    return line, rest + words[end:]


def use_servers(invocation: Invocation, settings: ChoriaSettings) -> Invocation:
    """Return the invocation with the servers of the configuration file, unless the line names some."""
    servers = settings.texts(SERVERS_KEY)
    if not servers or "url" in invocation.options or invocation.context:
        return invocation
    urls = ",".join(server if "://" in server else f"nats://{server}" for server in servers)
    return invocation._replace(options={**invocation.options, "url": urls})


def usage() -> str:
    """Return the list of groups."""
    lines = [f"  {' '.join(group.words):<16} {group.help}" for group in GROUPS]
    return "\n".join(
        ["Usage: jetlake choria GROUP COMMAND [flags]", "", *lines, "", "--help behind a group lists its commands."]
    )


def fail(reason: str) -> int:
    """Print a failure as Choria does, and return the exit code."""
    print(f"FATA[0000] Could not run Choria: {reason}", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
