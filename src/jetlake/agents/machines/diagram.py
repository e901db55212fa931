"""A machine as a picture: its states, its transitions, and the watchers that are active in each state.

`draw_svg` needs no other program; `draw_dot` writes the language of Graphviz, as the original does. Pure functions.
"""

from html import escape
from itertools import pairwise

from jetlake.agents.machines.layout import Box, Diagram, Edge, LayoutLink, arrange
from jetlake.agents.machines.manifest import Manifest

__all__ = ["draw_dot", "draw_svg"]

RED = ' [color = "red"]'
"""How the original marks the initial state."""

MARGIN = 30.0
TITLE_HEIGHT = 44.0
STATE_HEIGHT = 38.0
LINE_HEIGHT = 15.0
STATE_LETTER, SMALL_LETTER = 8.6, 6.6
"""Widths of a letter, somewhat more than those of common fonts: texts must not leave their boxes."""

WATCHERS_SHOWN_MAX = 6
"""In one state; further ones are a number."""

NAME_SHOWN_MAX = 40
"""Letters of a name; the tooltip has all of them."""

START_RADIUS = 6.0
START_DISTANCE = 26.0

STYLE = """
    .paper { fill: #ffffff }
    .title { font: 600 16px sans-serif; fill: #1c2430 }
    .state { fill: #eef3fb; stroke: #35507a; stroke-width: 1.5 }
    .final { fill: none; stroke: #35507a; stroke-width: 1 }
    .name { font: 600 14px sans-serif; fill: #1c2430; text-anchor: middle }
    .watcher { font: 11px sans-serif; fill: #5b6675; text-anchor: middle }
    .line { fill: none; stroke: #7a8699; stroke-width: 1.4 }
    .event { font: 12px sans-serif; fill: #8a4b08; text-anchor: middle;
             paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round }
"""


ARROW = """\
  <defs>
    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">
      <path d="M0,1 L10,5 L0,9 z" fill="#7a8699"/>
    </marker>
  </defs>"""


def draw_svg(manifest: Manifest) -> str:
    """Return the picture as SVG."""
    watchers = {state: _watchers_in(manifest, state) for state in manifest.states}
    links = _links(manifest)
    diagram = arrange(
        manifest.initial_state,
        {state: _state_size(state, watchers[state]) for state in manifest.states},
        list(links),
    )
    title = f"{manifest.name} {manifest.version}"
    width = max(diagram.width, len(title) * STATE_LETTER * 1.2) + 2 * MARGIN
    height = diagram.height + 2 * MARGIN + TITLE_HEIGHT + START_DISTANCE
    shift_x = (width - diagram.width) / 2
    size = f'width="{width:.0f}" height="{height:.0f}"'
    finals = set(manifest.states) - {source for each in manifest.transitions for source in each.sources}
    body = [
        *(_draw_edge(edge, links[edge.link], diagram) for edge in diagram.edges),
        _draw_start(diagram.states[manifest.initial_state]),
        *(_draw_state(state, box, watchers[state], state in finals) for state, box in diagram.states.items()),
        *(_draw_label(edge, links[edge.link]) for edge in diagram.edges),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
            f"  <title>{escape(title)}</title>",
            f"  <style>{STYLE}  </style>",
            ARROW,
            f'  <rect class="paper" {size}/>',
            f'  <text class="title" x="{MARGIN:.0f}" y="{MARGIN:.0f}">{escape(title)}</text>',
            f'  <g transform="translate({shift_x:.1f} {MARGIN + TITLE_HEIGHT + START_DISTANCE - 10:.1f})">',
            *body,
            "  </g>",
            "</svg>",
            "",
        ]
    )


def draw_dot(manifest: Manifest) -> str:
    """Return the machine in the language of Graphviz."""
    arrows = [
        f"    {_dot(source)} -> {_dot(transition.destination)} [ label = {_dot(transition.name)} ];"
        for transition in manifest.transitions
        for source in transition.sources
    ]
    states = [f"    {_dot(state)}{RED if state == manifest.initial_state else ''};" for state in manifest.states]
    return "\n".join(["digraph fsm {", *arrows, "", *states, "}", ""])


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _links(manifest: Manifest) -> dict[LayoutLink, list[tuple[str, str]]]:
    """Return one link for each pair of states, with the events and descriptions that lead from one to the other."""
    events: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for transition in manifest.transitions:
        for source in dict.fromkeys(transition.sources):
            events.setdefault((source, transition.destination), []).append((transition.name, transition.description))
    return {
        LayoutLink(
            source,
            target,
            max(len(_shown(name)) for name, _ in found) * SMALL_LETTER * 1.15 + 10,
            len(found) * LINE_HEIGHT + 4,
        ): found
        for (source, target), found in events.items()
    }


def _watchers_in(manifest: Manifest, state: str) -> list[str]:
    names = [f"{each.name} ({each.kind})" for each in manifest.watchers if state in each.state_match]
    if len(names) > WATCHERS_SHOWN_MAX:
        return [*names[: WATCHERS_SHOWN_MAX - 1], f"and {len(names) - WATCHERS_SHOWN_MAX + 1} more"]
    return names


