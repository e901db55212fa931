"""The entry of the command `jetlake`.

`jetlake server` and the other commands that read their words themselves are handed over before anything else is
imported: they must start fast, and their flags are not ours. Everything else is typer's.
"""

import sys

from jetlake.cli.commands import COMMAND_OF_WORD

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typer


def main() -> int:
    """Run the command line of this process and return the exit code."""
    command = COMMAND_OF_WORD.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if command is not None and command.raw:
        from importlib import import_module

        code: int = getattr(import_module(command.module), command.attribute)(sys.argv[2:])
        return code
    create()()
    return 0


def create() -> "typer.Typer":
    """Return the application with all its commands."""
    import typer

    from jetlake.cli.lazy import LazyGroup, flags_for_help

    application = typer.Typer(
        name="jetlake",
        cls=LazyGroup,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    application.callback()(flags_for_help())
    return application
