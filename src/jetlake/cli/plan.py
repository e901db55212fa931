"""`jetlake plan`: what would have to be done for a server to be as it is declared."""

from pathlib import Path
from typing import Annotated

import typer

from jetlake.cli.iac_files import (
    DIFFERENT,
    PathsArgument,
    PruneOption,
    TakeOverOption,
    VariableOption,
    plan_for,
    print_lines,
    print_warnings,
    read_files,
)
from jetlake.cli.output import JsonOption, print_json
from jetlake.cli.run import refusals, run


def plan(
    paths: PathsArgument,
    var: VariableOption = None,
    out: Annotated[Path | None, typer.Option(help="Keep the plan in this file, for `jetlake apply FILE`.")] = None,
    prune: PruneOption = False,
    take_over: TakeOverOption = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 2 when there is something to do.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Preview the changes needed to match your files. Changes nothing.

    Ends with 0, with 1 when the files or the server refuse, and with --exit-code with 2 when there is something to do.
    """
    from jetlake.iac.plan_file import write_plan
    from jetlake.iac.planner import Options
    from jetlake.iac.render import render

    with refusals():
        declaration = read_files(paths, var)
    print_warnings(declaration.warnings)
    made = run(lambda api: plan_for(api, declaration, Options(prune=prune, take_over=take_over)))
    if out is not None:
        with refusals():
            write_plan(out, made)
    if as_json:
        print_json(made)
    else:
        print_lines(render(made))
    if exit_code and not made.is_empty:
        raise typer.Exit(DIFFERENT)
