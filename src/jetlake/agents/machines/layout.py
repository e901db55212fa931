"""Where the states and transitions of a diagram stand: in rows, from the initial state down.

The row of a state is its distance from the initial state. Labels of transitions stand in rows of their own between
those of the states, as if they were states; so nothing ever covers a label. Within a row the order is improved by
moving everything near to what it is connected with, and then positions are found that keep the distances.

Pure functions; the same machine always gets the same diagram.

Invariant: boxes of one row do not overlap, and rows do not either.
"""

from collections import deque
from itertools import pairwise

import msgspec

__all__ = ["Box", "Diagram", "Edge", "LayoutLink", "arrange"]

GAP_X = 28.0
GAP_Y = 26.0
"""Between neighbours in a row, and between rows."""

ROUNDS = 12
"""Sweeps over the rows, down and up; the order of real machines does not change after some four."""

EDGES_MAX = 2_000
"""Transitions of one diagram; a larger one cannot be read anyway."""


class LayoutLink(msgspec.Struct, frozen=True):
    """What leads from one state to another: the size of its label."""

    source: str
    target: str
    width: float
    height: float


class Box(msgspec.Struct):
    """Something in a row: a state, a label, or a place that a line goes through."""

    width: float
    height: float
    row: int
    x: float = 0.0
    y: float = 0.0

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


class Edge(msgspec.Struct):
    """One line: the boxes it goes through from source to target, and the one that has its label."""

    link: LayoutLink
    boxes: list[Box]
    label: Box


class Diagram(msgspec.Struct):
    """Everything with its place; x and y begin at 0."""

    states: dict[str, Box]
    edges: list[Edge]
    width: float
    height: float


def arrange(initial: str, sizes: dict[str, tuple[float, float]], links: list[LayoutLink]) -> Diagram:
    """Return where everything stands; `sizes` has width and height of each state."""
    links = links[:EDGES_MAX]
    rows = _rows_of(initial, list(sizes), links)
    states = {name: Box(width, height, 2 * rows[name]) for name, (width, height) in sizes.items()}
    edges = [_edge_of(link, states) for link in links]
    table = _table(states, edges)
    neighbours = _neighbours(edges)
    _order(table, neighbours)
    _place_x(table, neighbours)
    _place_y(table)
    boxes = [box for row in table for box in row]
    left = min(box.left for box in boxes)
    for box in boxes:
        box.x -= left
    return Diagram(states, edges, max(box.right for box in boxes), max(box.bottom for box in boxes))


def _rows_of(initial: str, names: list[str], links: list[LayoutLink]) -> dict[str, int]:
    following: dict[str, list[str]] = {name: [] for name in names}
    for link in links:
        following[link.source].append(link.target)
    rows: dict[str, int] = {}
    # States that cannot be reached begin at the top too.
    for start in (initial, *names):
        if start in rows:
            continue
        rows[start] = 0
        waiting = deque([start])
        while waiting:
            name = waiting.popleft()
            for other in following[name]:
                if other not in rows:
                    rows[other] = rows[name] + 1
                    waiting.append(other)
    return rows


def _edge_of(link: LayoutLink, states: dict[str, Box]) -> Edge:
    source, target = states[link.source], states[link.target]
    if source.row == target.row:
        between = [Box(link.width, link.height, source.row + 1)]
    else:
        step = 1 if target.row > source.row else -1
        between = [Box(8.0, 8.0, row) for row in range(source.row + step, target.row, step)]
        # Labels stand in the rows between those of states.
        odd = [index for index, box in enumerate(between) if box.row % 2]
        middle = odd[len(odd) // 2]
        between[middle] = Box(link.width, link.height, between[middle].row)
    label = max(between, key=lambda box: (box.row % 2, box.width))
    return Edge(link, [source, *between, target], label)


def _table(states: dict[str, Box], edges: list[Edge]) -> list[list[Box]]:
    last = max([box.row for box in states.values()] + [box.row for edge in edges for box in edge.boxes])
    table: list[list[Box]] = [[] for _ in range(last + 1)]
    for state in states.values():
        table[state.row].append(state)
    for edge in edges:
        for box in edge.boxes[1:-1]:
            table[box.row].append(box)
    return table


def _neighbours(edges: list[Edge]) -> dict[int, list[Box]]:
    found: dict[int, list[Box]] = {}
    for edge in edges:
        for one, other in pairwise(edge.boxes):
            found.setdefault(id(one), []).append(other)
            found.setdefault(id(other), []).append(one)
    return found


def _order(table: list[list[Box]], neighbours: dict[int, list[Box]]) -> None:
    """Sort each row by the middle of what its boxes are connected with in the row before it."""
    for row in table:
        for index, box in enumerate(row):
            box.x = float(index)
    for turn in range(ROUNDS):
        downwards = turn % 2 == 0
        for row in table if downwards else reversed(table):
            middles = {}
            for box in row:
                seen = [other.x for other in neighbours.get(id(box), ()) if (other.row < box.row) == downwards]
                middles[id(box)] = sum(seen) / len(seen) if seen else box.x
            row.sort(key=lambda box: middles[id(box)])
            for index, box in enumerate(row):
                box.x = float(index)


def _place_x(table: list[list[Box]], neighbours: dict[int, list[Box]]) -> None:
    """Find positions near to what each box is connected with; the order within rows stays."""
    for row in table:
        position = 0.0
        for box in row:
            box.x = position + box.width / 2
            position += box.width + GAP_X
        for box in row:
            box.x -= position / 2
    for turn in range(2 * ROUNDS):
        for row in table if turn % 2 == 0 else reversed(table):
            wanted = []
            for box in row:
                near = neighbours.get(id(box), [])
                wanted.append(sum(other.x for other in near) / len(near) if near else box.x)
            _spread(row, wanted)


def _spread(row: list[Box], wanted: list[float]) -> None:
    """Place boxes where they want to be, or as near as the distances allow: groups that touch move as one."""
    groups: list[tuple[float, list[Box], list[float]]] = []
    for box, want in zip(row, wanted, strict=True):
        # A group has the position of its left end, its boxes, and where each stands relative to that end.
        groups.append((want - box.width / 2, [box], [box.width / 2]))
        while len(groups) > 1:
            (left, boxes, offsets), (next_left, next_boxes, next_offsets) = groups[-2], groups[-1]
            width = offsets[-1] + boxes[-1].width / 2 + GAP_X
            if left + width <= next_left:
                break
            joined = [*offsets, *(offset + width for offset in next_offsets)]
            count, next_count = len(boxes), len(next_boxes)
            middle = (left * count + (next_left - width) * next_count) / (count + next_count)
            groups[-2:] = [(middle, [*boxes, *next_boxes], joined)]
    for left, boxes, offsets in groups:
        for box, offset in zip(boxes, offsets, strict=True):
            box.x = left + offset


def _place_y(table: list[list[Box]]) -> None:
    top = 0.0
    for row in table:
        height = max((box.height for box in row), default=0.0)
        for box in row:
            box.y = top + height / 2
        top += height + GAP_Y
