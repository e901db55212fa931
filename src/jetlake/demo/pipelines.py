"""The shipped pipelines on a local Spark, over what the simulators have published, compared with their accounts.

They run like `jetlake pipeline run … --once`, in a separate process: Spark's threads and signals stay out of the demo,
and its Java ends with that process.

Invariant: when the stage is left, neither the process nor anything that it started is running.
"""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.demo.scene import PageLink, Scene, ScenePart, Script
from jetlake.demo.stage import Stage
from jetlake.errors import ClientError, MissingDependencyError
from jetlake.shared.held_signals import held_signals

if TYPE_CHECKING:
    from jetlake.spark.pipelines.state import RunState
    from jetlake.spark.pipelines.summary import TableSummary

__all__ = ["SCRIPTS"]

PIPELINES = ("fleet", "devices", "dead")
"""Each reads what the scene of its name has left."""

STOP_S_MAX = 2.0
"""How long a run that is interrupted may take to end by itself; killed, it loses nothing."""

END_S_MAX = 30.0
"""How long Java may take to end; the first one on a machine writes an archive of its classes then."""

POLL_S = 0.05
LOG_SHOWN_CHARACTERS = 600
CELL_CHARACTERS_MAX = 36

SHOWN = {
    "fleet_nodes": ("identity", "state", "version", "starts", "registrations"),
    "fleet_checks": ("identity", "check", "status", "runs", "changes", "flapping"),
    "device_resources": ("device_id", "href", "value", "version"),
    "device_commands": ("device_id", "href", "kind", "outcome", "latency_ms"),
    "dead_reasons": ("stream", "consumer", "cause", "letters"),
}
"""Tables of which the demo shows some rows, and the columns it shows."""

ROWS_SHOWN = 3


def _pipelines(stage: Stage, scene: Scene) -> None:
    _check_spark()
    names = [name for name in PIPELINES if name in stage.truths]
    _run(stage, names)
    for name in names:
        _show(stage, scene, name)


def _check_spark() -> None:
    """Refuse what cannot run here. Raises `MissingDependencyError`."""
    from jetlake.spark.java import find_java

    for module in ("pyspark", "pyarrow", "deltalake"):
        try:
            is_there = find_spec(module) is not None
        except ValueError:
            is_there = False
        if not is_there:
            raise MissingDependencyError(f"pipelines need the package {module}: run `pip install 'jetlake[spark]'`")
    find_java()


def _run(stage: Stage, names: list[str]) -> None:
    """Run pipelines once, and tell how they do. Raises `ClientError`."""
    log = stage.folder / "pipelines.log"
    words = ["pipeline", "run", *names, "--once", "--json", "--lake", str(stage.lake)]
    stage.tell("starting Spark")
    with log.open("wb") as errors, _process(stage, words, errors) as (process, started):
        assert process.stdout is not None
        for line in process.stdout:
            # While it runs: a child that outlives it gets another parent.
            started.update(descendants(process.pid))
            state = msgspec.json.decode(line)
            rows = sum(query["rows"] for query in state["queries"])
            stage.tell(f"{state['pipeline']} {state['state']}, {rows:,} rows read")
        code = process.wait()
    if code:
        end = log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_SHOWN_CHARACTERS:]
        raise ClientError(f"`jetlake {' '.join(words)}` ended with {code}: {end}; see {log}")


@contextmanager
def _process(stage: Stage, words: list[str], errors: Any) -> "Iterator[tuple[subprocess.Popen[bytes], set[int]]]":
    """Run a command of `jetlake`, and end it with the block. The stage waits for the processes in the set."""
    # Ignore connections that the user has configured for other servers.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NATS_")}
    started: set[int] = set()
    with held_signals():
        process = subprocess.Popen(
            [sys.executable, "-m", "jetlake", *words, "--server", stage.url, "--no-context"],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            # Ctrl-C is for the demo, which ends this process itself.
            start_new_session=True,
        )
        # Called in reverse: it is stopped, then what it has started is waited for.
        stage.endings.callback(_wait_for_end, started)
        stage.endings.callback(_stop, process, started)
    try:
        yield process, started
    finally:
        _stop(process, started)


