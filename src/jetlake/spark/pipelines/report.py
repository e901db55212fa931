"""A page about a pipeline that needs nothing else: no script, no font, no request to anybody.

It begins with what the pipeline has to say about its data (`sections`), goes on with its tables, and ends with how its
batches went. Everything that comes from tables or messages is escaped: a log line may contain what it likes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.sections import Fact, Facts, Part, Plot, ReportSection, Rows
from jetlake.spark.pipelines.state import RunState
from jetlake.spark.pipelines.summary import TableSummary, shown, size

STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --faint: #667281; --line: #e2e7ed; --back: #f4f6f8; --card: #fff;
  --good: #1d8a64; --warning: #b67a08; --bad: #c9314c; --good-soft: #e3f4ed; --warning-soft: #fbf0d9;
  --bad-soft: #fbe6ea }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --faint: #93a0ae; --line: #2b3541; --back: #0f141a; --card: #181f28;
    --good: #4cc39a; --warning: #e2b04a; --bad: #f07489; --good-soft: #14332a; --warning-soft: #3a2f16;
    --bad-soft: #3d1d26 }
}
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: var(--ink);
  background: var(--back); max-width: 74rem; margin: 0 auto; padding: 2rem 1.25rem 3rem }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem 1rem; margin-bottom: 1.2rem }
h1 { font-size: 1.65rem; letter-spacing: -.01em; margin: 0 }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .7rem; letter-spacing: -.005em }
h3 { font-size: .92rem; font-weight: 600; margin: 0 0 .5rem }
p { margin: .2rem 0 } .faint, p.about { color: var(--faint) } p.about { flex-basis: 100% }
.pill { font-size: .78rem; padding: .1rem .6rem; border-radius: 1rem; background: var(--line); color: var(--faint) }
.pill.good { background: var(--good-soft); color: var(--good) }
.pill.warning { background: var(--warning-soft); color: var(--warning) }
.pill.bad { background: var(--bad-soft); color: var(--bad) }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin-bottom: .8rem }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: .8rem 1rem }
.fact span { color: var(--faint); font-size: .82rem } .fact b { display: block; font-size: 1.5rem; line-height: 1.3;
  font-weight: 600; letter-spacing: -.01em; font-variant-numeric: tabular-nums }
.fact.good b { color: var(--good) } .fact.warning b { color: var(--warning) } .fact.bad b { color: var(--bad) }
.grid-of-plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: .8rem }
.grid-of-plots .full { grid-column: 1 / -1 } .part { margin-bottom: .8rem; min-width: 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; width: 100% }
th { color: var(--faint); font-weight: 500 }
th, td { text-align: left; padding: .32rem .7rem .32rem 0; border-bottom: 1px solid var(--line); white-space: nowrap }
tr:last-child td { border-bottom: 0 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
svg { display: block; width: 100%; height: auto } svg text { font-size: 11px; fill: var(--faint) }
svg .grid { stroke: var(--line); vector-effect: non-scaling-stroke }
svg polyline { vector-effect: non-scaling-stroke; stroke-width: 1.8px; stroke-linejoin: round }
.part svg text { font-size: 14.5px } .part.full svg text { font-size: 7.6px }
.legend { margin: .4rem 0 0 } .legend span { margin-right: 1rem; font-size: .82rem; color: var(--faint);
  white-space: nowrap; display: inline-block }
.legend i { display: inline-block; width: .75em; height: .75em; border-radius: .2em; margin-right: .4em }
details { margin: 0 0 .5rem } summary { cursor: pointer; padding: .2rem 0 }
summary b { font-weight: 600 } details[open] summary { margin-bottom: .6rem }
.failed { color: var(--bad) } footer { margin-top: 2.5rem; color: var(--faint); font-size: .82rem }
"""

NUMBERS = {"long", "integer", "double", "float", "short", "byte"}
STATE_TONES = {"running": "good", "finished": "good", "failed": "bad", "died": "bad"}


