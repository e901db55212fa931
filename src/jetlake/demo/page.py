"""The scenes as one HTML page that needs nothing else: no script, no font, no request to anybody.

Invariant: every text that comes from outside this module is escaped.
"""

import re
from collections.abc import Sequence
from html import escape

from jetlake.demo.scene import Cell, ClaimCheck, Scene, ScenePart

__all__ = ["page_of"]

STYLE = """
:root { color-scheme: light dark; --ink: #14263a; --faint: #5b6b7b; --line: #dde6ed; --back: #f3f7fa; --card: #fff;
  --water: #2484bd; --good: #17805c; --good-soft: #e2f4ec; --bad: #c22b46; --bad-soft: #fbe6ea; --code: #eaf1f6 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --faint: #94a3b3; --line: #263646; --back: #0d151d; --card: #16212c; --water: #3aa0dc;
    --good: #52c79d; --good-soft: #12332a; --bad: #f07489; --bad-soft: #3d1d26; --code: #1e2c39 }
}
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif }
header { background: linear-gradient(120deg, #0a3350, #1f7fb8); color: #fff; padding: 2.6rem 0 2.2rem }
header > div, main { max-width: 66rem; margin-inline: auto }
h1 { margin: 0; font-size: 2.2rem; letter-spacing: -.02em }
header > div { padding-inline: 1.25rem } header p { margin: .35rem 0 0; opacity: .88 }
header .state { display: inline-block; margin-top: 1rem; padding: .25rem .8rem; border-radius: 1rem; font-weight: 600;
  background: rgb(255 255 255 / .16) }
header .state.bad { background: var(--bad) }
main { padding: 1.4rem 1.25rem 3rem }
nav { display: flex; flex-wrap: wrap; gap: .45rem; margin-bottom: 1.4rem }
nav a { padding: .25rem .75rem; border: 1px solid var(--line); border-radius: 1rem; background: var(--card);
  color: inherit; text-decoration: none; font-size: .88rem }
nav a:hover { border-color: var(--water) }
section { background: var(--card); border: 1px solid var(--line); border-radius: .8rem; padding: 1.2rem 1.4rem;
  margin-bottom: 1.1rem; scroll-margin-top: 1rem }
h2 { margin: 0; font-size: 1.18rem; display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .7rem }
h2 small { font-weight: 400; font-size: .82rem; color: var(--faint) }
h3 { margin: 1.3rem 0 .3rem; font-size: .9rem; font-weight: 600; overflow-wrap: anywhere }
section > p { margin: .3rem 0 .9rem; color: var(--faint); max-width: 54rem; overflow-wrap: anywhere }
.pill { font-size: .76rem; font-weight: 500; padding: .1rem .6rem; border-radius: 1rem; background: var(--line) }
.pill.good { background: var(--good-soft); color: var(--good) } .pill.bad { background: var(--bad-soft);
  color: var(--bad) }
.wide { overflow-x: auto }
table { border-collapse: collapse; min-width: min(100%, 30rem); font-size: .93rem } table.bars { width: 100% }
th, td { text-align: left; padding: .38rem 1.6rem .38rem 0; border-top: 1px solid var(--line); white-space: nowrap }
th { border-top: 0; font-weight: 500; color: var(--faint); font-size: .85rem }
td:last-child, th:last-child { padding-right: 0 }
.number { text-align: right; font-variant-numeric: tabular-nums }
.bar { width: 36%; min-width: 5rem } .bar i { display: block; height: .75rem; border-radius: .4rem;
  background: var(--water); min-width: 2px }
details { margin-top: .9rem; font-size: .88rem } summary { cursor: pointer; color: var(--faint) }
details ul { margin: .5rem 0 0; padding-left: 1.2rem } details li { overflow-wrap: anywhere }
li.bad { color: var(--bad); font-weight: 600 }
code { background: var(--code); padding: .08em .35em; border-radius: .3em; font-size: .9em;
  font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace }
pre { background: var(--code); border-radius: .5rem; padding: .8rem 1rem; overflow-x: auto; margin: .6rem 0 0;
  font: .88rem/1.6 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace }
.links a { color: var(--water); margin-right: 1.2rem; display: inline-block }
.failure { color: var(--bad); overflow-wrap: anywhere }
@media (max-width: 40rem) {
  header { padding: 1.8rem 0 1.5rem } main { padding: 1rem .8rem 2rem } section { padding: 1rem }
  h1 { font-size: 1.8rem } .bar { display: none } td:not(.number, :first-child) { white-space: normal }
  th, td { padding-right: .9rem } table { width: 100% }
}
"""

CELL_CHARACTERS_MAX = 120
"""A longer value would push everything else of its row away; the whole value is where it came from."""

CHECK_CHARACTERS_MAX = 160


