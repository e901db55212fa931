"""`jetlake jsm`: the tool of December 2019 for message sets and observables, with its prompts and its output.

It speaks the dialect of 2019 and nothing else. Exit codes: 0 = done, 1 = refused or nobody answered, 2 = misused.
"""

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from jetlake.cli.preview.terminal import ask
from jetlake.cli.preview.texts import read_duration_ns, size_text, split_list
from jetlake.client.connection import DEFAULT_URL
from jetlake.client.preview import PreviewClient, PreviewReply, PreviewTimeoutError
from jetlake.errors import JetlakeError

USAGE = """
Usage:
  jsm [-s server] [-creds file] [command]

Available Commands:
  info                   # General account info

  ls                     # List all message sets
  add                    # Add a new message set
  rm     [mset]          # Delete a message set
  purge  [mset]          # Purge a message set
  rm-msg [mset] [seq]    # Securely delete a message from a message set
  info   [mset]          # Get information about a message set

  add-obs                # Add an observable to a message set
  ls-obs   [mset]        # List all observables for the message set
  rm-obs   [mset] [obs]  # Delete an observable to a message set
  info-obs [mset] [obs]  # Get information about an observable

"""

NEXT_S_MAX = 1.0
"""How long `next` waits, as it did."""

DONE, REFUSED, MISUSED = 0, 1, 2
ERROR_MARK = b"-ERR"
RETENTION_LIMITS = 0
UNLIMITED = -1

Command = Callable[[PreviewClient, list[str]], Awaitable[int]]


class _MisuseError(Exception):
    """Is raised when the command line or an answer makes no sense; the text says why, and what to do."""


