"""Plots as SVG, written by hand: a page with them asks no other machine for anything.

| plot     | shows                                              |
|----------|----------------------------------------------------|
| `lines`  | values over time, one line per name                |
| `areas`  | parts of a whole over time, one upon the other     |
| `bars`   | one bar per name, side by side                     |
| `ranked` | one bar per name, the longest first, with its name |
| `shares` | parts of a whole now, as one bar                   |

Each is one string. Colours of names that mean something (`OK`, `CRITICAL`) are given by the caller as tones; text and
grid take theirs from the page, so that it may be light or dark. A library would bring more kinds, and with them scripts
or an image renderer in every installation.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

WIDTH, HEIGHT = 720, 200
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 28
COLOURS = ("#3b7ddd", "#e5813e", "#2fa37c", "#9a63d2", "#cfa62a", "#d9557b", "#2298b5", "#8a929c")
TONES = {"good": "#2fa37c", "warning": "#dfa32b", "bad": "#d9485f", "": "#8a929c"}
TICKS = 4
BARS_MAX = 60
RANKED_MAX = 12

RANKED_ROW, RANKED_NAME = 24, 190
"""Height of a row with its bar, and the width of the names before the bars."""

Points = Sequence[tuple[float, float]]
Colours = Mapping[str, str]


def lines(series: Mapping[str, Points], label: str, colours: Colours | None = None) -> str:
    """Return a plot of values over time (seconds since 1970), one line per name; empty without points."""
    points = [point for values in series.values() for point in values]
    if not points:
        return ""
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    top = nice(max(y for _, y in points))
    parts = [frame(label), *horizontal(top), *moments(first, last)]
    chosen = palette(list(series), colours)
    for name, values in series.items():
        placed = [
            (place(x, first, last, LEFT, WIDTH - RIGHT), place(y, 0, top, HEIGHT - BOTTOM, TOP)) for x, y in values
        ]
        if len(placed) == 1:
            parts.append(f'<circle cx="{placed[0][0]:.1f}" cy="{placed[0][1]:.1f}" r="3" fill="{chosen[name]}"/>')
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        if len(series) == 1:
            ends = f"{placed[-1][0]:.1f},{HEIGHT - BOTTOM} {placed[0][0]:.1f},{HEIGHT - BOTTOM}"
            parts.append(f'<polygon points="{path} {ends}" fill="{chosen[name]}" fill-opacity="0.12"/>')
        parts.append(f'<polyline points="{path}" fill="none" stroke="{chosen[name]}" stroke-width="1.8"/>')
    return "".join([*parts, "</svg>", legend(list(series), chosen)])


def areas(series: Mapping[str, Points], label: str, colours: Colours | None = None) -> str:
    """Return parts of a whole over time, the first one at the bottom; every name has the same moments, or none."""
    series = {name: values for name, values in series.items() if values}
    columns = list(series.values())
    if not columns:
        return ""
    moments_there = [x for x, _ in columns[0]]
    first, last = moments_there[0], moments_there[-1]
    sums = [sum(values[index][1] for values in columns) for index in range(len(moments_there))]
    top = nice(max(sums))
    parts = [frame(label), *horizontal(top), *moments(first, last)]
    chosen = palette(list(series), colours)
    below = [0.0] * len(moments_there)
    across = [place(x, first, last, LEFT, WIDTH - RIGHT) for x in moments_there]
    if len(across) == 1:
        across, below = [LEFT, WIDTH - RIGHT], [0.0, 0.0]
    for name, values in series.items():
        heights = [y for _, y in values] if len(values) == len(across) else [values[0][1]] * len(across)
        above = [low + height for low, height in zip(below, heights, strict=True)]
        upper = [f"{x:.1f},{place(y, 0, top, HEIGHT - BOTTOM, TOP):.1f}" for x, y in zip(across, above, strict=True)]
        lower = [f"{x:.1f},{place(y, 0, top, HEIGHT - BOTTOM, TOP):.1f}" for x, y in zip(across, below, strict=True)]
        path = " ".join([*upper, *reversed(lower)])
        parts.append(f'<polygon points="{path}" fill="{chosen[name]}" fill-opacity="0.85"/>')
        below = above
    return "".join([*parts, "</svg>", legend(list(series), chosen)])


def bars(values: Sequence[tuple[str, float]], label: str) -> str:
    """Return a plot with one bar per name, the last `BARS_MAX` of them; empty without values."""
    values = values[-BARS_MAX:]
    if not values:
        return ""
    top = nice(max(value for _, value in values))
    parts = [frame(label), *horizontal(top)]
    slot = (WIDTH - LEFT - RIGHT) / len(values)
    every = max(1, len(values) // 6)
    for index, (name, value) in enumerate(values):
        y = place(value, 0, top, HEIGHT - BOTTOM, TOP)
        x = LEFT + slot * index
        parts.append(
            f'<rect x="{x + slot * 0.1:.1f}" y="{y:.1f}" width="{slot * 0.8:.1f}" height="{HEIGHT - BOTTOM - y:.1f}" '
            f'rx="2" fill="{COLOURS[0]}"><title>{escape(name)}: {value:,.0f}</title></rect>'
        )
        if index % every == 0:
            parts.append(text(x + slot / 2, HEIGHT - 8, name, "middle"))
    return "".join([*parts, "</svg>"])


def ranked(values: Sequence[tuple[str, float]], label: str, colours: Colours | None = None) -> str:
    """Return one bar per name with its value, the largest `RANKED_MAX` of them; empty without values."""
    chosen = sorted(values, key=lambda each: -each[1])[:RANKED_MAX]
    if not chosen:
        return ""
    most = max(value for _, value in chosen) or 1.0
    height = len(chosen) * RANKED_ROW + 16
    parts = [frame(label, height)]
    room = WIDTH - RANKED_NAME - 80
    for index, (name, value) in enumerate(chosen):
        y = 8 + index * RANKED_ROW
        width = max(2.0, room * value / most)
        colour = (colours or {}).get(name, COLOURS[0])
        parts.append(text(RANKED_NAME - 8, y + 15, shortened(name), "end"))
        parts.append(
            f'<rect x="{RANKED_NAME}" y="{y + 3}" width="{width:.1f}" height="{RANKED_ROW - 8}" rx="3" fill="{colour}">'
            f"<title>{escape(name)}: {value:,.0f}</title></rect>"
        )
        parts.append(text(RANKED_NAME + width + 6, y + 15, number(value), "start"))
    return "".join([*parts, "</svg>"])


def shares(values: Sequence[tuple[str, float]], label: str, colours: Colours | None = None) -> str:
    """Return the parts of a whole as one bar, and beneath it every name with its value; empty without values."""
    values = [(name, value) for name, value in values if value > 0]
    total = sum(value for _, value in values)
    if not total:
        return ""
    chosen = palette([name for name, _ in values], colours)
    parts = [frame(label, 44)]
    x = 8.0
    room = WIDTH - 16 - 2 * (len(values) - 1)
    for name, value in values:
        width = room * value / total
        parts.append(
            f'<rect x="{x:.1f}" y="10" width="{max(width, 1):.1f}" height="24" rx="3" fill="{chosen[name]}">'
            f"<title>{escape(name)}: {value:,.0f}</title></rect>"
        )
        x += width + 2
    names = [(name, f"{name} {value:,.0f} ({value / total:.0%})") for name, value in values]
    return "".join([*parts, "</svg>", key_of([(shown, chosen[name]) for name, shown in names])])


def frame(label: str, height: float = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label, quote=True)}" '
        'xmlns="http://www.w3.org/2000/svg">'
    )


def horizontal(top: float) -> list[str]:
    """Return the lines across the plot with their values."""
    parts = []
    for step in range(TICKS + 1):
        value = top * step / TICKS
        y = place(value, 0, top, HEIGHT - BOTTOM, TOP)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(text(LEFT - 6, y + 4, number(value), "end"))
    return parts


def moments(first: float, last: float) -> list[str]:
    """Return the times beneath a plot."""
    parts = []
    for step in range(TICKS + 1 if last > first else 1):
        moment = first + (last - first) * step / TICKS
        anchor = "start" if step == 0 else "end" if step == TICKS else "middle"
        x = place(moment, first, last, LEFT, WIDTH - RIGHT)
        parts.append(text(x, HEIGHT - 8, clock(moment, last - first), anchor if last > first else "middle"))
    return parts


def text(x: float, y: float, content: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def palette(names: Sequence[str], colours: Colours | None) -> dict[str, str]:
    """Return a colour for every name: the one it was given, or the next of the page's."""
    given = colours or {}
    free = [colour for colour in COLOURS if colour not in given.values()] or list(COLOURS)
    chosen: dict[str, str] = {}
    for name in names:
        chosen[name] = given.get(name) or free[sum(each not in given for each in chosen) % len(free)]
    return chosen


