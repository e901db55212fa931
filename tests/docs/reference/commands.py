"""Every command of the command line with its arguments and flags, from the same objects that print `--help`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jetlake.cli.commands import COMMANDS, Command
from jetlake.cli.invocation import FLAGS as COMMON_FLAGS
from jetlake.cli.lazy import load
from jetlake.server.flags import FLAGS as SERVER_FLAGS
from jetlake.server.flags import spelling
from tests.docs.reference.markdown import cell, code, table

HEAD = """# Commands and flags

Every command with its arguments and flags, as `--help` shows them. [Command line](command_line.md) explains the rules
they share: output, exit codes, contexts.

"""

VIEW = "server-view"
WITHOUT_HELP = {"--help"}
KINDS = {"int": "NUMBER", "integer": "NUMBER", "float": "NUMBER", "path": "PATH", "str": "TEXT", "text": "TEXT"}


def page() -> str:
    """Return the page."""
    shown = [command for command in COMMANDS if not command.hidden or command.name == VIEW]
    return (HEAD + _common() + "".join(_command(command) for command in shown)).rstrip() + "\n"


def _common() -> str:
    rows = [
        (", ".join(code(name) for name in flag.names), code(flag.metavar or ""), cell(flag.help))
        for flag in COMMON_FLAGS
    ]
    return "## Flags of all commands\n\n" + table(("flag", "value", "meaning"), rows)


def _command(command: Command) -> str:
    if command.name == "server":
        return _server(command)
    if command.raw:
        text = f"## `jetlake {command.name}`\n\n{command.help} `jetlake {command.name} --help` lists its words; see "
        return text + "[command line](command_line.md).\n\n"
    name = "server" if command.name == VIEW else command.name
    aliases = f" Also {', '.join(code(f'jetlake {alias}') for alias in command.aliases)}." if command.aliases else ""
    title = "jetlake server info, ls, check" if command.name == VIEW else f"jetlake {name}"
    loaded = load(command)
    below = "".join(_leaf(path, leaf) for path, leaf in _leaves((f"jetlake {name}",), loaded))
    return f"## `{title}`\n\n{command.help}{aliases}\n\n" + below


def _leaves(path: tuple[str, ...], loaded: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    below = getattr(loaded, "commands", None)
    if not below:
        yield path, loaded
        return
    for name, command in below.items():
        if not command.hidden:
            yield from _leaves((*path, name), command)


def _leaf(path: tuple[str, ...], leaf: Any) -> str:
    arguments = [
        each for each in leaf.params if each.param_type_name == "argument" and not getattr(each, "hidden", False)
    ]
    options = [
        each
        for each in leaf.params
        if each.param_type_name == "option" and not each.hidden and not WITHOUT_HELP & set(each.opts)
    ]
    words = " ".join((*path, *(_name(each) for each in arguments)))
    heading = f"### `{' '.join(path)}`\n\n" if len(path) > 1 else ""
    rows = [
        *((code(_name(each)), "", _meaning(each)) for each in arguments),
        *((_spelled(each), code(_value(each)), _meaning(each)) for each in options),
    ]
    usage = f"`{words}`\n\n"
    return heading + usage + _prose(leaf.help) + table(("argument or flag", "value", "meaning"), rows)


def _prose(text: str | None) -> str:
    """Return a help text as paragraphs; lines of code that it shows stay one paragraph each."""
    plain = re.sub(r"\x08\n?", "", text or "").strip()
    return plain.replace("<", "&lt;") + "\n\n" if plain else ""


def _name(argument: Any) -> str:
    word = (argument.metavar or argument.name).strip("[]{}.").upper()
    word = f"{word}…" if argument.nargs == -1 else word
    return word if argument.required else f"[{word}]"


def _spelled(option: Any) -> str:
    return ", ".join(code(name) for name in (*sorted(option.opts, key=len, reverse=True), *option.secondary_opts))


def _value(option: Any) -> str:
    if option.is_flag:
        return ""
    if option.metavar and option.metavar.strip():
        return str(option.metavar).strip()
    choices = getattr(option.type, "choices", ())
    return " ".join(str(getattr(each, "value", each)) for each in choices) or KINDS[option.type.name.split()[0]]


def _meaning(parameter: Any) -> str:
    text = cell(parameter.help or "")
    default = getattr(parameter, "show_default", True) and _default(parameter)
    return f"{text} Default: {code(default)}." if default else text


def _default(parameter: Any) -> str:
    value = parameter.default
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    if value is None or callable(value) or isinstance(value, bool) or value in ("", 0, (), []):
        return ""
    value = getattr(value, "value", value)
    # A folder below somebody's own differs from machine to machine.
    return "" if isinstance(value, Path) and value.is_absolute() else str(value)


def _server(command: Command) -> str:
    text = f"## `jetlake server`\n\n{command.help} `jetlake-nats-server` takes the same.\n\n"
    for section in dict.fromkeys(flag.section for flag in SERVER_FLAGS):
        rows = [
            (", ".join(code(spelling(name)) for name in flag.names), code(flag.argument), cell(flag.explanation))
            for flag in SERVER_FLAGS
            if flag.section == section
        ]
        text += f"### `jetlake server`: {section}\n\n" + table(("flag", "value", "meaning"), rows)
    return text