def page(
    name: str,
    about: str,
    state: RunState | None,
    progress: Sequence[Mapping[str, Any]],
    tables: Sequence[TableSummary],
    sections: Sequence[ReportSection] = (),
) -> str:
    """Return the page."""
    now = datetime.now(UTC)
    status = state.state if state else "never ran"
    body = [
        f'<header><h1>{escape(name)}</h1><span class="pill {STATE_TONES.get(status, "")}">{escape(status)}</span>',
        f'<p class="about">{escape(about)}</p>' if about else "",
        "</header>",
        error(state),
        *(section_of(section) for section in sections),
        "<h2>Tables</h2>" if sections and tables else "",
        *(table_section(table, folded=bool(sections)) for table in tables),
        running(state, progress, tables),
        f"<footer>{escape(name)}, {now:%Y-%m-%d %H:%M:%S} UTC</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def error(state: RunState | None) -> str:
    return f'<p class="failed">{escape(state.error)}</p>' if state is not None and state.error else ""


def section_of(section: ReportSection) -> str:
    """Return one section: facts across the page, plots and rows in a grid."""
    parts = [f"<h2>{escape(section.title)}</h2>"]
    in_grid: list[str] = []
    for part in section.parts:
        if isinstance(part, Facts):
            parts += [*grid(in_grid), facts(part.facts)]
            in_grid = []
        else:
            in_grid.append(part_of(part))
    return "".join([*parts, *grid(in_grid)])


def grid(parts: Sequence[str]) -> list[str]:
    return [f'<div class="grid-of-plots">{"".join(parts)}</div>'] if parts else []


def facts(values: Sequence[Fact]) -> str:
    """Return numbers side by side."""
    cards = "".join(
        f'<div class="card fact {fact.tone}"><span>{escape(fact.label)}</span><b>{escape(fact.value)}</b>'
        f"{f'<span>{escape(fact.note)}</span>' if fact.note else ''}</div>"
        for fact in values
    )
    return f'<div class="facts">{cards}</div>'


def part_of(part: Part) -> str:
    """Return a plot or rows in a card."""
    if isinstance(part, Plot):
        width = "" if part.half else " full"
        return f'<div class="card part{width}"><h3>{escape(part.title)}</h3>{part.svg}</div>' if part.svg else ""
    assert isinstance(part, Rows), "facts are laid out by themselves"
    note = f'<p class="faint">{escape(part.note)}</p>' if part.note else ""
    return f'<div class="card part full"><h3>{escape(part.title)}</h3>{note}{rows_of(part)}</div>'


def rows_of(part: Rows) -> str:
    """Return rows as a table of the page; values with a tone are shown as pills."""
    numeric = [
        bool(part.rows) and all(isinstance(row[index], int | float | None) for row in part.rows)
        for index in range(len(part.columns))
    ]

    def cell(value: Any) -> str:
        tone = part.tone_of(value)
        content = escape(shown(value, part.value_length_max))
        return f'<span class="pill {tone}">{content}</span>' if tone else content

    def row(values: Sequence[Any], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=number' if numeric[index] else ''}>{cell(value)}</{tag}>"
            for index, value in enumerate(values)
        )

    head = row(part.columns, "th")
    body = "".join(f"<tr>{row(values, 'td')}</tr>" for values in part.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def running(state: RunState | None, progress: Sequence[Mapping[str, Any]], tables: Sequence[TableSummary]) -> str:
    """Return how the batches went."""
    values = [Fact("rows in tables", f"{sum(table.rows for table in tables):,}")]
    values.append(Fact("size of tables", size(sum(table.size_bytes for table in tables))))
    if state is not None:
        values.append(Fact("rows read in this run", f"{sum(query.rows for query in state.queries):,}"))
        lags = [query.lag for query in state.queries if query.lag is not None]
        if lags:
            values.append(Fact("lag", f"{max(lags):,}", "warning" if max(lags) else "good"))
    plots = []
    for key, label in (("rows_per_second", "rows per second"), ("batch_ms", "milliseconds per batch"), ("lag", "lag")):
        series: dict[str, list[tuple[float, float]]] = {}
        for line in progress:
            value = line.get(key)
            if isinstance(value, int | float) and isinstance(line.get("at_ms"), int):
                series.setdefault(str(line.get("query", "")), []).append((line["at_ms"] / 1000, float(value)))
        plots.append(part_of(Plot(label, charts.lines(series, label), half=True)))
    return f"<h2>Batches</h2>{facts(values)}{''.join(grid([plot for plot in plots if plot]))}"


def table_section(table: TableSummary, *, folded: bool) -> str:
    """Return one table: numbers, plots, newest rows; folded where the pipeline has said what is in it."""
    numbers = f"{table.rows:,} rows in {table.files:,} files, {size(table.size_bytes)}, version {table.version}"
    plots = []
    if table.series and not folded:
        by = f" by {table.series_name}" if table.series_name else ""
        plots.append(part_of(Plot(f"over time{by}", charts.lines(table.series, f"{table.name} over time"))))
    if len(table.partitions) > 1 and not folded:
        counts = [(name, float(count)) for name, count in table.partitions]
        title = f"by {table.partition_name}"
        plots.append(part_of(Plot(title, charts.bars(counts, f"{table.name} {title}"), half=True)))
    newest = f'<div class="card part full"><h3>newest rows</h3>{rows_table(table)}</div>' if table.newest else ""
    content = "".join(grid([*plots, newest]))
    if folded:
        head = f'<b>{escape(table.name)}</b> <span class="faint">{numbers}</span>'
        return f"<details><summary>{head}</summary>{content}</details>"
    return f'<h2>{escape(table.name)}</h2><p class="faint">{numbers}</p>{content}'


def rows_table(table: TableSummary) -> str:
    """Return rows as a table of the page."""
    numeric = {name for name, kind in table.columns if kind in NUMBERS}
    names = [name for name, _ in table.columns]

    def cell(name: str, value: Any, tag: str) -> str:
        kind = ' class="number"' if name in numeric else ""
        return f"<{tag}{kind}>{escape(shown(value))}</{tag}>"

    head = "".join(cell(name, name, "th") for name in names)
    body = "".join(
        "<tr>" + "".join(cell(name, row.get(name), "td") for name in names) + "</tr>" for row in table.newest
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
