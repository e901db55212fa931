"""Completions for the shells, the words that can come next: commands, flags, and names that the server knows now.

Called by the scripts of `jetlake completion` as `jetlake __complete -- WORDS…`, the last of them the one being typed.
The metavar of the argument decides which names are looked up: STREAM, CONSUMER, BUCKET, KEY, CONTEXT.

Invariant: it prints candidates or nothing, within a moment, and never an error: the user is in the middle of a line.
"""

import asyncio
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.cli.commands import COMMAND_OF_WORD, COMMANDS
from jetlake.cli.invocation import FLAGS, Invocation, UsageError, hoist

if TYPE_CHECKING:
    from jetlake.client.api import Api

SERVER_S_MAX = 1.0
"""The user is waiting after a key press. `JETLAKE_COMPLETION_S_MAX` sets another limit, for slow networks."""

with suppress(KeyError, ValueError):
    SERVER_S_MAX = float(os.environ["JETLAKE_COMPLETION_S_MAX"])

NAMES_MAX = 1000
"""More are of no help."""

BUCKET_PREFIX = "KV_"


def main(words: list[str]) -> int:
    """Print what may stand for the last of the words, one on each line."""
    given = words[1:] if words[:1] == ["--"] else words
    with suppress(Exception):
        for candidate in candidates(given):
            print(candidate)
    return 0


def candidates(words: list[str]) -> list[str]:
    """Return what may stand for the last of the words."""
    *before, typed = words or [""]
    if before and _wants_value(before[-1]):
        return []
    try:
        invocation, rest = hoist(before)
    except UsageError:
        return []
    if not rest:
        flags = [name for flag in FLAGS for name in flag.names if name.startswith("--")]
        names = [command.name for command in COMMANDS if not command.hidden]
        return _fitting([*flags, "--help"] if typed.startswith("-") else names, typed)
    command = COMMAND_OF_WORD.get(rest[0])
    if command is None or command.raw:
        return []
    from jetlake.cli.lazy import load

    return _fitting(_below(load(command), rest[1:], typed, invocation), typed)


def _below(loaded: Any, words: list[str], typed: str, invocation: Invocation) -> list[str]:
    """Return what can follow within a command."""
    while getattr(loaded, "commands", None):
        if not words:
            return ["--help"] if typed.startswith("-") else [n for n, c in loaded.commands.items() if not c.hidden]
        loaded, words = loaded.commands.get(words[0]), words[1:]
        if loaded is None:
            return []
    options = {name: param for param in loaded.params for name in [*param.opts, *param.secondary_opts]}
    if words and words[-1] in options and _takes_value(options[words[-1]]):
        return []
    if typed.startswith("-"):
        own = [name for name in options if name.startswith("--")]
        return [*own, *(name for flag in FLAGS for name in flag.names if name.startswith("--")), "--help"]
    arguments = [param for param in loaded.params if param.param_type_name == "argument"]
    values = _positional(words, options)
    if len(values) >= len(arguments):
        return []
    return _names(str(arguments[len(values)].metavar or ""), arguments, values, invocation)


def _positional(words: list[str], options: dict[str, Any]) -> list[str]:
    """Return the words that are arguments, without flags and their values."""
    values, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in options and _takes_value(options[word])
        else:
            values.append(word)
    return values


def _takes_value(param: Any) -> bool:
    return param.param_type_name == "option" and not getattr(param, "is_flag", False)


def _wants_value(word: str) -> bool:
    return any(word in flag.names and flag.metavar for flag in FLAGS)


def _names(kind: str, arguments: list[Any], values: list[str], invocation: Invocation) -> list[str]:
    """Return the names of a kind that there are now."""
    if kind == "CONTEXT":
        from jetlake.client import contexts

        return contexts.names()
    if kind not in ("STREAM", "CONSUMER", "BUCKET", "KEY"):
        return []
    # What was typed before says of which stream the consumer is, and of which bucket the key.
    known = {str(argument.metavar): value for argument, value in zip(arguments, values, strict=False)}
    return asyncio.run(asyncio.wait_for(names_of(kind, known, invocation), SERVER_S_MAX))[:NAMES_MAX]


async def names_of(kind: str, known: dict[str, str], invocation: Invocation) -> list[str]:
    """Ask the server for the names of a kind; `known` are those that stand before on the line, by their kinds."""
    from jetlake.client.api import open_api

    access = msgspec.structs.replace(invocation.access(), timeout_s=SERVER_S_MAX)
    async with open_api(access) as api:
        match kind:
            case "STREAM":
                return await api.stream_names()
            case "CONSUMER":
                return await api.consumer_names(known["STREAM"])
            case "BUCKET":
                names = await api.stream_names()
                return [name.removeprefix(BUCKET_PREFIX) for name in names if name.startswith(BUCKET_PREFIX)]
            case _:
                return await _keys(api, known["BUCKET"])


async def _keys(api: "Api", bucket: str) -> list[str]:
    prefix = f"$KV.{bucket}."
    answer = await api.request(f"STREAM.INFO.{BUCKET_PREFIX}{bucket}", {"subjects_filter": f"{prefix}>"})
    return sorted(subject.removeprefix(prefix) for subject in answer["state"].get("subjects") or {})


def _fitting(names: list[str], typed: str) -> list[str]:
    return sorted(name for name in dict.fromkeys(names) if name.startswith(typed))
