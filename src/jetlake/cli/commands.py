"""The one table of commands. A new command is one line here.

A command's module is imported when the command is called, not before: the list of commands costs nothing.
"""

from typing import NamedTuple


class Command(NamedTuple):
    """One word after `jetlake`: where it is, and what the list of commands says about it."""

    name: str
    module: str
    # A typer application, a function with typer's annotations, or with `raw` a function of the words that follow.
    attribute: str
    help: str
    aliases: tuple[str, ...] = ()
    # Takes its words as they are, flags of all commands included, and returns the exit code.
    raw: bool = False
    hidden: bool = False


COMMANDS = (
    Command("server", "jetlake.server.main", "main", "Run a server; takes nats-server's flags.", raw=True),
    Command("dev", "jetlake.cli.dev", "dev", "Run a server to play with, with a sample stream."),
    Command("pub", "jetlake.cli.pub", "pub", "Send messages.", aliases=("publish",)),
    Command("sub", "jetlake.cli.sub", "sub", "Listen, and print what comes.", aliases=("subscribe",)),
    Command("req", "jetlake.cli.req", "req", "Ask, and print the answers.", aliases=("request",)),
    Command("reply", "jetlake.cli.reply", "reply", "Answer requests."),
    Command("stream", "jetlake.cli.stream", "application", "Look after streams.", aliases=("str", "s")),
    Command("consumer", "jetlake.cli.consumer", "application", "Look after consumers.", aliases=("con", "c")),
    Command("sql", "jetlake.cli.sql", "sql", "Ask streams a question in SQL; needs Spark."),
    Command("pipeline", "jetlake.cli.pipeline", "application", "Streams into tables, with Spark."),
    Command("plan", "jetlake.cli.plan", "plan", "Show what would make a server as files declare it."),
    Command("apply", "jetlake.cli.apply", "apply", "Make a server as files declare it."),
    Command("drift", "jetlake.cli.drift", "drift", "Tell whether a server is as files declare it."),
    Command("export", "jetlake.cli.export", "export", "Write what a server has as a declaration."),
    Command("dead", "jetlake.cli.dead", "application", "Messages that consumers have given up on."),
    Command("why", "jetlake.cli.why", "why", "Say why messages of a stream or a consumer move or do not."),
    Command(
        "account", "jetlake.cli.account", "application", "Who this connection is, and what it may.", aliases=("a",)
    ),
    Command("context", "jetlake.cli.context", "application", "Named connections.", aliases=("ctx",)),
    Command("top", "jetlake.cli.top", "top", "The connections of a server, again and again."),
    Command("events", "jetlake.cli.events", "events", "What servers tell of themselves, in words.", aliases=("event",)),
    Command("rtt", "jetlake.cli.rtt", "rtt", "How long a server takes to answer."),
    Command("bench", "jetlake.cli.bench", "bench", "Measure a server with the native load generator."),
    Command("check", "jetlake.cli.check", "check", "Examine a store without a server."),
    Command("doctor", "jetlake.cli.doctor", "doctor", "Is this machine fit, and what to do where it is not."),
    Command("errors", "jetlake.cli.errors", "application", "What the numbers in refusals mean.", aliases=("err",)),
    Command("schema", "jetlake.cli.schema", "application", "JSON schemas of requests, answers and advisories."),
    Command("completion", "jetlake.cli.completion", "completion", "Scripts for shells: bash, zsh, fish."),
    Command("jsm", "jetlake.cli.jsm", "main", "Message sets and observables, as the tool of 2019 had them.", raw=True),
    Command("nats", "jetlake.cli.nats", "main", "Streams and consumers, as the tool of 2020 had them.", raw=True),
    Command("shims", "jetlake.cli.shims", "main", "Write executables named as NATS' own tools.", raw=True),
    Command("version", "jetlake.cli.version", "version", "Show the versions of Jetlake and of what it is like."),
    Command("__complete", "jetlake.cli.complete", "main", "For the scripts of shells.", raw=True, hidden=True),
)

COMMAND_OF_WORD = {word: command for command in COMMANDS for word in (command.name, *command.aliases)}
