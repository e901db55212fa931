"""The root of the command line: loads the module of a command when it is called.

Invariant: `jetlake --help` imports no module of a command.
"""

import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from jetlake.cli.commands import COMMAND_OF_WORD, COMMANDS, Command
from jetlake.cli.invocation import FLAGS, Invocation, UsageError, current, enter, hoist
from jetlake.cli.output import is_narrow

ClickException: Any = typer.BadParameter.__mro__[2]
"""What every wrong line raises; typer does not export it, and where it comes from differs by version."""

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

SERVER_VIEW = "server-view"
SERVER_VIEWS = ("check", "help", "info", "ls", "list")
"""Words after `jetlake server` that look at a server instead of running one; its flags begin with a dash."""

EPILOG = "Flags of the connection, such as --server and --context, are explained by `jetlake --help`."


class LazyGroup(TyperGroup):
    """A group whose commands are those of the table."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        _hide_types_of_switches(self)
        # Stand-ins, for the list and for suggestions.
        for word, command in COMMAND_OF_WORD.items():
            hidden = command.hidden or word != command.name
            self.add_command(TyperCommand(name=word, help=command.help, hidden=hidden), word)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [command.name for command in COMMANDS if not command.hidden]

    def main(  # type: ignore[override]  # what is not of interest here is passed on by name
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        *,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line. Ctrl-C at a question ends with 130; with --json a usage error is reported as JSON."""
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **extra)
        enter(Invocation({}))
        try:
            code = super().main(args, prog_name, standalone_mode=False, **extra)
        except typer.Abort:
            typer.echo("", err=True)
            sys.exit(INTERRUPTED)
        except ClickException as error:
            if current().json_errors:
                facts = {"command": " ".join(("jetlake", *current().command)), "message": error.format_message()}
                typer.echo(json.dumps({"error": facts}), err=True)
                sys.exit(error.exit_code)
            _show(error)
            sys.exit(error.exit_code)
        sys.exit(code if isinstance(code, int) else 0)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take out the flags of all commands first, unless the command wants its words as they are."""
        args = _usual_words(args)
        if args and (command := COMMAND_OF_WORD.get(args[0])) is not None and command.raw:
            return super().parse_args(ctx, args)
        try:
            invocation, rest = hoist(args)
        except UsageError as error:
            raise typer.BadParameter(str(error)) from error
        enter(invocation._replace(json_errors=_has_json(rest)))
        return super().parse_args(ctx, rest)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the real command, with its module loaded."""
        command = COMMAND_OF_WORD.get(args[0])
        if command is None:
            return super().resolve_command(ctx, args)
        if command.raw:
            return command.name, _raw(command, args[1:]), []
        loaded = load(command)
        words = args[1:]
        if words[:1] == ["help"] and "help" not in getattr(loaded, "commands", {"help": None}):
            words = [*words[1:], "--help"]
        path = _path(command.name, loaded, words)
        enter(current()._replace(command=("server", *path[1:]) if command.name == SERVER_VIEW else path))
        if current().json_errors and not _takes_json(loaded, path[1:]):
            # It has nothing to print but a sentence, which becomes JSON.
            enter(current()._replace(json_notes=True))
            words = [word for word in words if word != "--json"]
        return current().command[0], loaded, words


def _usual_words(args: list[str]) -> list[str]:
    """Return a line as it is understood here: `--version`, `help` and `help WORD` are what people try first."""
    if args[:1] == ["--version"]:
        return ["version", *args[1:]]
    if args[:1] == ["help"]:
        return [*args[1:], "--help"]
    if args[:1] == ["server"] and args[1:2] and args[1] in SERVER_VIEWS:
        return [SERVER_VIEW, *args[1:]]
    return args


def _has_json(words: Sequence[str]) -> bool:
    return "--json" in (words[: words.index("--")] if "--" in words else words)


def _takes_json(loaded: Any, path: Sequence[str]) -> bool:
    for word in path:
        loaded = loaded.commands[word]
    return any("--json" in parameter.opts for parameter in loaded.params)


def _show(error: Any) -> None:
    """Print what is wrong with a line, as typer does."""
    try:
        from typer.rich_utils import rich_format_error
    except ImportError:
        error.show()
    else:
        rich_format_error(error)


def find(command: Command) -> Any:
    """Import what a line of the table names."""
    return getattr(import_module(command.module), command.attribute)


def load(command: Command) -> Any:
    """Return a command of the table as typer has it, its module imported."""
    found = find(command)
    if isinstance(found, typer.Typer):
        loaded: Any = get_group(found)
    else:
        application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        application.command(command.name)(found)
        loaded = get_command(application)
    _point_to_flags(loaded)
    return loaded


def _point_to_flags(loaded: Any) -> None:
    """Have the help of a command, and of those below it, say where the flags of all commands are explained."""
    loaded.epilog = loaded.epilog or EPILOG
    if is_narrow():
        # Frames would cut flags off.
        loaded.rich_markup_mode = None
    _hide_types_of_switches(loaded)
    for below in getattr(loaded, "commands", {}).values():
        _point_to_flags(below)


def _hide_types_of_switches(loaded: Any) -> None:
    """Newer versions of typer print `<bool>` after every switch."""
    for parameter in loaded.params:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = parameter.metavar or " "
    find_help = loaded.get_help_option

    def help_option(context: Any) -> Any:
        option = find_help(context)
        if option is not None:
            option.metavar = " "
        return option

    loaded.get_help_option = help_option


def _raw(command: Command, words: list[str]) -> TyperCommand:
    def call() -> None:
        raise typer.Exit(find(command)(words))

    return TyperCommand(name=command.name, callback=call)


def _path(name: str, loaded: Any, words: Sequence[str]) -> tuple[str, ...]:
    """Return the words that name a command, those of groups below it included."""
    path = [name]
    for word in words:
        below = getattr(loaded, "commands", {}).get(word)
        if below is None:
            break
        loaded = below
        path.append(word)
    return tuple(path)


def flags_for_help() -> Callable[..., None]:
    """Return a callback that declares the flags of all commands, for the help text.

    Their values are taken out of the line before typer sees it, so that they may come after the command too.
    """

    def jetlake(**_flags: Any) -> None:
        """A NATS-compatible server whose streams are tables.

        The flags below can stand anywhere on the line of every command that speaks to a server.
        """

    parameters = []
    for flag in FLAGS:
        name = flag.names[0].removeprefix("--").replace("-", "_")
        kind: Any = str | None if flag.metavar else bool
        option = typer.Option(*flag.names, help=flag.help, metavar=flag.metavar or None, show_default=False)
        default = None if flag.metavar else False
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]))
    jetlake.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    jetlake.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return jetlake
