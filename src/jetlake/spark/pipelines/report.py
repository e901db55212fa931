"""A page about a pipeline that needs nothing else: no script, no font, no request to anybody.

Everything that comes from tables or messages is escaped: a log line may contain what it likes.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from jetlake.spark.pipelines import charts
from jetlake.spark.pipelines.state import RunState
from jetlake.spark.pipelines.summary import TableSummary, shown, size

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --faint: #6b7683; --line: #dde3ea; --back: #fff; --card: #f6f8fa }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6eaf0; --faint: #98a3b0; --line: #303a46; --back: #11161c; --card: #1a212a }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin: 0 } h2 { font-size: 1.2rem; margin: 2.2rem 0 .4rem }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem }
p.about, .faint { color: var(--faint) }
.cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0 }
.cards div { background: var(--card); border-radius: .5rem; padding: .6rem 1rem; min-width: 8rem }
.cards b { display: block; font-size: 1.3rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; width: 100% }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
svg { width: 100%; height: auto; background: var(--card); border-radius: .5rem }
svg text { font-size: 11px; fill: var(--faint) } svg .grid { stroke: var(--line) }
.legend span { margin-right: 1rem; font-size: .85rem } .legend i { display: inline-block; width: .8em; height: .8em;
  border-radius: .2em; margin-right: .35em }
.failed { color: #d63864 }
"""


def page(
    name: str,
    about: str,
    state: RunState | None,
    progress: Sequence[Mapping[str, Any]],
    tables: Sequence[TableSummary],
) -> str:
    """Return the page."""
    now = datetime.now(UTC)
    body = [
        f"<h1>{escape(name)}</h1>",
        f'<p class="about">{escape(about)}</p>' if about else "",
        cards(state, tables),
        error(state),
        running(progress),
        *(table_section(table) for table in tables),
        f'<p class="faint">{now:%Y-%m-%d %H:%M:%S} UTC</p>',
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>{STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def cards(state: RunState | None, tables: Sequence[TableSummary]) -> str:
    """Return the numbers at the top."""
    facts = [("state", state.state if state else "never ran")]
    if state is not None:
        facts.append(("rows of this run", f"{sum(query.rows for query in state.queries):,}"))
        lags = [query.lag for query in state.queries if query.lag is not None]
        if lags:
            facts.append(("lag", f"{max(lags):,}"))
    facts.append(("rows in tables", f"{sum(table.rows for table in tables):,}"))
    facts.append(("size", size(sum(table.size_bytes for table in tables))))
    return (
        '<div class="cards">'
        + "".join(f"<div>{escape(key)}<b>{escape(value)}</b></div>" for key, value in facts)
        + "</div>"
    )


def error(state: RunState | None) -> str:
    return f'<p class="failed">{escape(state.error)}</p>' if state is not None and state.error else ""


def running(progress: Sequence[Mapping[str, Any]]) -> str:
    """Return how the batches went."""
    if not progress:
        return ""
    parts = ["<h2>Batches</h2>"]
    for key, label in (("rows_per_second", "rows per second"), ("batch_ms", "milliseconds per batch"), ("lag", "lag")):
        series: dict[str, list[tuple[float, float]]] = {}
        for line in progress:
            value = line.get(key)
            if isinstance(value, int | float) and isinstance(line.get("at_ms"), int):
                series.setdefault(str(line.get("query", "")), []).append((line["at_ms"] / 1000, float(value)))
        plot = charts.lines(dict(series), label)
        if plot:
            parts.append(f"<h3>{escape(label)}</h3>{plot}")
    return "".join(parts)


def table_section(table: TableSummary) -> str:
    """Return one table: numbers, plots, newest rows."""
    numbers = f"{table.rows:,} rows in {table.files:,} files, {size(table.size_bytes)}"
    parts = [
        f"<h2>{escape(table.name)}</h2>",
        f'<p class="faint">{numbers}, {escape(table.kind)} version {table.version}</p>',
    ]
    if table.series:
        by = f" by {table.series_name}" if table.series_name else ""
        parts.append(f"<h3>over time{escape(by)}</h3>{charts.lines(dict(table.series), f'{table.name} over time')}")
    if len(table.partitions) > 1:
        counts = [(name, float(count)) for name, count in table.partitions]
        title = f"by {table.partition_name}"
        parts.append(f"<h3>{escape(title)}</h3>{charts.bars(counts, f'{table.name} {title}')}")
    if table.newest:
        parts.append(f"<h3>newest rows</h3>{rows_table(table)}")
    return "".join(parts)


def rows_table(table: TableSummary) -> str:
    """Return rows as a table of the page."""
    numeric = {name for name, kind in table.columns if kind in {"long", "integer", "double", "float", "short", "byte"}}
    names = [name for name, _ in table.columns]

    def cell(name: str, value: Any, tag: str) -> str:
        kind = ' class="number"' if name in numeric else ""
        return f"<{tag}{kind}>{escape(shown(value))}</{tag}>"

    head = "".join(cell(name, name, "th") for name in names)
    body = "".join(
        "<tr>" + "".join(cell(name, row.get(name), "td") for name in names) + "</tr>" for row in table.newest
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
