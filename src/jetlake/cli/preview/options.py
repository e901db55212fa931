"""The command line of `jetlake nats`: its commands and options, and how each error is reported.

Invariant: whatever is wrong is one line, `nats: error: …, try --help`, and never a traceback.
"""

import argparse
import os
from typing import NoReturn

from jetlake.client.connection import DEFAULT_URL

TIMEOUT_S_DEFAULT = 2.0


class NatsError(Exception):
    """Is raised when a command cannot be done; the text says why."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise NatsError(f"{message}, try --help")


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    common = _common()
    top = _Parser(prog="nats", description="The tool of March 2020, in the dialect of that time.")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, aliases, explanation in (
        ("pub", (), "Publish a message"),
        ("request", ("req",), "Send a request and show the answer; the body is read from the input if there is none"),
    ):
        message = commands.add_parser(name, aliases=aliases, help=explanation, parents=[common])
        message.add_argument("subject")
        message.add_argument("body", nargs="?")
    listen = commands.add_parser("sub", help="Show messages as they come", parents=[common])
    listen.add_argument("subject")
    listen.add_argument("--queue", default="", help="share the messages with others of this group")
    _add_streams(commands.add_parser("stream", aliases=("str", "st"), help="Streams"), common)
    _add_consumers(commands.add_parser("consumer", aliases=("con", "obs"), help="Consumers"), common)
    return top


def _common() -> "_Parser":
    common = _Parser(add_help=False)
    common.add_argument("-s", "--server", default=os.environ.get("NATS_URL") or DEFAULT_URL, help="address")
    common.add_argument("--creds", default="", help="file with credentials")
    common.add_argument("--timeout", type=float, default=TIMEOUT_S_DEFAULT, help="seconds to wait for an answer")
    return common


def _add_streams(streams: "_Parser", common: "_Parser") -> None:
    verbs = streams.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    verbs.add_parser("ls", aliases=("list",), help="List the streams", parents=[common])
    info = verbs.add_parser("info", help="Show a stream", parents=[common])
    info.add_argument("stream", nargs="?", default="")
    info.add_argument("-j", "--json", action="store_true", help="show what the server says")
    remove = verbs.add_parser("rm", aliases=("delete",), help="Delete a stream", parents=[common])
    remove.add_argument("stream")
    remove.add_argument("-f", "--force", action="store_true", help="do not ask")
    purge = verbs.add_parser("purge", help="Remove all messages", parents=[common])
    purge.add_argument("stream")
    purge.add_argument("-f", "--force", action="store_true", help="do not ask")
    for verb, aliases in (("add", ("create", "new")), ("edit", ())):
        change = verbs.add_parser(verb, aliases=aliases, help=f"{verb.capitalize()} a stream", parents=[common])
        change.add_argument("stream", nargs="?", default="")
        change.add_argument("--config", default="", help="file with the configuration as JSON")
        change.add_argument("-f", "--force", action="store_true", help="do not ask")
        change.add_argument("--subjects", action="append", help="subjects, with commas or several times")
        change.add_argument("--storage", help="file or memory")
        change.add_argument("--retention", help="limits, interest or workq")
        change.add_argument("--max-msgs", type=int)
        change.add_argument("--max-bytes", type=int)
        change.add_argument("--max-age", help="such as 1d")
        change.add_argument("--max-msg-size", type=int)
        change.add_argument("--max-consumers", type=int)
        change.add_argument("--replicas", type=int)
        change.add_argument("--no-ack", action="store_true", default=None)


def _add_consumers(consumers: "_Parser", common: "_Parser") -> None:
    verbs = consumers.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    listed = verbs.add_parser("ls", aliases=("list",), help="List the consumers of a stream", parents=[common])
    listed.add_argument("stream")
    for verb, aliases, explanation in (
        ("info", (), "Show a consumer"),
        ("rm", ("delete",), "Delete a consumer"),
        ("next", (), "Get the next message and acknowledge it"),
    ):
        named = verbs.add_parser(verb, aliases=aliases, help=explanation, parents=[common])
        named.add_argument("stream")
        named.add_argument("consumer")
        if verb == "info":
            named.add_argument("-j", "--json", action="store_true", help="show what the server says")
        if verb == "rm":
            named.add_argument("-f", "--force", action="store_true", help="do not ask")
        if verb == "next":
            named.add_argument("--no-ack", action="store_true", help="do not acknowledge it")
    add = verbs.add_parser("add", aliases=("create", "new"), help="Add a consumer", parents=[common])
    add.add_argument("stream", nargs="?", default="")
    add.add_argument("consumer", nargs="?", default="")
    add.add_argument("--config", default="", help="file with the request as JSON")
    add.add_argument("--target", default="", help="subject to deliver to; without one, messages are asked for")
    add.add_argument("--pull", action="store_true", help="messages are asked for")
    add.add_argument("--filter", default="", help="only messages of this subject")
    add.add_argument("--deliver", default="all", help="all, last, new, or a sequence")
    add.add_argument("--ack", default="explicit", help="explicit, all or none")
    add.add_argument("--replay", default="instant", help="instant or original")
    add.add_argument("--max-deliver", type=int, default=-1)
    add.add_argument("--sample", default="", help="share of acknowledgements to tell of, such as 100")
    add.add_argument("--ephemeral", action="store_true", help="ends when nobody uses it")
