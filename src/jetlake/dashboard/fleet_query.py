"""`fleet_query`: one page of the fleet's tables as SQL, with the figures of the whole fleet in each row.

Used by helpers only: the rules of the pipeline `fleet` come with Arrow.

"Now" is the newest event, as in the report of the pipeline: a fleet that was simulated is shown as it was then. The
answer has at least one row, for the figures; its first column is NULL if no row of the list matches.
"""

from jetlake.dashboard.helpers import FleetTask
from jetlake.errors import ConfigurationError
from jetlake.spark.pipelines.fleet.report import SILENT_S

__all__ = ["fleet_query"]

VIEWS = {
    "nodes": """
        SELECT n.identity, n.state, n.version, n.last_event_at, n.starts, n.lost_sessions,
            CASE WHEN u.known_s > 0 THEN round(100 * least(1, u.up_s / u.known_s), 2) END AS availability,
            CASE n.state WHEN 'silent' THEN 0 WHEN 'down' THEN 1 ELSE 2 END AS rank, n.identity AS sorted
        FROM nodes n LEFT JOIN up u USING (identity)""",
    "checks": """
        SELECT identity, "check", status, since, checked_at, runs, changes, flapping,
            CASE status WHEN 'CRITICAL' THEN 0 WHEN 'UNKNOWN' THEN 1 WHEN 'WARNING' THEN 2 ELSE 3 END AS rank,
            identity AS sorted
        FROM checks""",
    "machines": """
        SELECT identity, machine, state, since, transitions, runs, failed_runs, last_outcome,
            CASE WHEN failed_runs > 0 THEN 0 ELSE 1 END AS rank, identity AS sorted
        FROM lake.{machines}""",
}
"""By view, its rows; `rank` has what needs a look first."""

QUERY = """
    WITH moment AS (SELECT max(last_event_at) AS now FROM lake.{nodes}),
    nodes AS (
        SELECT * REPLACE (
            CASE WHEN state = 'up' AND epoch(now) - epoch(last_event_at) > {silent_s} THEN 'silent' ELSE state END
            AS state
        ) FROM lake.{nodes}, moment
    ),
    up AS (
        SELECT identity, sum(epoch(coalesce(ended_at, now)) - epoch(started_at)) AS up_s,
            max(epoch(now)) - min(epoch(started_at)) AS known_s
        FROM lake.{sessions}, moment WHERE started_at IS NOT NULL GROUP BY identity
    ),
    checks AS (
        SELECT c.* FROM lake.{checks} c WHERE identity NOT IN (SELECT identity FROM nodes WHERE state = 'down')
    ),
    figures AS (
        SELECT (SELECT max(now) FROM moment) AS fleet_now, count(*) AS fleet_nodes,
            count(*) FILTER (WHERE state = 'up') AS fleet_up, count(*) FILTER (WHERE state = 'silent') AS fleet_silent,
            count(*) FILTER (WHERE state = 'down') AS fleet_down,
            (SELECT count(*) FROM checks WHERE status = 'CRITICAL') AS fleet_critical,
            (SELECT count(*) FROM checks WHERE status IN ('WARNING', 'UNKNOWN')) AS fleet_warnings,
            (SELECT count(*) FROM lake.{machines}) AS fleet_machines
        FROM nodes
    ),
    listed AS ({rows}),
    matching AS (SELECT * FROM listed WHERE contains(lower({searched}), lower({text}))),
    page AS (SELECT * FROM matching ORDER BY rank, sorted LIMIT {rows_max} OFFSET {offset})
    SELECT page.* EXCLUDE (rank, sorted), figures.*, (SELECT count(*) FROM matching) AS list_count,
        (SELECT count(*) FROM listed) AS list_total
    FROM figures LEFT JOIN page ON true ORDER BY page.rank, page.sorted
"""

SEARCHED = {
    "nodes": "identity",
    "checks": "concat_ws(' ', identity, \"check\", status)",
    "machines": "concat_ws(' ', identity, machine, state)",
}
"""What of a row the filter looks at."""


def fleet_query(task: FleetTask) -> str:
    """Return the query. Raises `ConfigurationError` for a view that there is not."""
    if task.view not in VIEWS:
        raise ConfigurationError(f"there is no view {task.view} of the fleet: use {', '.join(VIEWS)}")
    names = {name: _quoted(f"{task.prefix}_{name}") for name in ("nodes", "sessions", "checks", "machines")}
    text = task.text.replace("'", "''")
    return QUERY.format(
        **names,
        silent_s=SILENT_S,
        rows=VIEWS[task.view].format(**names),
        searched=SEARCHED[task.view],
        text=f"'{text}'",
        rows_max=int(task.rows_max),
        offset=int(task.offset),
    )


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
