"""The measurements of Spark as a table for people, as JSON for programs, and as a page with a chart."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from benchmarks.plot import STYLE
from benchmarks.report import PLAIN_COLUMNS, number
from benchmarks.spark_measure import UNITS, Measurement

if TYPE_CHECKING:
    from benchmarks.report import Setting

BAR_PIXELS = 360
ROW_PIXELS = 22
TITLE_PIXELS = 260
COLOURS = {"jetlake": "#0b7285", "parquet": "#868e96", "nats-server": "#adb5bd"}


def show(setting: Setting, measurements: list[Measurement]) -> None:
    """Print everything: framed on a terminal, plain text when piped."""
    console = Console()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    for line in setting.lines():
        console.print(line, highlight=False)
    table = Table("measurement", "figure", "value", "unit", "goal", box=SIMPLE, pad_edge=False)
    for measurement in measurements:
        for figure, value in measurement.figures.items():
            table.add_row(measurement.title, figure, number(value), UNITS[figure], verdict(measurement, figure))
    console.print(table)


def verdict(measurement: Measurement, figure: str) -> str:
    """Return what became of the aim for a figure, nothing if there is none."""
    for aim in measurement.aims:
        if aim.figure == figure:
            reached = "reached" if aim.is_met_by(measurement.figures[figure]) else "not reached"
            return f"{reached}: {aim.relation} {aim.bound:,g}"
    return ""


def to_json(setting: Setting, measurements: list[Measurement]) -> str:
    return json.dumps(
        {"setting": asdict(setting), "units": UNITS, "measurements": [asdict(one) for one in measurements]}, indent=2
    )


def page(setting: Setting, measurements: list[Measurement]) -> str:
    """Return a page that loads nothing from elsewhere: a chart of the rates, and every figure."""
    notes = "<br>".join(escape(line) for line in setting.lines())
    rows = "".join(
        f"<tr><td>{escape(one.title)}</td><td>{number(value)}</td><td>{escape(UNITS[figure])}</td>"
        f"<td>{escape(verdict(one, figure))}</td></tr>"
        for one in measurements
        for figure, value in one.figures.items()
    )
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Jetlake and Spark</title>\n'
        f"<style>{STYLE}</style>\n<h1>Jetlake and Spark</h1>\n<p class=note>{notes}</p>\n"
        f"<section><h2>Rows per second</h2>{chart(measurements, 'rows_per_s')}</section>\n"
        f"<section><h2>CPU of Spark, µs per row</h2>{chart(measurements, 'cpu_us_per_row')}</section>\n"
        f"<section><table>{rows}</table></section>\n</html>\n"
    )


def chart(measurements: list[Measurement], figure: str) -> str:
    """Return bars of one figure, on one scale."""
    shown = [one for one in measurements if figure in one.figures]
    if not shown:
        return ""
    largest = max(one.figures[figure] for one in shown) or 1.0
    bars = []
    for position, one in enumerate(shown):
        value = one.figures[figure]
        width = value / largest * BAR_PIXELS
        colour = next((colour for name, colour in COLOURS.items() if one.name.startswith(name)), COLOURS["jetlake"])
        top = position * ROW_PIXELS
        bars.append(
            f'<text x="0" y="{top + 15}" font-size="13">{escape(one.title)}</text>'
            f'<rect x="{TITLE_PIXELS}" y="{top + 3}" width="{width:.1f}" height="{ROW_PIXELS - 6}" fill="{colour}"/>'
            f'<text x="{TITLE_PIXELS + width + 6:.1f}" y="{top + 15}" font-size="12">{number(value)}</text>'
        )
    width_pixels, height_pixels = TITLE_PIXELS + BAR_PIXELS + 100, len(shown) * ROW_PIXELS
    return (
        f'<svg width="{width_pixels}" height="{height_pixels}" role="img" '
        f'aria-label="{escape(UNITS[figure])}">{"".join(bars)}</svg>'
    )
