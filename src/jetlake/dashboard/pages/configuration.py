"""A declaration of streams, consumers, buckets and governors: what it would change as a diff, and after a word, apply.

The same plan as `jetlake plan` makes, from a text and not from files: a declaration that comes from a browser sees no
file and no variable of the dashboard's machine, and is never a program.
"""

import secrets
from datetime import UTC, datetime
from typing import Any, NamedTuple

from aiohttp import web
from aiohttp.web_request import FileField

from jetlake.dashboard.confirmation import ConfirmationDialog, check_confirmed, confirm, done
from jetlake.dashboard.keys import OPTIONS, session_of
from jetlake.dashboard.pages.page import Page, Route
from jetlake.dashboard.profile import Feature
from jetlake.dashboard.rendering import command_line, render
from jetlake.dashboard.sessions import Session
from jetlake.errors import ConfigurationError
from jetlake.iac.actual import Actual, read_actual
from jetlake.iac.executor import carry_out, with_current_losses
from jetlake.iac.plan import Plan, Step
from jetlake.iac.plan_file import check_unchanged
from jetlake.iac.planner import Options, make_plan
from jetlake.iac.reader import read_text
from jetlake.iac.render import render as render_plan

__all__ = ["PAGE"]

PATH = "/configuration"
KEPT = "configuration"

TEXT_LETTERS_MAX = 500_000
"""Below the limit of a request; a declaration of a thousand streams has a third of it."""

LINES_MAX = 2_000
"""Of a plan that a page shows; all of it is applied."""

FORMATS = {"yaml": "YAML", "toml": "TOML", "json": "JSON"}
APPLY_WORD = "apply"
DESTROY_WORD = "apply and destroy"

EXAMPLE = """project: shop
streams:
  ORDERS:
    subjects: [orders.>]
    max_age: 30d
    consumers:
      worker: {ack_wait: 1m}
"""


class KeptPlan(NamedTuple):
    """The last plan of a session, which can be applied."""

    key: str
    plan: Plan
    name: str
    options: Options


class Given(NamedTuple):
    """What a form says."""

    text: str
    format: str
    name: str
    options: Options


async def show(request: web.Request) -> web.Response:
    """Show the form."""
    return _render(request, Given("", "yaml", "", Options()))


async def preview(request: web.Request) -> web.Response:
    """Show what a declaration would change."""
    given = await _given(request)
    try:
        declaration = read_text(given.text, given.name)
        actual = await _actual(request, with_templates=any(each.kind == "template" for each in declaration.resources))
        plan = make_plan(declaration, actual, _now(), given.options)
    except ConfigurationError as error:
        return _render(request, given, problem=str(error))
    kept = KeptPlan(secrets.token_urlsafe(8), plan, given.name, given.options)
    session_of(request).kept[KEPT] = kept
    return _render(request, given, kept=kept, warnings=declaration.warnings)


async def preview_apply(request: web.Request) -> web.Response:
    """Ask before a plan is carried out."""
    kept = _kept(session_of(request), request.match_info["plan"])
    plan = kept.plan
    losses = tuple(("Destroys", f"{step.title}: {'; '.join(step.destroys)}") for step in plan.destructive)
    flags = ["--allow-destroy"] if plan.destructive else []
    return confirm(
        request,
        ConfirmationDialog(
            title=f"Apply {_count(plan)} to {request.app[OPTIONS].server.shown}",
            facts=(*((_VERBS[action], str(plan.count(action))) for action in _VERBS if plan.count(action)), *losses),
            warning=(
                "Messages, streams or the state of consumers are deleted. This cannot be undone."
                if plan.destructive
                else "The first refusal of the server ends it; what was done until then stays."
            ),
            word=_word(plan),
            action=f"{PATH}/plans/{kept.key}/apply",
            button="Apply",
            command=_command(request, "apply", kept, *flags),
        ),
    )


