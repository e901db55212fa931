"""The entry of the command `jetlake`.

`jetlake server` is handed over before anything else is imported: it must start fast, and its flags are
nats-server's, which no other parser understands. Everything else is typer's.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typer


def main() -> int:
    """Run the command line of this process and return the exit code."""
    if sys.argv[1:2] == ["server"]:
        from jetlake.server.main import main as run_server

        return run_server(sys.argv[2:])
    create()()
    return 0


def create() -> "typer.Typer":
    """Return the application with all its commands."""
    import typer

    from jetlake.cli import bench, check, dead, stream, version, why

    application = typer.Typer(
        name="jetlake",
        help="A NATS-compatible server whose streams are tables.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    # Never reached by `main`, which takes this word before; it stands here for the list of commands.
    application.command("server", help="Run a server; takes nats-server's flags, see `jetlake server --help`.")(main)
    application.command("bench")(bench.bench)
    application.command("check")(check.check)
    application.add_typer(stream.application, name="stream")
    application.add_typer(dead.application, name="dead")
    application.command("why")(why.why)
    application.command("version")(version.version)
    return application
