"""`jetlake drift`: whether a server is as it is declared."""

import typer

from jetlake.cli.iac_files import (
    DIFFERENT,
    PathsArgument,
    VariableOption,
    plan_for,
    print_lines,
    print_warnings,
    read_files,
)
from jetlake.cli.output import JsonOption, print_json
from jetlake.cli.run import refusals, run


def drift(paths: PathsArgument, var: VariableOption = None, as_json: JsonOption = False) -> None:
    """Tell whether a server is still as files declare it, for a scheduled job. Changes nothing.

    Ends with 0 when it is, with 2 when something differs, with 1 when the files or the server refuse.
    """
    from jetlake.iac.planner import Options
    from jetlake.iac.render import Line, render

    with refusals():
        declaration = read_files(paths, var)
    print_warnings(declaration.warnings)
    # Compare resources of any owner: an ownership mark must not make the command refuse.
    made = run(lambda api: plan_for(api, declaration, Options(take_over=True)))
    if as_json:
        print_json(made)
    elif made.has_differences:
        print_lines(render(made))
    else:
        print_lines([Line(f"No difference: {len(made.unchanged)} as declared.", "title")])
    if made.has_differences:
        raise typer.Exit(DIFFERENT)