class _Options(msgspec.Struct):
    url: str
    credentials: str = ""


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = _Options(url=os.environ.get("NATS_URL") or DEFAULT_URL)
    try:
        command = _take_options(words, options)
        if not command:
            print(USAGE, end="")
            return DONE
        return _run(command, options)
    except _MisuseError as error:
        print(f"jsm: {error}", file=sys.stderr)
        return MISUSED
    except PreviewTimeoutError:
        print("jsm: nats: timeout", file=sys.stderr)
        return REFUSED
    except JetlakeError as error:
        print(f"jsm: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return REFUSED


def _take_options(words: list[str], options: _Options) -> list[str]:
    """Return the words after the options; none = only the usage is wanted."""
    while words and words[0].startswith("-"):
        name, equals, value = words.pop(0).lstrip("-").partition("=")
        if name in ("h", "help"):
            return []
        if name not in ("s", "creds"):
            raise _MisuseError(f"there is no option -{name}: see jsm -h")
        if not equals:
            if not words:
                raise _MisuseError(f"-{name} needs a value: see jsm -h")
            value = words.pop(0)
        if name == "s":
            options.url = value
        else:
            options.credentials = value
    return words


def _run(words: list[str], options: _Options) -> int:
    name, arguments = words[0], words[1:]
    found = COMMANDS.get((name, len(arguments)))
    if found is None:
        counts = sorted(count for known, count in COMMANDS if known == name)
        if not counts:
            raise _MisuseError(f"there is no command {name}: see jsm -h")
        wanted = " or ".join(map(str, counts))
        raise _MisuseError(f"{name} takes {wanted} names, not {len(arguments)}: see jsm -h")
    question = QUESTIONS.get(name)
    # Ask before connecting, so that no connection waits while the user types.
    if question is not None:
        arguments = [json.dumps(question())]
    return asyncio.run(_connected(found, arguments, options))


async def _connected(command: Command, arguments: list[str], options: _Options) -> int:
    async with PreviewClient(options.url, options.credentials) as client:
        return await command(client, arguments)


def _read_new_set() -> dict[str, Any]:
    print("Enter the following information")
    name = ask("Name:")
    subjects = split_list(ask("Subjects:"))
    limits = split_list(ask("Limits (msgs, bytes, age):"))
    storage = ask("Storage:").lower()
    if len(limits) not in (0, 3):
        raise _MisuseError("limits are three, of messages, bytes and age, or none: such as -1 -1 1w")
    if not "file".startswith(storage) and not "memory".startswith(storage):
        raise _MisuseError(f"storage is file or memory, not {storage}")
    messages, size, age = limits or ["-1", "-1", "-1"]
    return {
        "name": name,
        "subjects": subjects,
        "retention": RETENTION_LIMITS,
        "max_observables": UNLIMITED,
        "max_msgs": _whole(messages),
        "max_bytes": _whole(size),
        "max_age": _duration_ns(age),
        "storage": "memory" if storage and "memory".startswith(storage) else "file",
        "num_replicas": 1,
    }


def _read_new_observable() -> dict[str, Any]:
    print("Enter the following information")
    message_set = ask("Message Set Name:")
    config: dict[str, Any] = {"durable_name": ask("Durable Name:")}
    is_push = _choose("push or pull", ask("Push or Pull:"), ("pull", "push")) == "push"
    if is_push:
        config["delivery_subject"] = ask("Delivery Subject:")
    config["deliver_all"] = not ask("Deliver All? (Y|n):").lower().startswith("n")
    if is_push:
        policies = ("none", "all", "explicit")
        config["ack_policy"] = policies.index(_choose("an ack policy", ask("AckPolicy (None|all|explicit):"), policies))
    replays = ("instant", "original")
    answer = ask("Replay Policy (Instant|original):")
    config["replay_policy"] = replays.index(_choose("a replay policy", answer, replays))
    return {"msg_set_name": message_set, "config": config}


def _choose(what: str, answer: str, words: tuple[str, ...]) -> str:
    """Return the word that an answer begins; the first one for none."""
    for word in words:
        if word.startswith(answer.lower()):
            return word
    raise _MisuseError(f"{answer!r} is not {what}: answer with {', '.join(words)}")


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _MisuseError(f"{text!r} is not a number: write -1 for no limit") from None


def _duration_ns(text: str) -> int:
    try:
        return read_duration_ns(text)
    except ValueError as error:
        raise _MisuseError(str(error)) from None


async def _show_account(client: PreviewClient, _arguments: list[str]) -> int:
    reply = await client.request("$JS.INFO")
    if _is_refused(reply):
        return REFUSED
    info = json.loads(reply.data)
    limits = info["limits"]
    sets = limits["max_msg_sets"]
    print()
    print(f"Memory:  {size_text(info['memory'])} of {_size_limit_text(limits['max_memory'])}")
    print(f"Storage: {size_text(info['storage'])} of {_size_limit_text(limits['max_storage'])}")
    print(f"MsgSets: {info['msg_sets']:,} of {f'{sets:,}' if sets > 0 else 'Unlimited'}")
    print()
    return DONE


async def _show_set(client: PreviewClient, arguments: list[str]) -> int:
    reply = await client.request("$JS.MSGSET.INFO", arguments[0].encode())
    if _is_refused(reply):
        return REFUSED
    info = json.loads(reply.data)
    print()
    print(f"Messages: {info['Msgs']:,}")
    print(f"Bytes:    {size_text(info['Bytes'])}")
    print(f"FirstSeq: {info['FirstSeq']:,}")
    print(f"LastSeq:  {info['LastSeq']:,}")
    print()
    return DONE


async def _list_sets(client: PreviewClient, _arguments: list[str]) -> int:
    return _show_list(await client.request("$JS.MSGSETS"), "message sets")


async def _list_observables(client: PreviewClient, arguments: list[str]) -> int:
    return _show_list(await client.request("$JS.OBSERVABLES", arguments[0].encode()), "observables")


async def _show_observable(client: PreviewClient, arguments: list[str]) -> int:
    reply = await client.request("$JS.OBSERVABLE.INFO", " ".join(arguments).encode())
    print(f"Received response of {reply.data.decode(errors='replace')}")
    return REFUSED if reply.data.startswith(ERROR_MARK) else DONE


async def _next(client: PreviewClient, arguments: list[str]) -> int:
    reply = await client.request(f"$JS.RN.{arguments[0]}.{arguments[1]}", timeout_s=NEXT_S_MAX)
    print(f"Received response of {reply.data.decode(errors='replace')}")
    print(f"Reply: {reply.reply}")
    if not ask("Ack? (Y|n)").lower().startswith("n"):
        await client.publish(reply.reply, b"+OK")
    return DONE


def _sending(subject: str) -> Command:
    """Return a command that sends its names to a subject and shows the answer."""

    async def command(client: PreviewClient, arguments: list[str]) -> int:
        reply = await client.request(subject, " ".join(arguments).encode())
        print(f'Received response of "{reply.data.decode(errors="replace")}"')
        return REFUSED if reply.data.startswith(ERROR_MARK) else DONE

    return command


def _show_list(reply: PreviewReply, what: str) -> int:
    if _is_refused(reply):
        return REFUSED
    names = json.loads(reply.data)
    print()
    for number, name in enumerate(names, start=1):
        print(f"{number}) {name}")
    if not names:
        print(f"No {what}")
    print()
    return DONE


def _is_refused(reply: PreviewReply) -> bool:
    if reply.data.startswith(ERROR_MARK):
        print(f'Received response of "{reply.data.decode(errors="replace")}"')
        return True
    return False


def _size_limit_text(limit: int) -> str:
    return size_text(limit) if limit >= 0 else "Unlimited"


QUESTIONS: dict[str, Callable[[], dict[str, Any]]] = {"add": _read_new_set, "add-obs": _read_new_observable}

COMMANDS: dict[tuple[str, int], Command] = {
    ("info", 0): _show_account,
    ("info", 1): _show_set,
    ("ls", 0): _list_sets,
    ("add", 0): _sending("$JS.MSGSET.CREATE"),
    ("rm", 1): _sending("$JS.MSGSET.DELETE"),
    ("purge", 1): _sending("$JS.MSGSET.PURGE"),
    ("rm-msg", 2): _sending("$JS.MSGSET.MSG.DELETE"),
    ("add-obs", 0): _sending("$JS.OBSERVABLE.CREATE"),
    ("ls-obs", 1): _list_observables,
    ("rm-obs", 2): _sending("$JS.OBSERVABLE.DELETE"),
    ("info-obs", 2): _show_observable,
    ("next", 2): _next,
}
"""By name and by how many names follow."""

if __name__ == "__main__":
    sys.exit(main())
