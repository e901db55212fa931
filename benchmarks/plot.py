"""The results as one page with pictures that loads nothing from elsewhere.

Each metric is drawn as two bars on one scale, with every single repeat as a dot, so that a reader sees the noise too.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from benchmarks.figures import Result, Verdict
from benchmarks.report import Setting, number, ratio_text
from benchmarks.servers import JETLAKE, REFERENCE
from benchmarks.workloads import UNITS

BAR_PIXELS = 320
ROW_PIXELS = 18

COLOURS = {JETLAKE: "#0b7285", REFERENCE: "#adb5bd"}

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #212529; }
section { border-top: 1px solid #dee2e6; padding: .5rem 0 1rem; }
h2 { font-size: 1.05rem; margin: .5rem 0; }
table { border-collapse: collapse; }
td { padding: .1rem .8rem .1rem 0; vertical-align: middle; }
.goal { font-size: .85rem; }
.reached { color: #2b8a3e; } .missed { color: #c92a2a; }
.note { color: #495057; font-size: .9rem; }
"""


def page(setting: Setting, results: list[Result]) -> str:
    """Return the whole page."""
    notes = "<br>".join(escape(line) for line in setting.lines())
    legend = " ".join(f'<span style="color:{COLOURS[name]}">■</span> {name}' for name in (JETLAKE, REFERENCE))
    sections = "\n".join(section(result) for result in results)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Jetlake benchmarks</title>\n'
        f"<style>{STYLE}</style>\n<h1>Jetlake and nats-server</h1>\n"
        f'<p class="note">{notes}</p>\n'
        f'<p>{legend} <span class="note">bars are medians, dots single repeats</span></p>\n'
        f"{sections}\n</html>\n"
    )


def section(result: Result) -> str:
    rows = "\n".join(row(result, metric) for metric in result.workload.metrics)
    goals = "".join(goal(verdict) for verdict in result.verdicts())
    return f"<section><h2>{escape(result.workload.title)}</h2><table>{rows}</table>{goals}</section>"


def goal(verdict: Verdict) -> str:
    state = "reached" if verdict.is_reached else "missed"
    return f'<div class="goal {state}">{escape(f"{verdict.goal.metric} {verdict}")}</div>'


def row(result: Result, metric: str) -> str:
    unit = UNITS.get(metric, UNITS.get(metric.rpartition("_")[0], ""))
    return (
        f'<tr><td title="{escape(unit)}">{escape(metric)}</td><td>{bars(result, metric)}</td>'
        f"<td>{escape(ratio_text(result.ratio(metric)))}</td></tr>"
    )


def bars(result: Result, metric: str) -> str:
    """Return the picture of one metric."""
    highest = max(max(result.values(server, metric)) for server in (JETLAKE, REFERENCE)) or 1.0
    parts = []
    for position, server in enumerate((JETLAKE, REFERENCE)):
        top = position * ROW_PIXELS
        median = result.spread(server, metric).median
        parts.append(
            f'<rect x="0" y="{top + 2}" width="{BAR_PIXELS * median / highest:.1f}" height="{ROW_PIXELS - 4}" '
            f'fill="{COLOURS[server]}"/>'
        )
        parts += [
            f'<circle cx="{BAR_PIXELS * value / highest:.1f}" cy="{top + ROW_PIXELS / 2}" r="2" fill="#212529"/>'
            for value in result.values(server, metric)
        ]
        parts.append(f'<text x="{BAR_PIXELS + 8}" y="{top + 13}" font-size="12">{number(median)}</text>')
    width, height = BAR_PIXELS + 100, 2 * ROW_PIXELS
    return f'<svg width="{width}" height="{height}" role="img" aria-label="{escape(metric)}">{"".join(parts)}</svg>'


def write(path: Path, setting: Setting, results: list[Result]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(setting, results), encoding="utf-8")
