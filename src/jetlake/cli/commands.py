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
    Command("server-view", "jetlake.cli.server_view", "application", "Inspect and check running servers.", hidden=True),
    Command("dev", "jetlake.cli.dev", "dev", "Run a server to play with, with a sample stream."),
    Command("demo", "jetlake.cli.demo", "demo", "Show the whole system at work."),
    Command("pub", "jetlake.cli.pub", "pub", "Publish messages.", aliases=("publish",)),
    Command("sub", "jetlake.cli.sub", "sub", "Subscribe and print messages.", aliases=("subscribe",)),
    Command("req", "jetlake.cli.req", "req", "Send requests and print the replies.", aliases=("request",)),
    Command("reply", "jetlake.cli.reply", "reply", "Answer requests."),
    Command("stream", "jetlake.cli.stream", "application", "Create, inspect and manage streams.", aliases=("str", "s")),
    Command(
        "consumer", "jetlake.cli.consumer", "application", "Create, inspect and manage consumers.", aliases=("con", "c")
    ),
    Command("kv", "jetlake.cli.kv", "application", "Create, read and write key-value buckets."),
    Command("object", "jetlake.cli.object", "application", "Store and fetch files of any size.", aliases=("obj",)),
    Command("sql", "jetlake.cli.sql", "sql", "Query streams and tables in SQL."),
    Command("pipeline", "jetlake.cli.pipeline", "application", "Streams into tables, with Spark."),
    Command("plan", "jetlake.cli.plan", "plan", "Preview the changes needed to match your files."),
    Command("apply", "jetlake.cli.apply", "apply", "Apply the changes needed to match your files."),
    Command("drift", "jetlake.cli.drift", "drift", "Check whether a server matches your files."),
    Command("export", "jetlake.cli.export", "export", "Write the configuration of a server as files."),
    Command("adapter", "jetlake.cli.adapter", "application", "Run data adapters: envelopes in, documents out."),
    Command("agent", "jetlake.cli.agent", "application", "Run the agent of a node: registration, events, machines."),
    Command(
        "simulate", "jetlake.cli.simulate", "application", "Simulate a fleet or devices, and write down what happened."
    ),
    Command("device", "jetlake.cli.device", "application", "Run the device event bus and look at its devices."),
    Command("dead", "jetlake.cli.dead", "application", "List, inspect and redrive dead letters."),
    Command(
        "governor",
        "jetlake.cli.governor",
        "application",
        "Limit how many processes do something at once, network-wide.",
        aliases=("gov",),
    ),
    Command("submit", "jetlake.cli.submission", "submit", "Put a message into a spool; a sender delivers it."),
    Command("submission", "jetlake.cli.submission", "application", "Deliver the messages of a spool."),
    Command("why", "jetlake.cli.why", "why", "Explain why messages of a stream or consumer do not move."),
    Command(
        "account",
        "jetlake.cli.account",
        "application",
        "Show who you are connected as, and your limits.",
        aliases=("a",),
    ),
    Command("context", "jetlake.cli.context", "application", "Manage named connections.", aliases=("ctx",)),
    Command("leaf", "jetlake.cli.leaf", "application", "Show links to hubs and leaf nodes."),
    Command("dashboard", "jetlake.cli.dashboard", "dashboard", "Serve a dashboard for browsers."),
    Command("top", "jetlake.cli.top", "top", "Show a live view of connections."),
    Command("events", "jetlake.cli.events", "events", "Show events and advisories of servers.", aliases=("event",)),
    Command("rtt", "jetlake.cli.rtt", "rtt", "Measure the round-trip time to a server."),
    Command("bench", "jetlake.cli.bench", "bench", "Measure a server with the native load generator."),
    Command("check", "jetlake.cli.check", "check", "Examine a store without a server."),
    Command("crashtest", "jetlake.cli.crashtest", "crashtest", "Test what servers lose by crashes, on this disk."),
    Command("doctor", "jetlake.cli.doctor", "doctor", "Check this machine and suggest fixes."),
    Command("errors", "jetlake.cli.errors", "application", "Look up an error code.", aliases=("err",)),
    Command("schema", "jetlake.cli.schema", "application", "JSON schemas of requests, answers and advisories."),
    Command("completion", "jetlake.cli.completion", "completion", "Scripts for shells: bash, zsh, fish."),
    Command("jsm", "jetlake.cli.jsm", "main", "Legacy emulation of the tool of 2019.", raw=True, hidden=True),
    Command("nats", "jetlake.cli.nats", "main", "Legacy emulation of the tool of 2020.", raw=True, hidden=True),
    Command("choria", "jetlake.cli.choria", "main", "Run the commands of Choria Streams.", raw=True),
    Command("shims", "jetlake.cli.shims", "main", "Write executables named as NATS' own tools.", raw=True),
    Command(
        "version", "jetlake.cli.version", "version", "Show the versions of Jetlake and of the nats-server it matches."
    ),
    Command("__complete", "jetlake.cli.complete", "main", "For the scripts of shells.", raw=True, hidden=True),
)

COMMAND_OF_WORD = {word: command for command in COMMANDS for word in (command.name, *command.aliases)}
