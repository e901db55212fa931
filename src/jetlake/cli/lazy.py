"""The root of the command line: loads the module of a command when it is called.

Invariant: `jetlake --help` imports no module of a command.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from jetlake.cli.commands import COMMAND_OF_WORD, COMMANDS, Command
from jetlake.cli.invocation import FLAGS, UsageError, current, enter, hoist

EPILOG = "Flags of the connection, such as --server and --context, are explained by `jetlake --help`."


class LazyGroup(TyperGroup):
    """A group whose commands are those of the table."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Stand-ins, for the list and for suggestions.
        for word, command in COMMAND_OF_WORD.items():
            hidden = command.hidden or word != command.name
            self.add_command(TyperCommand(name=word, help=command.help, hidden=hidden), word)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [command.name for command in COMMANDS if not command.hidden]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take out the flags of all commands first, unless the command wants its words as they are."""
        if args and (command := COMMAND_OF_WORD.get(args[0])) is not None and command.raw:
            return super().parse_args(ctx, args)
        try:
            invocation, rest = hoist(args)
        except UsageError as error:
            raise typer.BadParameter(str(error)) from error
        enter(invocation)
        return super().parse_args(ctx, rest)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the real command, with its module loaded."""
        command = COMMAND_OF_WORD.get(args[0])
        if command is None:
            return super().resolve_command(ctx, args)
        if command.raw:
            return command.name, _raw(command, args[1:]), []
        loaded = load(command)
        enter(current()._replace(command=_path(command.name, loaded, args[1:])))
        return command.name, loaded, args[1:]


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
    for below in getattr(loaded, "commands", {}).values():
        _point_to_flags(below)


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

    Their values are taken out of the line before typer sees it, so that they may stand behind the command too.
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