def page_of(headline: str, scenes: Sequence[Scene], commands: Sequence[str]) -> str:
    """Return the page about these scenes, with commands to try next."""
    checks = [check for scene in scenes for check in scene.checks]
    failed = next((scene for scene in scenes if scene.failure), None)
    state = (
        f'<span class="state bad">failed: {escape(failed.title)}</span>'
        if failed is not None
        else f'<span class="state">{len(checks)} check{"s hold" if len(checks) != 1 else " holds"}</span>'
    )
    links = "".join(f'<a href="#{escape(scene.name)}">{escape(scene.title)}</a>' for scene in scenes)
    more = '<a href="#next">Try it yourself</a>' if commands else ""
    sections = "\n".join(section_of(scene) for scene in scenes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Jetlake at work</title><style>{STYLE}</style></head><body>
<header><div><h1>Jetlake at work</h1><p>{escape(headline)}</p>{state}</div></header>
<main><nav>{links}{more}</nav>
{sections}
{next_of(commands)}
</main></body></html>
"""


def section_of(scene: Scene) -> str:
    """Return one scene: its table, its other tables, its links, and what was checked."""
    title = f"{escape(scene.title)} {pill_of(scene)}<small>{scene.seconds:.1f} s</small>"
    parts = [f'<section id="{escape(scene.name)}"><h2>{title}</h2>', f"<p>{prose(scene.explanation)}</p>"]
    if scene.failure:
        parts.append(f'<p class="failure">{escape(scene.failure)}</p>')
    if scene.missing:
        parts.append(f"<p>Not shown: {prose(scene.missing)}</p>")
    if scene.rows:
        parts.append(table_of(scene.columns, scene.rows, bars=scene.bars))
    parts += [part_of(part) for part in scene.parts]
    if scene.links:
        found = "".join(f'<a href="{escape(link.file)}">{escape(link.text)}</a>' for link in scene.links)
        parts.append(f'<p class="links">{found}</p>')
    if scene.checks:
        parts.append(checks_of(scene))
    return "".join([*parts, "</section>"])


def pill_of(scene: Scene) -> str:
    if scene.failure:
        return '<span class="pill bad">failed</span>'
    if scene.missing:
        return '<span class="pill">not shown</span>'
    count = len(scene.checks)
    return f'<span class="pill good">{count} check{"" if count == 1 else "s"}</span>'


def part_of(part: ScenePart) -> str:
    return f"<h3>{escape(part.title)}</h3>{table_of(part.columns, part.rows)}"


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, bars: bool = False) -> str:
    """Return a table; with `bars` the last column of numbers is drawn, too."""
    is_number = [all(isinstance(row[place], int | float) for row in rows) for place in range(len(columns))]
    heads = "".join(
        f"<th{' class=number' if number else ''}>{escape(column)}</th>"
        for column, number in zip(columns, is_number, strict=True)
    )
    largest = max((float(row[-1]) for row in rows), default=0.0) if bars else 0.0
    lines = []
    for row in rows:
        cells = "".join(
            f"<td{' class=number' if number else ''}>{escape(text_of(cell))}</td>"
            for cell, number in zip(row, is_number, strict=True)
        )
        if largest > 0:
            cells += f'<td class="bar"><i style="width:{100 * float(row[-1]) / largest:.0f}%"></i></td>'
        lines.append(f"<tr>{cells}</tr>")
    head = f"{heads}{'<th class=bar></th>' if largest > 0 else ''}"
    return (
        f'<div class="wide"><table{" class=bars" if largest > 0 else ""}><tr>{head}</tr>{"".join(lines)}</table></div>'
    )


def checks_of(scene: Scene) -> str:
    """Return what was compared with the truth; open if something does not hold."""
    items = "".join(item_of(check) for check in scene.checks)
    return f"<details{' open' if scene.failure else ''}><summary>What was checked</summary><ul>{items}</ul></details>"


def item_of(check: ClaimCheck) -> str:
    found, expected = (escape(_cut(text_of(value), CHECK_CHARACTERS_MAX)) for value in (check.found, check.expected))
    if check.holds:
        return f"<li>{escape(check.claim)}: <code>{found}</code></li>"
    return f"<li class=bad>{escape(check.claim)}: <code>{found}</code> instead of <code>{expected}</code></li>"


def next_of(commands: Sequence[str]) -> str:
    if not commands:
        return ""
    return f'<section id="next"><h2>Try it yourself</h2><pre>{escape(chr(10).join(commands))}</pre></section>'


def text_of(cell: Cell) -> str:
    """Return a value for a person."""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.2f}" if isinstance(cell, float) else _cut(cell, CELL_CHARACTERS_MAX)


def prose(text: str) -> str:
    """Return a text for the page; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _cut(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"
