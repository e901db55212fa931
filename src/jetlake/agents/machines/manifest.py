"""`Manifest`: what a `machine.yaml` says, checked.

```yaml
name: puppet
version: 1.0.0
initial_state: IDLE
transitions:
  - {name: run, from: [IDLE], destination: RUNNING}
  - {name: done, from: [RUNNING], destination: IDLE}
watchers:
  - name: half_hourly
    type: schedule
    state_match: [IDLE]
    success_transition: run
    properties: {duration: 1m, schedules: ["*/30 * * * *"]}
```

The original's manifests load; keys it does not know it ignores, and so do we, with a warning.

Invariant: in a manifest without errors every state and event that is named exists.
"""

from pathlib import Path

import msgspec

from jetlake.agents.machines.fields import Fields, ManifestProblems, Problem
from jetlake.agents.machines.watcher_options import (
    FALLBACK_INTERVAL_S,
    FILE_INTERVAL_S,
    INTERVAL_S_MIN,
    POLL_INTERVAL_S_MIN,
    READERS,
    ExecOptions,
    FileOptions,
    KvOptions,
    WatcherOptions,
    read_watcher_options,
)
from jetlake.errors import ConfigurationError, reason_of
from jetlake.located.nodes import Node, SourceLocation
from jetlake.located.yaml_text import read_yaml
from jetlake.suggestions import suggestion

__all__ = [
    "FILE_NAME",
    "ForeignState",
    "MachineSubscription",
    "Manifest",
    "Transition",
    "WatcherManifest",
    "check_manifest",
    "parse_manifest",
    "read_manifest",
]

FILE_NAME = "machine.yaml"

FILE_BYTES_MAX = 1024 * 1024
"""Of one manifest; a real one has some kilobytes."""

PROBLEMS_SHOWN_MAX = 10
"""Problems in the error of a manifest that cannot run; `jetlake agent validate` shows all of them."""

ANNOUNCE_S_MIN = 60.0
"""Between two announcements of a watcher's state: thousands of nodes do the same."""

ORIGINAL_TYPES = ("archive", "ccmmanifest", "expression", "gossip", "homekit", "httpswitch", "machines", "plugins")
"""Types of watchers that the original has and this agent does not."""


class MachineSubscription(msgspec.Struct, frozen=True):
    """An event of another machine on the same node."""

    machine: str
    event: str


class ForeignState(msgspec.Struct, frozen=True):
    """A state that another machine on the same node must have."""

    machine: str
    state: str


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """An event, the states in which it is possible, and the state that follows."""

    name: str
    sources: tuple[str, ...]
    destination: str
    description: str = ""
    subscriptions: tuple[MachineSubscription, ...] = ()


class WatcherManifest(msgspec.Struct, frozen=True, kw_only=True):
    """One watcher. Without `state_match` it is always active."""

    name: str
    kind: str
    options: WatcherOptions
    state_match: tuple[str, ...] = ()
    foreign_states: tuple[ForeignState, ...] = ()
    success_transition: str = ""
    fail_transition: str = ""
    # 0 = it runs on changes of the state only.
    interval_s: float = 0.0
    # 0 = never.
    announce_interval_s: float = 0.0


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One machine."""

    name: str
    version: str
    initial_state: str
    transitions: tuple[Transition, ...]
    watchers: tuple[WatcherManifest, ...]
    splay_start_s: int = 0

    @property
    def states(self) -> tuple[str, ...]:
        """All states, in the order in which they are named."""
        named = [self.initial_state]
        for transition in self.transitions:
            named += [*transition.sources, transition.destination]
        return tuple(dict.fromkeys(named))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a machine's folder. Raises `ConfigurationError`."""
    path = folder / FILE_NAME
    return parse_manifest(read_manifest_text(path), str(path))


