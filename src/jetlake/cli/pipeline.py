"""`jetlake pipeline`: pipelines from streams to tables."""

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

from jetlake.cli.interrupts import ended_by_interrupt
from jetlake.cli.pipeline_run import STATUS_COLUMNS, Phases, check_pyspark, run_pipelines, status_rows, table_of
from jetlake.cli.spark_options import connection_options, key_values
from jetlake.errors import JetlakeError

if TYPE_CHECKING:
    from jetlake.spark.pipelines.model import Pipeline
    from jetlake.spark.pipelines.sections import ReportSection
    from jetlake.spark.pipelines.state import PipelineFiles, RunState
    from jetlake.spark.pipelines.summary import TableSummary
    from jetlake.spark.pipelines.validation import ValidationResult

application = typer.Typer(help="Run pipelines from streams to tables.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="A name that `ls` shows, or a file.", metavar="NAME")]
NamesArgument = Annotated[list[str], typer.Argument(help="Names that `ls` shows, or files.", metavar="NAME...")]
SomeNamesArgument = Annotated[
    list[str] | None, typer.Argument(help="Only these; all unless given.", metavar="[NAME...]")
]
LakeOption = Annotated[Path, typer.Option(envvar="JETLAKE_LAKE", help="Folder of the tables.")]
FolderOption = Annotated[Path, typer.Option(envvar="JETLAKE_PIPELINES", help="Folder of the definitions.")]
MasterOption = Annotated[str, typer.Option(help="Where Spark runs: local[*], or a cluster such as spark://host:7077.")]
SettingOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting of a pipeline that ships, such as stream=ORDERS.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

VALIDATE_PHASES = 2

DEFAULT_LAKE = Path("lake")
DEFAULT_DEFINITIONS = Path("pipelines")

STOP_S_MAX = 90.0
"""How long `stop` waits for the batch at hand."""

LINE_S = 1.0
"""Between two lines about a pipeline that goes on as before, where there is no terminal."""


@application.callback()
def pipeline() -> None:
    """Pipelines from streams to tables: some ship, others are YAML or Python files in a folder."""


@application.command("ls")
def list_all(
    lake: LakeOption = DEFAULT_LAKE, folder: FolderOption = DEFAULT_DEFINITIONS, as_json: JsonOption = False
) -> None:
    """List the pipelines and their state. Ends with 1 when a definition cannot be read."""
    from jetlake.spark.pipelines.catalog import Catalog
    from jetlake.spark.pipelines.state import PipelineFiles

    with _refusals("ls"):
        entries = Catalog(folder).entries()
    found: list[dict[str, Any]] = []
    for entry in entries:
        made = entry.pipeline
        state = PipelineFiles(lake.absolute(), entry.name).status()
        found.append(
            {
                "name": entry.name,
                "from": _inputs(made) if made else "",
                "to": ", ".join(output.name for output in made.outputs) if made else "",
                "trigger": made.trigger if made else "",
                "state": state.state if state else "",
                "about": entry.problem or (made.about if made else ""),
                "origin": entry.origin,
                "good": made is not None,
            }
        )
    if as_json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        columns = ("name", "from", "to", "trigger", "state", "about")
        _print_table(columns, [tuple(str(row[column]) for column in columns) for row in found])
    if not all(row["good"] for row in found):
        raise typer.Exit(1)


@application.command()
def run(
    names: NamesArgument,
    once: Annotated[bool, typer.Option("--once", help="Process what is there now, then stop.")] = False,
    settings: SettingOption = None,
    lake: LakeOption = DEFAULT_LAKE,
    folder: FolderOption = DEFAULT_DEFINITIONS,
    master: MasterOption = "local[*]",
    conf: Annotated[
        list[str] | None, typer.Option(help="A setting of Spark, such as spark.executor.memory=4g.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run pipelines until Ctrl-C, `stop`, or with --once until all is done.

    Ends with 0 when all went well, 1 when one failed, 2 when the command is wrong.
    """
    from jetlake.spark.lake.folder import Lake
    from jetlake.spark.pipelines.state import PipelineFiles

    with _refusals("run"):
        check_pyspark()
        pipelines = _find(names, folder, settings)
        place = Lake(lake)
        # A session takes seconds to start; what can be refused without one is refused before.
        for made in pipelines:
            PipelineFiles(place.folder, made.name).check_free()
        spark_settings = key_values("--conf", conf or (), "spark.executor.memory=4g")
        states = run_pipelines(pipelines, place, master, spark_settings, once=once, as_json=as_json)
    for state in states:
        if state.state == "failed":
            typer.echo(f"jetlake pipeline run: {state.pipeline} failed: {state.error}", err=True)
    if any(state.state == "failed" for state in states):
        raise typer.Exit(1)


@application.command()
def status(names: SomeNamesArgument = None, lake: LakeOption = DEFAULT_LAKE, as_json: JsonOption = False) -> None:
    """Show how pipelines are doing. Ends with 1 when one has failed or died, or never ran."""
    from jetlake.spark.pipelines.state import PipelineFiles, known

    there = known(lake.absolute())
    states = []
    with _refusals("status"):
        for name in names or there:
            state = PipelineFiles(lake.absolute(), name).status()
            if state is None:
                _refuse_unknown(name, there, lake)
            else:
                states.append(state)
    if as_json:
        typer.echo(msgspec.json.encode(states).decode())
    else:
        _print_table(STATUS_COLUMNS, [row for state in states for row in status_rows(state)])
        for state in states:
            if state.error:
                typer.echo(f"{state.pipeline}: {state.error}", err=True)
    if any(state.state in ("failed", "died") for state in states):
        raise typer.Exit(1)


@application.command()
def stop(
    names: NamesArgument,
    wait: Annotated[bool, typer.Option(help="Wait until they have stopped.")] = True,
    lake: LakeOption = DEFAULT_LAKE,
    as_json: JsonOption = False,
) -> None:
    """Stop pipelines after their current batch. Ends with 1 when one does not run or does not end."""
    from jetlake.spark.pipelines.state import PipelineFiles, known

    results = []
    with _refusals("stop"):
        asked = []
        for name in names:
            files = PipelineFiles(lake.absolute(), name)
            state = files.status()
            if state is None:
                _refuse_unknown(name, known(lake.absolute()), lake)
            elif state.state in ("starting", "running", "stopping"):
                files.ask_to_stop()
                asked.append(files)
            else:
                results.append({"pipeline": name, "state": state.state, "was_running": False})
        deadline = time.monotonic() + (STOP_S_MAX if wait else 0)
        results += [_wait_for_end(files, deadline) for files in asked]
    if as_json:
        typer.echo(msgspec.json.encode(results).decode())
    else:
        _print_table(("pipeline", "state"), [(str(row["pipeline"]), str(row["state"])) for row in results])
    good = ("stopped", "finished") if wait else ("stopped", "finished", "starting", "running", "stopping")
    if any(not row["was_running"] or row["state"] not in good for row in results):
        raise typer.Exit(1)


@application.command()
def show(
    name: NameArgument,
    html: Annotated[Path | None, typer.Option(help="Where to write the page; beside the state unless given.")] = None,
    lake: LakeOption = DEFAULT_LAKE,
    folder: FolderOption = DEFAULT_DEFINITIONS,
    as_of: Annotated[
        str, typer.Option(help="As the tables were: a version, a time, or `10 minutes ago`.", metavar="VERSION|TIME")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Show what is in the tables of a pipeline, and write a page about it that needs nothing else."""
    from jetlake.spark.lake.as_of import parse_as_of
    from jetlake.spark.pipelines import showing
    from jetlake.spark.pipelines.state import PipelineFiles

    with _refusals("show"):
        files = PipelineFiles(lake.absolute(), name)
        state = files.status()
        if state is not None:
            description = showing.described(state)
        else:
            made = _find([name], folder, None)[0]
            description = showing.Description(made.table_names(), made.about, made.shipped)
        tables, sections, page = showing.show(files, lake, description, parse_as_of(as_of) if as_of else None)
        path = html or files.folder / "report.html"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page, encoding="utf-8")
        except OSError as error:
            typer.echo(f"jetlake pipeline show: {path} cannot be written: {error}", err=True)
            raise typer.Exit(1) from error
    if as_json:
        facts = _show_facts(name, state, tables, path) | {"sections": _section_facts(sections)}
        typer.echo(msgspec.json.encode(facts, enc_hook=_encode).decode())
        return
    _print_sections(sections)
    _print_summary(tables, with_rows=not sections)
    typer.echo(f"page: {path}")


@application.command()
def validate(
    names: NamesArgument,
    settings: SettingOption = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not ask a server which streams there are.")] = False,
    lake: LakeOption = DEFAULT_LAKE,
    folder: FolderOption = DEFAULT_DEFINITIONS,
    as_json: JsonOption = False,
) -> None:
    """Check names, types and sample rows without running anything. Ends with 1 when something is wrong."""
    with _refusals("validate"):
        check_pyspark()
    import jetlake.spark
    from jetlake.spark.lake.folder import Lake
    from jetlake.spark.naming import names_at
    from jetlake.spark.pipelines.validation import validate as look

    with _refusals("validate"):
        pipelines = _find(names, folder, settings)
        with ended_by_interrupt(), Phases(VALIDATE_PHASES) as phases:
            streams = None if offline else names_at(connection_options())
            phases.begin("starting Spark")
            spark = jetlake.spark.session("jetlake-validate", master="local[1]", driver_memory="1g", small=True)
            spark.sparkContext.setLogLevel("ERROR")
            phases.begin("checking")
            verdicts = [look(made, spark, Lake(lake), streams) for made in pipelines]
    if as_json:
        typer.echo(msgspec.json.encode([_verdict_facts(verdict) for verdict in verdicts], enc_hook=_encode).decode())
    else:
        for verdict in verdicts:
            _print_verdict(verdict)
    if not all(verdict.is_good for verdict in verdicts):
        raise typer.Exit(1)


@application.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the pipeline.")],
    python: Annotated[bool, typer.Option("--python", help="A Python file instead of YAML.")] = False,
    stream: Annotated[str, typer.Option(help="The stream it reads.")] = "ORDERS",
    folder: FolderOption = DEFAULT_DEFINITIONS,
    as_json: JsonOption = False,
) -> None:
    """Create a working pipeline and its test as a starting point."""
    from jetlake.spark.pipelines import scaffold

    with _refusals("new"):
        files = scaffold.create(name, folder, python=python, stream=stream)
    if as_json:
        typer.echo(msgspec.json.encode([str(path) for path in files]).decode())
        return
    for path in files:
        typer.echo(path)
    typer.echo(f"next: jetlake pipeline validate {name}")


def _find(names: Sequence[str], folder: Path, settings: list[str] | None) -> "list[Pipeline]":
    from jetlake.spark.pipelines.catalog import Catalog

    given = key_values("--set", settings or (), "stream=ORDERS")
    catalog = Catalog(folder)
    return [catalog.find(name, given) for name in names]


def _wait_for_end(files: "PipelineFiles", deadline: float) -> dict[str, Any]:
    while True:
        state = files.status()
        ended = state is None or state.state in ("stopped", "finished", "failed", "died")
        if ended or time.monotonic() >= deadline:
            return {"pipeline": files.name, "state": state.state if state else "", "was_running": True}
        time.sleep(0.1)


def _refuse_unknown(name: str, there: list[str], lake: Path) -> None:
    from jetlake.errors import ConfigurationError
    from jetlake.suggestions import hint

    raise ConfigurationError(f"no pipeline {name} ever ran on {lake}{hint(name, there)}")


@contextlib.contextmanager
def _refusals(command: str) -> Iterator[None]:
    try:
        yield
    except JetlakeError as error:
        typer.echo(f"jetlake pipeline {command}: {error}", err=True)
        raise typer.Exit(1) from error


def _inputs(made: "Pipeline") -> str:
    from jetlake.spark.pipelines.model import StreamInput

    return ", ".join(
        (given.stream or f"/{given.pattern}/") if isinstance(given, StreamInput) else f"table {given.table}"
        for given in made.inputs.values()
    )


def _show_facts(name: str, state: "RunState | None", tables: "list[TableSummary]", path: Path) -> dict[str, Any]:
    return {
        "pipeline": name,
        "state": state,
        "page": str(path),
        "tables": [
            {
                "name": table.name,
                "version": table.version,
                "rows": table.rows,
                "files": table.files,
                "size_bytes": table.size_bytes,
                "columns": dict(table.columns),
                "partitions": dict(table.partitions),
                "newest": table.newest,
            }
            for table in tables
        ],
    }


def _verdict_facts(verdict: "ValidationResult") -> dict[str, Any]:
    return {
        "pipeline": verdict.pipeline,
        "good": verdict.is_good,
        "problems": verdict.problems,
        "columns": verdict.columns,
        "outputs": verdict.trial.outputs if verdict.trial else {},
        "bad": verdict.trial.bad if verdict.trial else [],
    }


def _print_verdict(verdict: "ValidationResult") -> None:
    for problem in verdict.problems:
        typer.echo(f"{verdict.pipeline}: {problem}")
    if not verdict.is_good:
        return
    typer.echo(f"{verdict.pipeline}: good")
    for name, columns in verdict.columns.items():
        typer.echo(f"  {name}: {columns}")
    if verdict.trial is not None:
        for name, rows in verdict.trial.outputs.items():
            typer.echo(f"  the sample gives {len(rows)} rows of {name}")
        for row in verdict.trial.bad:
            typer.echo(f"  the sample sets aside row {row['sequence']} of {row['input']}: {row['reason']}")


def _section_facts(sections: "list[ReportSection]") -> list[dict[str, Any]]:
    from jetlake.spark.pipelines.sections import Facts, Rows

    found = []
    for section in sections:
        facts = {fact.label: fact.value for part in section.parts if isinstance(part, Facts) for fact in part.facts}
        rows = {
            part.title: [dict(zip(part.columns, row, strict=True)) for row in part.rows]
            for part in section.parts
            if isinstance(part, Rows)
        }
        found.append({"title": section.title, "facts": facts, "rows": rows})
    return found


def _print_sections(sections: "list[ReportSection]") -> None:
    """Print facts and rows; plots are on the page."""
    from jetlake.spark.pipelines.sections import Facts, Rows
    from jetlake.spark.pipelines.summary import shown

    for section in sections:
        typer.echo(section.title)
        for part in section.parts:
            if isinstance(part, Facts):
                for fact in part.facts:
                    note = f" ({fact.note})" if fact.note else ""
                    typer.echo(f"  {fact.label}: {fact.value}{note}")
            elif isinstance(part, Rows):
                typer.echo(f"\n{part.title}{': ' + part.note if part.note else ''}")
                length_max = part.value_length_max if part.is_whole else 40
                _print_table(part.columns, [tuple(shown(value, length_max) for value in row) for row in part.rows])
        typer.echo("")


def _print_summary(tables: "list[TableSummary]", *, with_rows: bool) -> None:
    from jetlake.spark.pipelines.summary import shown, size

    rows = [
        (table.name, f"{table.rows:,}", f"{table.files:,}", size(table.size_bytes), str(table.version))
        for table in tables
    ]
    _print_table(("table", "rows", "files", "size", "version"), rows)
    for table in tables:
        if with_rows and table.newest:
            typer.echo(f"\n{table.name}, newest rows:")
            names = tuple(name for name, _ in table.columns)
            _print_table(names, [tuple(shown(row.get(name), 40) for name in names) for row in table.newest])


def _encode(value: Any) -> Any:
    return value.decode(errors="replace") if isinstance(value, bytes | bytearray) else str(value)


def _print_table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    console = Console(file=sys.stdout)
    if console.is_terminal:
        console.print(table_of(columns, rows))
        return
    typer.echo("\t".join(columns))
    for row in rows:
        typer.echo("\t".join(row))