async def apply(request: web.Request) -> web.Response:
    """Carry out the plan that was shown, unless the server has changed since."""
    session = session_of(request)
    kept = _kept(session, request.match_info["plan"])
    await check_confirmed(request, _word(kept.plan))
    actual = await _actual(request, with_templates=any(key[0] == "template" for key in kept.plan.keys))
    check_unchanged(kept.plan, actual)
    plan = with_current_losses(kept.plan, actual, _now())
    if plan.destructive and not kept.plan.destructive:
        raise ConfigurationError(
            "Nothing was changed: the plan has come to delete messages since it was made. Plan again."
        )
    del session.kept[KEPT]
    outcome = await carry_out(session.api, plan, lambda _step: None, _now())
    if outcome.failed is not None:
        raise ConfigurationError(
            f"{outcome.failed.action} {outcome.failed.title} failed: {outcome.reason}. Done: {_titles(outcome.done)}. "
            f"Not done: {_titles([outcome.failed, *outcome.left])}. Fix it and plan again."
        )
    decided = f" The server decided otherwise: {'; '.join(outcome.differs)}." if outcome.differs else ""
    return done(request, f"Applied {_count(plan)}: {_titles(outcome.done)}.{decided}", PATH)


_VERBS: dict[Any, str] = {"create": "Create", "update": "Change", "replace": "Replace", "delete": "Remove"}


def _render(
    request: web.Request, given: Given, *, kept: KeptPlan | None = None, problem: str = "", warnings: Any = ()
) -> web.Response:
    lines = [] if kept is None else render_plan(kept.plan)
    return render(
        request,
        "configuration.html",
        status=400 if problem else 200,
        given=given,
        formats=FORMATS,
        example=EXAMPLE,
        letters_max=TEXT_LETTERS_MAX,
        kept=kept,
        lines=lines if len(lines) <= LINES_MAX else [*lines[:LINES_MAX], lines[-1]],
        lines_left=max(0, len(lines) - LINES_MAX - 1),
        problem=problem,
        warnings=list(warnings),
        command=command_line(request, "export") if kept is None else _command(request, "plan", kept),
    )


async def _given(request: web.Request) -> Given:
    form = await request.post()
    chosen = str(form.get("format", ""))
    file = form.get("file")
    text, name = str(form.get("text", "")), f"declaration.{chosen if chosen in FORMATS else 'yaml'}"
    if isinstance(file, FileField) and file.filename:
        name = file.filename.replace("\\", "/").rpartition("/")[2]
        try:
            text = file.file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ConfigurationError(f"{name} is not UTF-8 text. Choose a declaration in YAML, TOML or JSON.") from None
    if len(text) > TEXT_LETTERS_MAX:
        raise ConfigurationError(
            f"The declaration has {len(text):,} letters: at most {TEXT_LETTERS_MAX:,} are read here."
        )
    return Given(text, chosen, name, Options(prune="prune" in form, take_over="take_over" in form))


async def _actual(request: web.Request, *, with_templates: bool) -> Actual:
    return await read_actual(session_of(request).api, with_templates=with_templates)


def _kept(session: Session, key: str) -> KeptPlan:
    found = session.kept.get(KEPT)
    if not isinstance(found, KeptPlan) or found.key != key:
        raise ConfigurationError("Nothing was changed: this plan was replaced by a newer one, or applied. Plan again.")
    return found


def _word(plan: Plan) -> str:
    return DESTROY_WORD if plan.destructive else APPLY_WORD


def _command(request: web.Request, verb: str, kept: KeptPlan, *flags: str) -> str:
    options = [*(["--prune"] if kept.options.prune else []), *(["--take-over"] if kept.options.take_over else [])]
    return command_line(request, verb, kept.name, *options, *flags)


def _count(plan: Plan) -> str:
    return f"{len(plan.steps)} change{'' if len(plan.steps) == 1 else 's'}"


def _titles(steps: list[Step]) -> str:
    return ", ".join(f"{step.action} {step.title}" for step in steps) or "nothing"


def _now() -> datetime:
    return datetime.now(UTC)


PAGE = Page(
    title="Configuration",
    path=PATH,
    shortcut="y",
    needs=Feature.JETSTREAM,
    routes=(
        Route("GET", PATH, show, name="configuration"),
        Route("POST", PATH, preview),
        Route("GET", PATH + "/plans/{plan}/apply", preview_apply, name="configuration.apply"),
        Route("POST", PATH + "/plans/{plan}/apply", apply),
    ),
)
