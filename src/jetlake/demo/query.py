"""SQL over a stream and over the tables of a lake, answered by DuckDB in this process.

Invariant: each answer is compared with the same figures computed from what was published.
"""

from collections import Counter

from jetlake.demo.durability import COUNTRIES, ORDERS_COUNT, order
from jetlake.demo.scene import Cell, Scene, ScenePart, Script
from jetlake.demo.stage import Stage

__all__ = ["NODES_QUERY", "SCRIPTS", "SUBJECTS_QUERY"]

ORDERS_COLUMNS = "country STRING, amount BIGINT"
ORDERS_QUERY = (
    "SELECT value.country AS country, count(*) AS orders, sum(value.amount)::BIGINT AS total "
    "FROM streams.orders GROUP BY ALL ORDER BY total DESC, country"
)
SUBJECTS_QUERY = "SELECT subject, count(*) FROM streams.orders GROUP BY subject"
NODES_QUERY = "SELECT state, version, count(*) AS nodes FROM lake.fleet_nodes GROUP BY ALL ORDER BY ALL"


def _query(stage: Stage, scene: Scene) -> None:
    rows = _answer(stage, ORDERS_QUERY)
    scene.rows += rows
    numbers = [order(number) for number in range(ORDERS_COUNT)]
    total = sum(int(each["amount"]) for each in numbers)
    scene.check("countries that ordered", expected=len(COUNTRIES), found=len(rows))
    scene.check("orders counted", expected=ORDERS_COUNT, found=sum(int(row[1]) for row in rows))
    scene.check("the sum of all orders", expected=total, found=sum(int(row[2]) for row in rows))
    if not (stage.lake / "fleet_nodes").is_dir():
        return
    rows = _answer(stage, NODES_QUERY)
    scene.parts.append(ScenePart(NODES_QUERY, ("state", "version", "nodes"), rows))
    nodes = stage.truths["fleet"]["nodes"].values()
    # A node that has crashed is taken to be up until it starts again: it could not say anything.
    is_up = {"up": "up", "crashed": "up", "down": "down", "gone": "down"}
    expected = Counter((is_up[node["state"]], node["version"]) for node in nodes)
    found = Counter({(str(state), str(version)): int(count) for state, version, count in rows})
    scene.check("groups of nodes as simulated", expected=_text(expected), found=_text(found))


def _text(groups: "Counter[tuple[str, str]]") -> str:
    return ", ".join(f"{state} {version}: {count}" for (state, version), count in sorted(groups.items()))


def _answer(stage: Stage, query: str) -> list[tuple[Cell, ...]]:
    from jetlake.sql.duck import DuckEngine
    from jetlake.sql.sources import Sources
    from jetlake.sql.values import rows_of

    sources = Sources({"url": stage.url}, stage.lake.absolute())
    with DuckEngine(sources, ORDERS_COLUMNS if query == ORDERS_QUERY else "") as engine:
        answer = engine.ask(query)
        return [tuple(row.values()) for batch in answer.batches for row in rows_of(batch)]


SCRIPTS = (
    Script(
        "sql",
        "SQL over a stream",
        f"`{ORDERS_QUERY}`. DuckDB answers in this process, without Spark.",
        ("country", "orders", "total"),
        _query,
        bars=True,
    ),
)
