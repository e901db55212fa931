"""The order of steps, by their dependencies.

- a consumer needs its stream;
- a mirror and a stream with sources need their origins, and the consumers they copy by;
- a stream with dead letters needs the stream that keeps them;
- a stream that takes over subjects needs the stream that has them to release them first.

Invariant: in the result of `arrange`, everything comes after what it needs.
"""

from collections.abc import Mapping
from typing import Any

from jetlake.errors import ConfigurationError
from jetlake.iac.declaration import Key, title_of
from jetlake.iac.fields import DEAD_LETTERS_KEY
from jetlake.iac.subjects import Takers
from jetlake.shared.subjects import overlap


def needs_of(key: Key, config: Mapping[str, Any]) -> set[Key]:
    """Return what a thing needs, whether it is declared or not."""
    kind, stream, _ = key
    if kind == "consumer":
        return {("stream", "", stream)}
    needs: set[Key] = set()
    inner = config.get("config", {}) if kind == "template" else config
    for origin in (inner.get("mirror"), *(inner.get("sources") or [])):
        # What is in another account is not ours to make.
        if not origin or origin.get("external"):
            continue
        needs.add(("stream", "", origin["name"]))
        copied_by = (origin.get("consumer") or {}).get("name")
        if copied_by:
            needs.add(("consumer", origin["name"], copied_by))
    dead_letters = (inner.get("metadata") or {}).get(DEAD_LETTERS_KEY)
    if dead_letters:
        needs.add(("stream", "", dead_letters))
    return needs


def hand_overs(wanted: Mapping[str, list[str]], actual: Mapping[str, list[str]]) -> set[tuple[str, str]]:
    """Return pairs of streams: the first takes subjects that the second has now, and gives up or loses."""
    givers = Takers(actual)
    return {
        (taker, giver)
        for taker, subjects in wanted.items()
        for subject in subjects
        for giver in givers.overlapping(subject)
        if taker != giver and not any(overlap(subject, other) for other in wanted.get(giver, []))
    }


def contested(wanted: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Return two streams that take the same subjects, or None."""
    takers = Takers(wanted)
    for stream, subjects in wanted.items():
        for subject in subjects:
            for other in takers.overlapping(subject):
                if other != stream:
                    return stream, other
    return None


def arrange(needs: Mapping[Key, set[Key]]) -> list[Key]:
    """Return the keys so that each comes after what it needs, else in the given order.

    Raises `ConfigurationError` when things need each other in a circle.
    """
    placed: dict[Key, None] = {}
    for first in needs:
        # Two stacks instead of recursion: chains of mirrors may be long.
        path: dict[Key, None] = {}
        stack = [(first, False)]
        while stack:
            key, is_done = stack.pop()
            if is_done:
                path.pop(key)
                placed[key] = None
                continue
            if key in placed:
                continue
            if key in path:
                _refuse_circle(key, list(path))
            path[key] = None
            stack.append((key, True))
            stack += [
                (other, False) for other in sorted(needs[key], reverse=True) if other in needs and other not in placed
            ]
    return list(placed)


def _refuse_circle(key: Key, path: list[Key]) -> None:
    circle = [*path[path.index(key) :], key]
    raise ConfigurationError(
        f"these need each other in a circle: {' needs '.join(title_of(each) for each in circle)}; "
        "break it by removing one mirror, source, dead_letters or subject"
    )
