"""The entry of the command `jetlake`.

`jetlake server` takes its port first of all. It and the other commands that read their words themselves are handed
over before anything else is imported: they must start fast, and their flags are not ours. Everything else is typer's.
"""

import sys

from jetlake import hidden_arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typer


def main() -> int:
    """Run the command line of this process and return the exit code."""
    is_view = len(sys.argv) > 2 and sys.argv[1] == "server" and not sys.argv[2].startswith("-")
    if sys.argv[1:2] == ["server"] and not is_view:
        from jetlake.server import early_port

        early_port.listen(sys.argv[2:])
    hidden_arguments.hide()
    from jetlake.cli.commands import COMMAND_OF_WORD

    command = COMMAND_OF_WORD.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if command is not None and command.raw and not is_view:
        from importlib import import_module

        code: int = getattr(import_module(command.module), command.attribute)(sys.argv[2:])
        return code
    from jetlake.cli.deferred_import import defer_import

    defer_import("aiohttp")
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
