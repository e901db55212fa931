"""Finds which of many subjects overlap without comparing each with each.

The subjects form a tree of tokens. To look for a subject is to walk down all branches it can share with others, which
for the subjects of real streams are few. For subjects made to have many, the walk has a bound.

Invariant: `first_overlap` finds a pair exactly when two of the subjects `collide`; the pair is the first one, by the
position of its first subject and then of its second. `first_subset` finds a position exactly when that subject
`is_subset` of another.
"""

from jetlake.management.subjects.names import ALL_THE_REST, ANY_ONE

STEPS_MAX = 500_000
"""Less than a second of walking; ten thousand subjects of one stream with a wildcard each need a tenth."""


class ComparisonLimitError(Exception):
    """Is raised when subjects branch so much that comparing them would stop the server."""


class _Node:
    __slots__ = ("below", "children", "here", "looks_wild")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        # The keys among the children that begin with a wildcard but are not one.
        self.looks_wild: list[str] = []
        # The two lowest positions of the subjects that end here, and of those that go on. One may be the subject that
        # is looked for, which does not overlap with itself.
        self.here: list[int] = []
        self.below: list[int] = []


def first_overlap(subjects: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the positions of the first two subjects that overlap. All must be subjects."""
    if not any(ANY_ONE in subject or ALL_THE_REST in subject for subject in subjects):
        return _first_twins(subjects)
    root = _Node()
    for position, subject in enumerate(subjects):
        _add(root, subject, position)
    steps = 0
    for position, subject in enumerate(subjects):
        other, walked = _lowest_overlap(root, subject, position)
        if other is not None:
            return position, other
        steps += walked
        if steps > STEPS_MAX:
            raise ComparisonLimitError
    return None


def _first_twins(subjects: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the positions of the first two subjects that are the same: without wildcards no others overlap."""
    first_positions: dict[str, int] = {}
    found: tuple[int, int] | None = None
    for position, subject in enumerate(subjects):
        first = first_positions.setdefault(subject, position)
        if first != position and (found is None or first < found[0]):
            found = first, position
    return found


def _add(root: _Node, subject: str, position: int) -> None:
    node = root
    for token in subject.split("."):
        if len(node.below) < 2:
            node.below.append(position)
        if token.startswith(ANY_ONE) and token != ANY_ONE and token not in node.children:
            node.looks_wild.append(token)
        node = node.children.setdefault(token, _Node())
    if len(node.here) < 2:
        node.here.append(position)


def _lowest_overlap(root: _Node, subject: str, position: int) -> tuple[int | None, int]:
    """Return the lowest other position that overlaps with this subject, and how many steps that took."""
    tokens = subject.split(".")
    found: list[int] = []
    waiting = [(root, 0)]
    for node, depth in waiting:
        if depth == len(tokens):
            found += node.here
            continue
        rest = node.children.get(ALL_THE_REST)
        if rest is not None:
            found += rest.here
        token = tokens[depth]
        if token == ALL_THE_REST:
            found += node.below
        elif token == ANY_ONE:
            waiting += [(child, depth + 1) for key, child in node.children.items() if key != ALL_THE_REST]
        else:
            children = (node.children.get(token), node.children.get(ANY_ONE))
            waiting += [(child, depth + 1) for child in children if child is not None]
        if len(waiting) > STEPS_MAX:
            raise ComparisonLimitError
    return min((other for other in found if other != position), default=None), len(waiting)


def first_subset(subjects: tuple[str, ...]) -> int | None:
    """Return the position of the first subject all of which another one matches too. They need not be legal."""
    root = _Node()
    for position, subject in enumerate(subjects):
        tokens = subject.split(".")
        # What follows is not looked at, and a pattern with an empty token matches nothing.
        cut = tokens[: tokens.index(ALL_THE_REST) + 1] if ALL_THE_REST in tokens else tokens
        if all(cut):
            _add(root, ".".join(cut), position)
    steps = 0
    for position, subject in enumerate(subjects):
        is_found, walked = _is_matched_by_other(root, subject, position)
        if is_found:
            return position
        steps += walked
        if steps > STEPS_MAX:
            raise ComparisonLimitError
    return None


def _is_matched_by_other(root: _Node, subject: str, position: int) -> tuple[bool, int]:
    """Return whether another position matches all of this subject, and how many steps that took."""
    tokens = subject.split(".")
    waiting = [(root, 0)]
    for node, depth in waiting:
        if depth == len(tokens):
            if any(other != position for other in node.here):
                return True, len(waiting)
            continue
        rest = node.children.get(ALL_THE_REST)
        if rest is not None and any(other != position for other in rest.here):
            return True, len(waiting)
        token = tokens[depth]
        if token in ("", ALL_THE_REST):
            continue
        # As `is_subset` has it, a token that only begins with a wildcard matches like one.
        keys = {token, ANY_ONE} if token == ANY_ONE else {token, ANY_ONE, *node.looks_wild}
        waiting += [(node.children[key], depth + 1) for key in keys if key in node.children]
        if len(waiting) > STEPS_MAX:
            raise ComparisonLimitError
    return False, len(waiting)