def legend(names: list[str], colours: Colours | None = None) -> str:
    if len(names) < 2:
        return ""
    chosen = colours or palette(names, None)
    return key_of([(name, chosen[name]) for name in names])


def key_of(entries: Sequence[tuple[str, str]]) -> str:
    """Return names with their colours."""
    items = "".join(f'<span><i style="background:{colour}"></i>{escape(name)}</span>' for name, colour in entries)
    return f'<p class="legend">{items}</p>'


def place(value: float, low: float, high: float, start: float, end: float) -> float:
    """Return where a value lies between two ends; in the middle when there is only one value."""
    return (start + end) / 2 if high == low else start + (end - start) * (value - low) / (high - low)


def nice(value: float) -> float:
    """Return the next round number, never zero."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(f"{value:.0f}") - 1) if value >= 1 else 0.1
    while power > value:
        power /= 10
    return next(power * factor for factor in (1, 2, 4, 5, 10, 20) if power * factor >= value)


def number(value: float) -> str:
    """Return a value for the side of a plot."""
    for factor, unit, digits in ((1, "", 4), (1e3, "k", 3), (1e6, "M", 3), (1e9, "G", 3), (1e12, "T", 3)):
        rounded = float(f"{value / factor:.{digits}g}")
        if abs(rounded) < 1000:
            return f"{rounded:g}{unit}"
    return f"{value / 1e12:,.0f}T"


def shortened(name: str, length_max: int = 28) -> str:
    return name if len(name) <= length_max else name[: length_max - 1] + "…"


def clock(moment: float, span: float) -> str:
    """Return a time of day, or a day when the plot spans several."""
    when = datetime.fromtimestamp(moment, UTC)
    if span > 2 * 86400:
        return f"{when:%Y-%m-%d}"
    return f"{when:%H:%M}" if span > 3600 else f"{when:%H:%M:%S}"
