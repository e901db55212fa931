"""Carries out the steps of a plan, one after the other, and looks afterwards whether the server has become so.

It stops at the first refusal and says what was done, what was not, and why. Every step can be repeated: a plan that is
made again holds only what is still to do.

Invariant: nothing that destroys is done unless the caller has allowed it, and then only what the plan says.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from jetlake.client.api import Api
from jetlake.errors import ClientError, ConfigurationError, reworded
from jetlake.iac.actual import Actual, ask_template, read_actual
from jetlake.iac.declaration import Resource
from jetlake.iac.differences import Differences, compare, normal
from jetlake.iac.plan import Plan, Step
from jetlake.located.nodes import SourceLocation

_SEALED = {"sealed": True, "deny_delete": True, "deny_purge": True}

LOOKS_MAX = 5
"""How often the server is looked at afterwards: the lists of a cluster may be a moment behind."""

LOOK_AGAIN_S = 0.2

_TIMESTAMPS = ("opt_start_time", "pause_until")

Report = Callable[[Step], None]
"""Called after each step."""


@dataclass
class Outcome:
    """What became of a plan."""

    done: list[Step] = field(default_factory=list)
    failed: Step | None = None
    reason: str = ""
    left: list[Step] = field(default_factory=list)
    # What the server has made differently, each in one sentence.
    differs: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        return self.failed is None and not self.differs


def check_allowed(plan: Plan, *, allow_destroy: bool) -> None:
    """Raise `ConfigurationError` when a plan destroys something and nobody has allowed it."""
    if allow_destroy or not plan.destructive:
        return
    losses = [f"{step.action} {step.title}: {'; '.join(step.destroys)}" for step in plan.destructive]
    raise ConfigurationError(
        "nothing was done, because the plan destroys something:\n  "
        + "\n  ".join(losses)
        + "\n--allow-destroy allows it"
    )


def with_current_losses(plan: Plan, actual: Actual, now: datetime) -> Plan:
    """Return a kept plan with what its updates would delete now: messages may have come since."""
    steps = []
    for step in plan.steps:
        destroys = _differences(step, plan, actual, now).destroys if step.action == "update" else step.destroys
        steps.append(msgspec.structs.replace(step, destroys=tuple(destroys)))
    return msgspec.structs.replace(plan, steps=tuple(steps))


async def carry_out(api: Api, plan: Plan, report: Report, now: datetime) -> Outcome:
    """Do every step of a plan; `report` is called after each one."""
    outcome = Outcome()
    if plan.is_empty:
        return outcome
    for number, step in enumerate(plan.steps):
        try:
            await _do(api, step)
        except ClientError as error:
            outcome.failed, outcome.reason = step, str(error)
            outcome.left = list(plan.steps[number + 1 :])
            return outcome
        outcome.done.append(step)
        report(step)
    outcome.differs = await _differing(api, plan, now)
    return outcome


async def _differing(api: Api, plan: Plan, now: datetime) -> list[str]:
    """Return what the server has made differently from the plan, after looking several times."""
    with_templates = any(step.key[0] == "template" for step in plan.steps)
    differs: list[str] = []
    for look in range(LOOKS_MAX):
        if look:
            await asyncio.sleep(LOOK_AGAIN_S)
        actual = await read_actual(api, with_templates=with_templates)
        differs = [text for step in plan.steps for text in _remaining(step, plan, actual, now)]
        if not differs:
            break
    return differs


async def _do(api: Api, step: Step) -> None:
    match step.key[0]:
        case "stream":
            await _do_stream(api, step)
        case "consumer":
            await _do_consumer(api, step)
        case _:
            await _do_template(api, step)


async def _do_stream(api: Api, step: Step) -> None:
    name = step.key[2]
    if step.action in ("replace", "delete"):
        await api.request(f"STREAM.DELETE.{name}")
    if step.action == "delete":
        return
    assert step.config is not None, "only a delete sends nothing"
    config = {key: value for key, value in _sent(step.config).items() if key != "sealed"}
    is_sealed = bool(step.config.get("sealed"))
    if step.action == "update":
        await api.request(f"STREAM.UPDATE.{name}", config | (_SEALED if is_sealed else {}))
        return
    await _make_again(step, api.request(f"STREAM.CREATE.{name}", config))
    if is_sealed:
        # A stream cannot be made sealed.
        await api.request(f"STREAM.UPDATE.{name}", config | _SEALED)


async def _do_consumer(api: Api, step: Step) -> None:
    _, stream, name = step.key
    if step.action in ("replace", "delete"):
        await api.request(f"CONSUMER.DELETE.{stream}.{name}")
    if step.action == "delete":
        return
    assert step.config is not None, "only a delete sends nothing"
    action = "update" if step.action == "update" else "create"
    body = {"stream_name": stream, "config": _sent(step.config), "action": action}
    await _make_again(step, api.request(f"CONSUMER.CREATE.{stream}.{name}", body))
    if action == "update" and any(change.field == "pause_until" for change in step.changes):
        # An update does not touch a pause.
        pause = step.config.get("pause_until")
        await api.request(f"CONSUMER.PAUSE.{stream}.{name}", {"pause_until": pause} if pause else None)


async def _do_template(api: Api, step: Step) -> None:
    name = step.key[2]
    if step.action in ("replace", "delete"):
        await ask_template(api, f"{name}.DELETE")
    if step.action != "delete":
        answer = await ask_template(api, f"{name}.CREATE", step.config)
        if answer is None:
            raise ClientError("this server has no templates: they are made on a Jetlake server only")


def _sent(value: Any) -> Any:
    """Return a configuration without timestamps that are empty: a server takes no empty text for one."""
    if isinstance(value, dict):
        return {key: _sent(inner) for key, inner in value.items() if key not in _TIMESTAMPS or inner}
    return [_sent(item) for item in value] if isinstance(value, list) else value


async def _make_again(step: Step, request: Any) -> None:
    try:
        await request
    except ClientError as error:
        if step.action != "replace":
            raise
        raise reworded(error, f"it was removed and could not be made again: {error}") from error


def _remaining(step: Step, plan: Plan, actual: Actual, now: datetime) -> list[str]:
    if step.action == "delete":
        return [f"{step.title} is still there"] if step.key in actual.found else []
    if step.key not in actual.found:
        return [f"{step.title} is not there"]
    changes = _differences(step, plan, actual, now).changes
    return [f"{step.title} has {change.field} {change.before!r} instead of {change.after!r}" for change in changes]


def _differences(step: Step, plan: Plan, actual: Actual, now: datetime) -> Differences:
    """Return what still differs between a step's configuration and the server's."""
    kind, stream, name = step.key
    assert step.config is not None, "only a delete sends nothing"
    if step.key not in actual.found:
        return Differences()
    resource = Resource(kind, name, step.config, SourceLocation(""), stream=stream)  # type: ignore[arg-type]
    found = actual.stream(stream)
    owner = normal("stream", found.config, {}) if found else {}
    return compare(resource, actual.found[step.key], owner, plan.project, now)
