"""A plan that is kept in a file: what was looked at is what will be done.

Invariant: a plan from a file is carried out only on a server whose things are still as they were when it was made.
"""

from pathlib import Path

import msgspec

from jetlake.errors import ConfigurationError, reason_of
from jetlake.iac.actual import Actual
from jetlake.iac.plan import Plan

FORMAT = "jetlake.plan.v1"

_MARK = b'"format":"jetlake.plan.'
_MARK_BYTES_MAX = 64
"""The mark stands at the very beginning."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    plan: Plan


def is_plan(path: Path) -> bool:
    """Return whether a file holds a plan."""
    try:
        with path.open("rb") as file:
            return _MARK in file.read(_MARK_BYTES_MAX)
    except OSError:
        return False


def write_plan(path: Path, plan: Plan) -> None:
    """Keep a plan. Raises `ConfigurationError` when the file cannot be written."""
    try:
        path.write_bytes(msgspec.json.encode(_Kept(format=FORMAT, plan=plan)) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"the plan cannot be written to {path}: {reason_of(error)}") from error


def read_plan(path: Path) -> Plan:
    """Return a plan that was kept. Raises `ConfigurationError`."""
    try:
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
    except OSError as error:
        raise ConfigurationError(f"the plan {path} cannot be read: {reason_of(error)}") from error
    except msgspec.DecodeError as error:
        raise ConfigurationError(
            f"{path} is not a plan that can be read: {error}; make it again by `jetlake plan`"
        ) from error
    if kept.format != FORMAT:
        raise ConfigurationError(f"{path} was made by another version: make it again by `jetlake plan`")
    return kept.plan


def check_unchanged(plan: Plan, actual: Actual) -> None:
    """Raise `ConfigurationError` when the server is not as it was when the plan was made."""
    if actual.fingerprint(list(plan.keys)) != plan.fingerprint:
        raise ConfigurationError("the server has changed since this plan was made: make it again by `jetlake plan`")