def _state_size(name: str, watchers: list[str]) -> tuple[float, float]:
    letters = [len(_shown(name)) * STATE_LETTER, *(len(_shown(each)) * SMALL_LETTER for each in watchers)]
    return max(letters) + 28, STATE_HEIGHT + len(watchers) * LINE_HEIGHT


def _shown(text: str) -> str:
    return text if len(text) <= NAME_SHOWN_MAX else f"{text[: NAME_SHOWN_MAX - 1]}…"


def _draw_state(name: str, box: Box, watchers: list[str], is_final: bool) -> str:
    parts = [f"    <g><title>{escape(name)}</title>", _rectangle("state", box, 0, 9)]
    if is_final:
        parts.append(_rectangle("final", box, 4, 6))
    parts.append(f'<text class="name" x="{box.x:.1f}" y="{box.top + 24:.1f}">{escape(_shown(name))}</text>')
    for number, watcher in enumerate(watchers):
        y = box.top + 40 + number * LINE_HEIGHT
        parts.append(f'<text class="watcher" x="{box.x:.1f}" y="{y:.1f}">{escape(_shown(watcher))}</text>')
    return "".join([*parts, "</g>"])


def _rectangle(kind: str, box: Box, inset: float, radius: float) -> str:
    return (
        f'<rect class="{kind}" x="{box.left + inset:.1f}" y="{box.top + inset:.1f}" '
        f'width="{box.width - 2 * inset:.1f}" height="{box.height - 2 * inset:.1f}" rx="{radius:g}"/>'
    )


def _draw_start(box: Box) -> str:
    y = box.top - START_DISTANCE
    return (
        f'    <circle cx="{box.x:.1f}" cy="{y:.1f}" r="{START_RADIUS:.0f}" fill="#35507a"/>'
        f'<path class="line" marker-end="url(#arrow)" '
        f'd="M{box.x:.1f},{y + START_RADIUS:.1f} L{box.x:.1f},{box.top:.1f}"/>'
    )


def _draw_edge(edge: Edge, events: list[tuple[str, str]], diagram: Diagram) -> str:
    source, target = edge.boxes[0], edge.boxes[-1]
    first, last = edge.boxes[1], edge.boxes[-2]
    goes_down = first.row > source.row
    begin = (_port(edge, source, diagram), source.bottom if goes_down else source.top)
    from_above = last.row < target.row
    end = (_port(edge, target, diagram, at_end=True), target.top if from_above else target.bottom)
    if source.row == target.row:
        # Between states of one row the line hangs below them.
        x, y = first.x, first.y
        path = f"M{begin[0]:.1f},{begin[1]:.1f} Q{begin[0]:.1f},{y:.1f} {x:.1f},{y:.1f} Q{end[0]:.1f},{y:.1f} "
        path += f"{end[0]:.1f},{end[1]:.1f}"
    else:
        points = [begin, *((box.x, box.y) for box in edge.boxes[1:-1]), end]
        path = f"M{begin[0]:.1f},{begin[1]:.1f}"
        for (x, y), (next_x, next_y) in pairwise(points):
            middle = (y + next_y) / 2
            path += f" C{x:.1f},{middle:.1f} {next_x:.1f},{middle:.1f} {next_x:.1f},{next_y:.1f}"
    names = ", ".join(name for name, _ in events)
    return f'    <path class="line" marker-end="url(#arrow)" d="{path}"><title>{escape(names)}</title></path>'


def _port(edge: Edge, box: Box, diagram: Diagram, *, at_end: bool = False) -> float:
    """Return where on the border of a state a line begins or ends: those of one side share it evenly."""
    own = edge.boxes[-2] if at_end else edge.boxes[1]
    below = own.row > box.row
    ends = []
    for other in diagram.edges:
        for is_end, (state, neighbour) in enumerate(
            ((other.boxes[0], other.boxes[1]), (other.boxes[-1], other.boxes[-2]))
        ):
            if state is box and (neighbour.row > box.row) == below:
                ends.append((neighbour.x, is_end, neighbour))
    ends.sort(key=lambda each: (each[0], each[1]))
    index = next(
        number for number, (_, is_end, neighbour) in enumerate(ends) if neighbour is own and is_end == int(at_end)
    )
    return box.left + box.width * (index + 1) / (len(ends) + 1)


def _draw_label(edge: Edge, events: list[tuple[str, str]]) -> str:
    box, parts = edge.label, []
    for number, (name, description) in enumerate(events):
        y = box.top + 13 + number * LINE_HEIGHT
        hint = f"{name}: {description}" if description else name
        parts.append(
            f'    <text class="event" x="{box.x:.1f}" y="{y:.1f}">{escape(_shown(name))}'
            f"<title>{escape(hint)}</title></text>"
        )
    return "\n".join(parts)
