"""A small lake for the dashboard's tests: tables of a fleet, and the state of a pipeline that wrote them."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Any

import msgspec

from jetlake.spark.pipelines.state import PipelineFiles, QueryState, RunState

HOSTILE = "<img src=x onerror=alert(1)>"
NOON = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)


def at(minutes: float) -> datetime.datetime:
    return NOON + datetime.timedelta(minutes=minutes)


def node(identity: str, state: str, last_minutes: float) -> dict[str, Any]:
    return {
        "identity": identity,
        "state": state,
        "version": "0.23.0",
        "started_at": at(0),
        "last_event_at": at(last_minutes),
        "registered_at": at(1),
        "starts": 1,
        "lost_sessions": 0,
        "registrations": 1,
        "governor_refusals": 0,
    }


def check(identity: str, name: str, status: str) -> dict[str, Any]:
    return {
        "identity": identity,
        "check": name,
        "status": status,
        "since": at(5),
        "checked_at": at(90),
        "runs": 90,
        "changes": 9,
        "recent_changes": 8,
        "flapping": status == "CRITICAL",
    }


def machine(identity: str, name: str, failed: int) -> dict[str, Any]:
    return {
        "identity": identity,
        "machine": name,
        "state": "running",
        "since": at(5),
        "transitions": 4,
        "runs": 9,
        "failed_runs": failed,
        "last_outcome": "success",
    }


def write_lake(folder: Path) -> Path:
    """Write 60 nodes, their checks and machines, and a pipeline that is running; return the lake."""
    import deltalake
    import pyarrow as pa

    names = [f"node{number:02}" for number in range(57)]
    tables: dict[str, list[dict[str, Any]]] = {
        "nodes": [
            *(node(name, "up", 90) for name in names),
            node("quiet", "up", 10),
            node("gone", "down", 80),
            node(HOSTILE, "up", 90),
        ],
        "sessions": [
            *({"identity": name, "started_at": at(0), "ended_at": None, "end": None, "version": "1"} for name in names),
            {"identity": "gone", "started_at": at(0), "ended_at": at(45), "end": "shutdown", "version": "1"},
        ],
        "checks": [
            check("node01", "disk", "CRITICAL"),
            check("node02", "load", "WARNING"),
            check("node03", HOSTILE, "OK"),
        ],
        "machines": [machine("node01", "backup", 3), machine("node02", "update", 0)],
    }
    for name, rows in tables.items():
        deltalake.write_deltalake(folder / f"fleet_{name}", pa.Table.from_pylist(rows))
    write_pipeline(folder, "fleet", state="running", tables=[f"fleet_{name}" for name in tables], shipped="fleet")
    write_pipeline(folder, "orders", state="failed", error=f"the table is gone: {HOSTILE}")
    return folder


def write_pipeline(lake: Path, name: str, **fields: Any) -> None:
    """Write what a runner leaves of a pipeline."""
    files = PipelineFiles(lake, name)
    files.folder.mkdir(parents=True)
    now_ms = int(time.time() * 1000)
    state = RunState(
        pipeline=name,
        pid=1,
        # Of another machine: alive as long as it was heard from.
        host="elsewhere",
        started_ms=now_ms,
        heartbeat_ms=now_ms + 3_600_000,
        queries=[QueryState(name=f"{name}_query", batch=4, rows=1234, rows_per_second=56.0, batch_ms=78, lag=9)],
        about=f"About {name} {HOSTILE}",
        **fields,
    )
    (files.folder / "state.json").write_bytes(msgspec.json.encode(state))
    for number in range(5):
        line = {"query": "q", "batch": number, "rows": 100, "rows_per_second": 50.0 + number, "batch_ms": 7}
        files.note({**line, "time": f"2026-01-31T12:00:0{number}Z", "at_ms": now_ms - (5 - number) * 1000})
