"""Plots as SVG, written by hand: a page with them asks no other machine for anything.

Two kinds are enough here, lines over time and bars. Each is one string; colours come from the page, so that it may be
light or dark. A library would bring more kinds, and with them scripts or an image renderer in every installation.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape

WIDTH, HEIGHT = 720, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28
COLOURS = ("#2f6fde", "#e0662f", "#2b9a66", "#a44fc4", "#c9a20c", "#d63864", "#168aad", "#7a7f87")
TICKS = 4
BARS_MAX = 60

Points = Sequence[tuple[float, float]]


def lines(series: dict[str, Points], label: str) -> str:
    """Return a plot of values over time (seconds since 1970), one line per name; empty without points."""
    points = [point for values in series.values() for point in values]
    if not points:
        return ""
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    top = nice(max(y for _, y in points))
    parts = [frame(label), *horizontal(top)]
    for step in range(TICKS + 1):
        moment = first + (last - first) * step / TICKS
        anchor = "start" if step == 0 else "end" if step == TICKS else "middle"
        x = place(moment, first, last, LEFT, WIDTH - RIGHT)
        parts.append(text(x, HEIGHT - 8, clock(moment, last - first), anchor))
    for index, values in enumerate(series.values()):
        colour = COLOURS[index % len(COLOURS)]
        path = " ".join(
            f"{place(x, first, last, LEFT, WIDTH - RIGHT):.1f},{place(y, 0, top, HEIGHT - BOTTOM, TOP):.1f}"
            for x, y in values
        )
        if len(values) == 1:
            across, up = path.split(",")
            parts.append(f'<circle cx="{across}" cy="{up}" r="3" fill="{colour}"/>')
        else:
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    return "".join([*parts, "</svg>", legend(list(series))])


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
            f'fill="{COLOURS[0]}"><title>{escape(name)}: {value:,.0f}</title></rect>'
        )
        if index % every == 0:
            parts.append(text(x + slot / 2, HEIGHT - 8, name, "middle"))
    return "".join([*parts, "</svg>"])


def frame(label: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label, quote=True)}" '
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


def text(x: float, y: float, content: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def legend(names: list[str]) -> str:
    if len(names) < 2:
        return ""
    items = "".join(
        f'<span><i style="background:{COLOURS[index % len(COLOURS)]}"></i>{escape(name)}</span>'
        for index, name in enumerate(names)
    )
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
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:g}{unit}"
    return f"{value:g}"


def clock(moment: float, span: float) -> str:
    """Return a time of day, or a day when the plot spans several."""
    when = datetime.fromtimestamp(moment, UTC)
    return f"{when:%Y-%m-%d}" if span > 2 * 86400 else f"{when:%H:%M:%S}"