def _stop(process: "subprocess.Popen[bytes]", started: set[int]) -> None:
    """End a command, and note what it has started; harmless when repeated."""
    started.update(descendants(process.pid))
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def descendants(pid: int) -> set[int]:
    """Return the processes that a process has started, and those that they have; none where there is no /proc."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name in parentheses may contain anything; the state and the parent follow it.
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    found: set[int] = set()
    generation = {pid}
    while generation:
        generation = {child for child, parent in parents.items() if parent in generation} - found
        found |= generation
    return found


def _wait_for_end(pids: set[int]) -> None:
    """Wait until Java has ended: it does so when its standard input is closed, by the end of what started it."""
    deadline_s = time.monotonic() + END_S_MAX
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline_s:
        time.sleep(POLL_S)


def _show(stage: Stage, scene: Scene, name: str) -> None:
    """Show the tables of a pipeline, compare them with the truth, and write its report."""
    from jetlake.spark.lake.folder import Lake
    from jetlake.spark.pipelines import report
    from jetlake.spark.pipelines.catalog import report_of
    from jetlake.spark.pipelines.sections import Tables
    from jetlake.spark.pipelines.state import PipelineFiles
    from jetlake.spark.pipelines.summary import summarize

    lake, files = Lake(stage.lake), PipelineFiles(stage.lake.absolute(), name)
    state = files.status()
    assert state is not None, "a run that has ended well has left its state"
    tables = [table for table in (summarize(lake, each) for each in state.tables) if table is not None]
    for table in tables:
        scene.rows.append((name, table.name, table.rows))
        if table.name in SHOWN and table.newest:
            scene.parts.append(_part(table))
    reported = report_of(name)
    sections = reported(Tables(lake, state.tables)) if reported is not None else []
    path = stage.folder / f"{name}.html"
    path.write_text(report.page(name, state.about, state, files.progress(), tables, sections), encoding="utf-8")
    scene.links.append(PageLink(f"report of the pipeline {name}", path.name))
    _check(stage, scene, state, {table.name: table.rows for table in tables})


def _part(table: "TableSummary") -> ScenePart:
    from jetlake.spark.pipelines.summary import shown

    columns = SHOWN[table.name]
    rows = [tuple(shown(row.get(column), CELL_CHARACTERS_MAX) for column in columns) for row in table.newest]
    return ScenePart(f"{table.name}: {min(ROWS_SHOWN, len(rows))} of {table.rows:,} rows", columns, rows[:ROWS_SHOWN])


def _check(stage: Stage, scene: Scene, state: "RunState", rows: dict[str, int]) -> None:
    """Compare the sizes of tables with what a simulator, or a scene, knows to have happened."""
    truth = stage.truths[state.pipeline]
    expected: dict[str, int] = {f"{state.pipeline}_bad": 0}
    if state.pipeline == "fleet":
        counts = Counter(truth["counts"])
        nodes = truth["nodes"].values()
        expected |= {
            "fleet_nodes": len(nodes),
            "fleet_sessions": sum(node["starts"] for node in nodes),
            "fleet_checks": sum(len(node["checks"]) for node in nodes),
            "fleet_transitions": counts["transition"],
            "fleet_leases": counts["governor.enter"],
        }
    elif state.pipeline == "devices":
        expected |= {
            "device_changes": truth["events"]["ResourceChanged"],
            "device_sessions": truth["sessions"],
        }
    else:
        expected |= {"dead_letters": truth["letters"]}
    scene.check(f"the pipeline {state.pipeline}", expected="finished", found=state.state)
    for table, count in expected.items():
        scene.check(f"rows of {table} as simulated", expected=count, found=rows.get(table, 0))


SCRIPTS = (
    Script(
        "pipelines",
        "Pipelines into tables",
        "Three pipelines that ship with Jetlake read what is in the streams by now, on Spark in a process of its own, "
        "and write Delta tables: the fleet, the devices, the dead letters.",
        ("pipeline", "table", "rows"),
        _pipelines,
    ),
)