def read_manifest_text(path: Path) -> str:
    """Return the text of a manifest. Raises `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            content = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {reason_of(error)}; a machine's folder has a {FILE_NAME}"
        ) from error
    if len(content) > FILE_BYTES_MAX:
        raise ConfigurationError(f"{path} is larger than {FILE_BYTES_MAX:,} bytes: it is not a manifest")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not text in UTF-8: save it as UTF-8") from error


def parse_manifest(text: str, file: str) -> Manifest:
    """Return the manifest that a text is. Raises `ConfigurationError` with the problems, each with its line."""
    manifest, problems = check_manifest(text, file)
    errors = [problem for problem in problems if problem.is_error]
    if manifest is None or errors:
        more = f"\n… and {len(errors) - PROBLEMS_SHOWN_MAX} more" if len(errors) > PROBLEMS_SHOWN_MAX else ""
        raise ConfigurationError("\n".join(map(str, errors[:PROBLEMS_SHOWN_MAX])) + more)
    return manifest


def check_manifest(text: str, file: str) -> tuple[Manifest | None, list[Problem]]:
    """Return the manifest, None if it cannot run, and all problems."""
    problems = ManifestProblems()
    try:
        documents = read_yaml(text, file)
    except ConfigurationError as error:
        problems.found.append(_problem_of(error, file))
        return None, problems.found
    if len(documents) != 1:
        problems.error(SourceLocation(file), f"a manifest is one YAML document, this file has {len(documents)}")
        return None, problems.found
    manifest = _read(documents[0], problems)
    return (None if problems.errors else manifest), problems.found


def _problem_of(error: ConfigurationError, file: str) -> Problem:
    """Return a refusal of the YAML reader as a problem; it begins with the location."""
    text = str(error)
    line, _, reason = text.removeprefix(f"{file}:").partition(": ")
    if line.isdecimal():
        return Problem(SourceLocation(file, int(line)), reason)
    return Problem(SourceLocation(file), text.removeprefix(f"{file}: "))


def _read(document: Node, problems: ManifestProblems) -> Manifest:
    fields = Fields(document, "the machine", problems)
    transitions = [(_read_transition(node, problems), node) for node in _required_items(fields, "transitions")]
    found = [(_read_watcher(node, problems), node) for node in _required_items(fields, "watchers")]
    watchers = [(watcher, node) for watcher, node in found if watcher is not None]
    manifest = Manifest(
        name=fields.name("name", required=True),
        version=fields.text("version", required=True),
        initial_state=fields.name("initial_state", required=True),
        splay_start_s=fields.number("splay_start"),
        transitions=tuple(transition for transition, _ in transitions),
        watchers=tuple(watcher for watcher, _ in watchers),
    )
    fields.finish()
    _check_watchers(manifest, watchers, problems)
    _check_transitions(transitions, problems)
    return manifest


def _required_items(fields: Fields, key: str) -> list[Node]:
    items = fields.items(key)
    if not items and not isinstance(getattr(fields.node(key), "value", None), dict | str | int):
        fields.error(key, f"no {key} are defined: a machine has at least one")
    return items


def _read_transition(node: Node, problems: ManifestProblems) -> Transition:
    fields = Fields(node, "a transition", problems)
    name = fields.name("name", required=True)
    fields.owner = f"transition {name!r}"
    transition = Transition(
        name=name,
        sources=fields.names("from", required=True),
        destination=fields.name("destination", required=True),
        description=fields.text("description"),
        subscriptions=tuple(
            MachineSubscription(machine, event)
            for machine, event in _pairs(fields, "subscribe", "machine_name", "event")
        ),
    )
    fields.finish()
    return transition


def _read_watcher(node: Node, problems: ManifestProblems) -> WatcherManifest | None:
    fields = Fields(node, "a watcher", problems)
    name = fields.name("name", required=True)
    fields.owner = f"watcher {name!r}"
    kind = fields.text("type", required=True)
    fields.node("properties")
    options = read_watcher_options(kind, fields.inner("properties"))
    if options is None:
        if kind in ORIGINAL_TYPES:
            fields.error("type", f"type {kind!r} is not supported here: there are {', '.join(sorted(READERS))}")
        elif kind:
            hint = suggestion(kind, READERS) or f"; there are {', '.join(sorted(READERS))}"
            fields.error("type", f"type {kind[:40]!r} is unknown{hint}")
        return None
    watcher = WatcherManifest(
        name=name,
        kind=kind,
        options=options,
        state_match=fields.names("state_match"),
        foreign_states=tuple(
            ForeignState(machine, state)
            for machine, state in _pairs(fields, "foreign_state_required", "machine_name", "state")
        ),
        success_transition=fields.name("success_transition"),
        fail_transition=fields.name("fail_transition"),
        interval_s=_read_interval(fields, options),
        announce_interval_s=_read_announce_interval(fields),
    )
    if kind == "timer" and watcher.success_transition:
        # The original's own example does this and is refused by it; the end of a timer is its one event.
        fields.error("success_transition", "timer watcher does not support success events: write fail_transition")
    fields.finish()
    return watcher


def _read_interval(fields: Fields, options: WatcherOptions) -> float:
    if isinstance(options, KvOptions):
        is_poll = options.mode == "poll"
        return fields.seconds("interval", FALLBACK_INTERVAL_S, least=POLL_INTERVAL_S_MIN, required=is_poll)
    if fields.text("interval") in ("", "0", "0s"):
        if isinstance(options, ExecOptions) and options.gather_initial_state:
            fields.error("interval", "gather_initial_state needs an interval: it is about the first one")
        return FILE_INTERVAL_S if isinstance(options, FileOptions) else 0.0
    return fields.seconds("interval", INTERVAL_S_MIN, least=INTERVAL_S_MIN)


def _read_announce_interval(fields: Fields) -> float:
    if fields.text("announce_interval") in ("", "0", "0s"):
        return 0.0
    return fields.seconds("announce_interval", ANNOUNCE_S_MIN, least=ANNOUNCE_S_MIN)


def _pairs(fields: Fields, key: str, first: str, second: str) -> list[tuple[str, str]]:
    """Return pairs of names; one mapping counts as a list of one, as the published schema has it."""
    node = fields.node(key)
    if node is None:
        return []
    items = [node] if isinstance(node.value, dict) else fields.items(key)
    pairs = []
    for item in items:
        inner = Fields(item, f"{fields.owner}: {key}", fields.problems)
        pairs.append((inner.name(first, required=True), inner.name(second, required=True)))
        inner.finish()
    return pairs


def _check_watchers(
    manifest: Manifest, watchers: list[tuple[WatcherManifest, Node]], problems: ManifestProblems
) -> None:
    states, events = set(manifest.states), {transition.name for transition in manifest.transitions}
    seen: set[str] = set()
    for watcher, node in watchers:
        if watcher.name and watcher.name in seen:
            problems.error(_location(node, "name"), f"there are two watchers {watcher.name!r}: rename one")
        seen.add(watcher.name)
        for state in watcher.state_match:
            if state not in states:
                problems.error(
                    _location(node, "state_match"),
                    f"invalid state {state[:40]} in state match for watcher {watcher.name}{suggestion(state, states)}",
                )
        for key in ("success_transition", "fail_transition"):
            event = getattr(watcher, key)
            if event and event not in events:
                problems.error(
                    _location(node, key),
                    f"invalid {key} {event} specified in watcher {watcher.name}{suggestion(event, events)}",
                )


def _check_transitions(transitions: list[tuple[Transition, Node]], problems: ManifestProblems) -> None:
    destinations: dict[tuple[str, str], str] = {}
    for transition, node in transitions:
        for source in transition.sources:
            other = destinations.setdefault((transition.name, source), transition.destination)
            if other != transition.destination:
                problems.error(
                    node.location,
                    f"event {transition.name} leads from {source[:40]} to both {other} and {transition.destination}: "
                    "give one of them another name",
                )


def _location(node: Node, key: str) -> SourceLocation:
    found = node.value.get(key) if isinstance(node.value, dict) else None
    return found.location if isinstance(found, Node) else node.location
