"""`jetlake apply`: makes a server as it is declared."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.iac_files import (
    PathsArgument,
    PruneOption,
    TakeOverOption,
    VariableOption,
    now,
    plan_for,
    print_lines,
    print_warnings,
    read_files,
)
from jetlake.cli.output import JsonOption, confirm, is_terminal, print_json
from jetlake.cli.run import REFUSED, refusals, run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from jetlake.client.api import Api
    from jetlake.iac.executor import Outcome
    from jetlake.iac.plan import Plan, Step

_DONE = {"create": "created", "update": "changed", "replace": "replaced", "delete": "removed"}


def apply(
    paths: PathsArgument,
    var: VariableOption = None,
    allow_destroy: Annotated[
        bool, typer.Option("--allow-destroy", help="Allow changes that delete messages, streams or consumer state.")
    ] = False,
    prune: PruneOption = False,
    take_over: TakeOverOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Apply the changes needed to match your files, or a plan that `jetlake plan --out` has kept.

    On a terminal the changes are shown first, and you are asked. Doing it twice does nothing the second time. What
    destroys something is refused without --allow-destroy. The first refusal of the server ends it; what was done and
    what was not is shown. Ends with 0 when the server is as declared, else with 1.
    """
    with refusals():
        make = _maker(paths, var, prune=prune, take_over=take_over)
    plan, outcome = run(
        lambda api: _apply(api, make, allow_destroy=allow_destroy, is_silent=as_json, is_asked=not (yes or as_json))
    )
    if as_json:
        print_json(_facts(outcome))
    elif outcome.failed is not None:
        _print_failure(outcome)
    else:
        _print_end(plan, outcome)
    if not outcome.is_complete:
        raise typer.Exit(REFUSED)


def _maker(
    paths: PathsArgument, variables: list[str] | None, *, prune: bool, take_over: bool
) -> "Callable[[Api], Awaitable[Plan]]":
    """Return how the plan is come by: from a file that keeps one, or from declarations."""
    from jetlake.errors import ConfigurationError
    from jetlake.iac.plan_file import is_plan, read_plan
    from jetlake.iac.planner import Options

    if any(is_plan(path) for path in paths):
        if len(paths) > 1 or variables or prune or take_over:
            raise ConfigurationError("a plan that was kept is complete: give it alone, without variables and options")
        kept = read_plan(paths[0])
        return lambda api: _checked(api, kept)
    declaration = read_files(paths, variables)
    print_warnings(declaration.warnings)
    return lambda api: plan_for(api, declaration, Options(prune=prune, take_over=take_over))


async def _checked(api: "Api", plan: "Plan") -> "Plan":
    from jetlake.iac.actual import read_actual
    from jetlake.iac.executor import with_current_losses
    from jetlake.iac.plan_file import check_unchanged

    actual = await read_actual(api, with_templates=any(key[0] == "template" for key in plan.keys))
    check_unchanged(plan, actual)
    return with_current_losses(plan, actual, now())


async def _apply(
    api: "Api", make: "Callable[[Api], Awaitable[Plan]]", *, allow_destroy: bool, is_silent: bool, is_asked: bool
) -> "tuple[Plan, Outcome]":
    from jetlake.iac.executor import carry_out, check_allowed
    from jetlake.iac.render import Line, render, render_step

    plan = await make(api)
    check_allowed(plan, allow_destroy=allow_destroy)
    if is_asked and not plan.is_empty and sys.stdin.isatty() and is_terminal():
        print_lines(render(plan))
        confirm(f"Apply these changes to {api.access.shown}?", force=False, flag="--yes")
    count = 0

    def report(step: "Step") -> None:
        nonlocal count
        count += 1
        if not is_silent:
            first, *rest = render_step(step)
            progress = f"[{count}/{len(plan.steps)}] {_DONE[step.action]} {step.title}"
            print_lines([Line(progress, first.style), *rest])

    return plan, await carry_out(api, plan, report, now())


def _print_failure(outcome: "Outcome") -> None:
    assert outcome.failed is not None, "the caller has looked"
    typer.echo(f"jetlake apply: {outcome.failed.action} {outcome.failed.title} failed: {outcome.reason}", err=True)
    typer.echo(f"done: {_titles(outcome.done)}", err=True)
    typer.echo(f"not done: {_titles([outcome.failed, *outcome.left])}", err=True)
    typer.echo("fix the errors above and run `jetlake apply` again: only what is still to do will be done", err=True)


def _titles(steps: "list[Step]") -> str:
    return ", ".join(f"{step.action} {step.title}" for step in steps) or "nothing"


def _print_end(plan: "Plan", outcome: "Outcome") -> None:
    from jetlake.iac.render import Line

    if plan.is_empty:
        print_lines([Line(f"Nothing to do: {len(plan.unchanged)} as declared.", "title")])
    else:
        count = len(outcome.done)
        print_lines([Line(f"Done: {count} step{'' if count == 1 else 's'}, {len(plan.unchanged)} unchanged.", "title")])
    for orphan in plan.orphans:
        note = f"{orphan} was made by {plan.project} and is no longer declared; --prune removes it"
        print_lines([Line(note, "note")])
    for text in outcome.differs:
        typer.echo(f"jetlake apply: the server decided otherwise: {text}", err=True)


def _facts(outcome: "Outcome") -> dict[str, object]:
    def names(steps: "list[Step]") -> list[dict[str, str]]:
        return [{"action": step.action, "title": step.title} for step in steps]

    failed = outcome.failed
    return {
        "done": names(outcome.done),
        "failed": None
        if failed is None
        else {"action": failed.action, "title": failed.title, "reason": outcome.reason},
        "not_done": names(outcome.left),
        "differs": outcome.differs,
    }
