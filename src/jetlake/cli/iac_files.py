"""What the commands of config as code share: their options, reading files, and showing a plan."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.output import console, is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jetlake.client.api import Api
    from jetlake.iac.declaration import Declaration
    from jetlake.iac.plan import Plan
    from jetlake.iac.planner import Options
    from jetlake.iac.render import Line

DIFFERENT = 2
"""The exit code when a server has something else than what is declared."""

PathsArgument = Annotated[
    list[Path], typer.Argument(help="Files or folders with declarations: YAML, JSON, TOML, Terraform.", metavar="PATH")
]
VariableOption = Annotated[
    list[str] | None, typer.Option("--var", help="A value for ${NAME}: --var NAME=VALUE.", metavar="NAME=VALUE")
]
PruneOption = Annotated[bool, typer.Option("--prune", help="Remove what the project has made and no longer declares.")]
TakeOverOption = Annotated[bool, typer.Option("--take-over", help="Take over what another project has made.")]

_COLOURS = {
    "add": "green",
    "change": "yellow",
    "remove": "red",
    "danger": "bold red",
    "note": "cyan",
    "title": "bold",
    "": "",
}


def read_files(paths: list[Path], variables: list[str] | None) -> "Declaration":
    """Return what files declare. Raises `ConfigurationError`."""
    from jetlake.iac.reader import read

    given = {}
    for variable in variables or []:
        name, equals, value = variable.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{variable!r} names no value: write --var NAME=VALUE")
        given[name] = value
    return read(paths, given)


async def plan_for(api: "Api", declaration: "Declaration", options: "Options | None" = None) -> "Plan":
    """Ask a server what it has, and return the plan for what is declared."""
    from jetlake.iac.actual import read_actual
    from jetlake.iac.planner import make_plan

    has_templates = any(resource.kind == "template" for resource in declaration.resources)
    actual = await read_actual(api, with_templates=has_templates)
    return make_plan(declaration, actual, now(), options)


def now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


def print_lines(lines: "Iterable[Line]") -> None:
    """Print lines, coloured on a terminal."""
    screen = console() if is_terminal() else None
    for line in lines:
        if screen is None:
            typer.echo(line.text)
        else:
            screen.print(line.text, style=_COLOURS[line.style], markup=False, highlight=False, soft_wrap=True)


def print_warnings(warnings: "Iterable[str]") -> None:
    """Print what the reader of a declaration should know, on standard error."""
    for warning in warnings:
        typer.secho(f"warning: {warning}", err=True, fg=typer.colors.YELLOW if is_terminal() else None)
