"""`make_plan`: from what is declared and what a server has to the steps between them.

It asks nobody and changes nothing: the same two sides always give the same plan.

Invariant: carried out on the server it was made for, a plan leads to a server for which the plan is empty, unless that
server's own limits forbid what is declared.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from jetlake.errors import ConfigurationError
from jetlake.iac import order
from jetlake.iac.actual import Actual, ActualResource
from jetlake.iac.declaration import OWNER_KEY, Declaration, Key, Resource, label_of, title_of
from jetlake.iac.differences import Differences, compare, created, normal
from jetlake.iac.fields import DEAD_LETTERS_KEY
from jetlake.iac.normal import SERVER_METADATA, normal_stream
from jetlake.iac.plan import Change, Plan, Step
from jetlake.located.nodes import refusal


@dataclass(frozen=True)
class Options:
    """What a plan may do besides making things as they are declared."""

    # Remove what the project has made and no longer declares.
    prune: bool = False
    # Take things over that another project has made.
    take_over: bool = False


def make_plan(declaration: Declaration, actual: Actual, now: datetime, options: Options | None = None) -> Plan:
    """Return the steps from what a server has to what is declared.

    Raises `ConfigurationError` when what is declared cannot be made on this server.
    """
    return _Planner(declaration, actual, now, options or Options()).plan()


class _Planner:
    def __init__(self, declaration: Declaration, actual: Actual, now: datetime, options: Options) -> None:
        self._declaration = declaration
        self._project = declaration.project
        self._wanted = {resource.key: resource for resource in declaration.resources}
        self._actual = actual
        self._now = now
        self._options = options
        self._replaced_streams: set[str] = set()
        # Of streams with consumers, which all need it.
        self._normal_streams: dict[str, dict[str, Any]] = {}

    def plan(self) -> Plan:
        if self._options.prune and not self._project:
            raise ConfigurationError("nothing can be pruned without a project: write `project: name` into a file")
        orphans = self._orphans()
        pruned = orphans if self._options.prune else []
        self._check_references(pruned)
        needs = {key: order.needs_of(key, resource.config) for key, resource in self._wanted.items()}
        early = self._hand_over(needs, pruned)
        steps: list[Step] = []
        unchanged: list[str] = []
        for key in order.arrange(needs):
            if key not in self._wanted:
                steps.append(self._delete(self._actual.found[key]))
                continue
            step = self._step(self._wanted[key])
            if step is None:
                unchanged.append(self._wanted[key].title)
            else:
                steps.append(step)
        steps += [self._delete(found) for found in self._late_deletes(pruned, early)]
        # Its streams decide what a consumer is, declared or not.
        keys = sorted(
            {
                *self._wanted,
                *(found.key for found in orphans),
                *(("stream", "", key[1]) for key in self._wanted if key[1]),
            }
        )
        return Plan(
            project=self._project,
            steps=tuple(steps),
            unchanged=tuple(unchanged),
            orphans=tuple(title_of(found.key) for found in orphans if not pruned),
            warnings=tuple(self._declaration.warnings),
            keys=tuple(keys),
            fingerprint=self._actual.fingerprint(keys),
        )

    def _orphans(self) -> list[ActualResource]:
        """What this project has made and no longer declares; consumers of an orphan go with it."""
        if not self._project:
            return []
        found = [
            each
            for each in self._actual.found.values()
            if each.owner == self._project and each.key not in self._wanted and each.key[0] != "template"
        ]
        gone = {each.key[2] for each in found if each.key[0] == "stream"}
        return [each for each in found if each.key[1] not in gone]

    def _check_references(self, pruned: list[ActualResource]) -> None:
        gone = {found.key for found in pruned}
        for resource in self._wanted.values():
            if resource.kind == "template" and self._actual.has_templates is False:
                raise refusal(
                    resource.location, f"{resource.title} cannot be made: this server has no templates, Jetlake does"
                )
            required = _required(resource)
            if required is None or required in self._wanted:
                continue
            if required in gone:
                raise refusal(
                    resource.location,
                    f"{resource.title} needs {title_of(required)}, which is to be removed: declare it",
                )
            if required not in self._actual.found:
                reason = f"{resource.title} needs {title_of(required)}, which is neither declared nor on the server"
                raise refusal(resource.location, f"{reason}: declare it")

    def _hand_over(self, needs: dict[Key, set[Key]], pruned: list[ActualResource]) -> set[Key]:
        """Let streams that give up subjects come before those that take them; return the pruned ones among them."""
        wanted = {
            key[2]: normal_stream(resource.config)["subjects"]
            for key, resource in self._wanted.items()
            if resource.kind == "stream"
        }
        self._check_overlaps(wanted)
        actual = {
            key[2]: found.config.get("subjects") or []
            for key, found in self._actual.found.items()
            if key[0] == "stream"
        }
        gone = {found.key for found in pruned}
        early: set[Key] = set()
        for taker, giver in sorted(order.hand_overs(wanted, actual)):
            key: Key = ("stream", "", giver)
            if key in gone:
                early.add(key)
                needs.setdefault(key, set())
            elif key not in self._wanted:
                resource = self._wanted["stream", "", taker]
                raise refusal(
                    resource.location,
                    f"{resource.title} takes subjects that stream {giver} of the server has, which is not declared: "
                    "declare it with other subjects, or remove it",
                )
            needs["stream", "", taker].add(key)
        return early

    def _check_overlaps(self, wanted: dict[str, list[str]]) -> None:
        pair = order.contested(wanted)
        if pair is not None:
            two, one = (self._wanted["stream", "", name] for name in pair)
            raise refusal(
                one.location, f"{one.title} and {two.title} ({two.location}) take the same subjects: change one"
            )

    def _step(self, resource: Resource) -> Step | None:
        found = self._actual.found.get(resource.key)
        stream = self._stream_of(resource)
        if found is not None and resource.stream in self._replaced_streams:
            return self._create(resource, "it goes with its stream, and is made again")
        if found is None:
            return self._create(resource)
        if self._project and found.owner not in ("", self._project) and not self._options.take_over:
            raise refusal(
                resource.location,
                f"{resource.title} belongs to project {found.owner!r}: remove it there, or give --take-over",
            )
        differences = compare(resource, found, stream, self._project, self._now)
        if not differences.changes:
            return None
        if differences.replaces:
            return self._replace(resource, found, differences)
        return Step(
            action="update",
            key=resource.key,
            label=resource.label or resource.kind,
            changes=tuple(differences.changes),
            destroys=tuple(differences.destroys),
            config=self._config(resource, found, differences.kept),
        )

    def _create(self, resource: Resource, *notes: str) -> Step:
        return Step(
            action="create",
            key=resource.key,
            label=resource.label or resource.kind,
            changes=created(resource, self._project),
            notes=notes,
            config=self._config(resource, None, {}),
        )

    def _replace(self, resource: Resource, found: ActualResource, differences: Differences) -> Step:
        if resource.kind == "stream":
            self._replaced_streams.add(resource.name)
        return Step(
            action="replace",
            key=resource.key,
            label=resource.label or resource.kind,
            changes=tuple(differences.changes),
            destroys=self._losses(found),
            config=self._config(resource, None, {}),
        )

    def _delete(self, found: ActualResource) -> Step:
        change = Change(field=f"metadata.{OWNER_KEY}", before=found.owner, after=None)
        label = label_of(found.key)
        return Step(action="delete", key=found.key, label=label, changes=(change,), destroys=self._losses(found))

    def _losses(self, found: ActualResource) -> tuple[str, ...]:
        kind, _, name = found.key
        if kind == "consumer":
            return ("what it has delivered and acknowledged is forgotten",)
        if kind == "template":
            return ("the streams made from it go with it",)
        losses = [f"{_count(found.messages, 'message')} lost" if found.messages else "empty; numbering restarts at 1"]
        consumers = self._actual.consumers(name)
        lost = [each.key[2] for each in consumers if each.key not in self._wanted and not each.is_ephemeral]
        kept = [each.key[2] for each in consumers if each.key in self._wanted]
        if kept:
            losses.append(f"what was delivered is forgotten by {_count(len(kept), 'consumer')}: {', '.join(kept)}")
        if lost:
            losses.append(f"{_count(len(lost), 'undeclared consumer')} lost: {', '.join(lost)}")
        return tuple(losses)

    def _late_deletes(self, pruned: list[ActualResource], early: set[Key]) -> Iterable[ActualResource]:
        """Return the rest of what is pruned, in the reverse of the order in which it would be made.

        Consumers of a stream that is replaced go with it.
        """
        late = {
            found.key: found
            for found in pruned
            if found.key not in early and found.key[1] not in self._replaced_streams
        }
        needs = {key: order.needs_of(key, found.config) for key, found in late.items()}
        return [late[key] for key in reversed(order.arrange(needs))]

    def _stream_of(self, resource: Resource) -> dict[str, Any]:
        key: Key = ("stream", "", resource.stream)
        if resource.kind != "consumer":
            return {}
        if resource.stream not in self._normal_streams:
            config = self._wanted[key].config if key in self._wanted else self._actual.found[key].config
            self._normal_streams[resource.stream] = normal("stream", config, {})
        return self._normal_streams[resource.stream]

    def _config(self, resource: Resource, found: ActualResource | None, kept: dict[str, Any]) -> dict[str, Any]:
        """Return what the server is sent: what is declared, the mark of the project, and what is to stay as it is."""
        config = {**kept, **resource.config}
        if resource.kind == "template":
            return config
        own = (found.config.get("metadata") or {}) if found else {}
        stays = {key: value for key, value in own.items() if key.startswith(SERVER_METADATA)}
        mark = self._project or own.get(OWNER_KEY, "")
        metadata = {**stays, **config.get("metadata", {}), **({OWNER_KEY: mark} if mark else {})}
        if metadata:
            config["metadata"] = metadata
        return config


def _required(resource: Resource) -> Key | None:
    """Return what must be there for a thing to be made; origins of copies need not."""
    if resource.kind == "consumer":
        return ("stream", "", resource.stream)
    dead_letters = (resource.config.get("metadata") or {}).get(DEAD_LETTERS_KEY)
    return ("stream", "", dead_letters) if dead_letters else None


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
