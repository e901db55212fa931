"""Finds pipelines by name: those that ship, and those in a folder (`pipelines` by default).

In the folder every `*.yaml` and `*.yml` is one pipeline and every `*.py` one or more; files whose names begin with
`test_`, `conftest` or `_` are not. A file that cannot be read does not hide the others.
"""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jetlake.errors import ConfigurationError, JetlakeError
from jetlake.spark.pipelines import adapter, archive, dead, definition, devices, fleet, logs, python_file
from jetlake.spark.pipelines.model import Pipeline
from jetlake.spark.pipelines.sections import ReportSection, Tables
from jetlake.suggestions import hint, nearest

SHIPPED: dict[str, Any] = {
    "adapter": adapter,
    "archive": archive,
    "dead": dead,
    "devices": devices,
    "fleet": fleet,
    "logs": logs,
}
"""By name, modules with `Parameters`, `build(name, parameters)` and, if they have more to say than their tables,
`report(tables)`, which returns the sections of the page that `show` writes."""

DEFAULT_FOLDER = Path("pipelines")


class CatalogEntry(NamedTuple):
    """A pipeline, or why a file is not one."""

    name: str
    origin: str
    pipeline: Pipeline | None
    problem: str = ""


class Catalog:
    """See the module."""

    def __init__(self, folder: Path = DEFAULT_FOLDER) -> None:
        self.folder = folder

    def entries(self) -> list[CatalogEntry]:
        """Return everything that is found, those that ship first."""
        found = [CatalogEntry(name, "jetlake", shipped(name, name, {})) for name in SHIPPED]
        for path in self._files():
            try:
                found += [CatalogEntry(made.name, str(path), made) for made in load(path)]
            except JetlakeError as error:
                found.append(CatalogEntry(path.stem, str(path), None, str(error)))
        return found

    def find(self, name: str, settings: Mapping[str, str] | None = None) -> Pipeline:
        """Return a pipeline by its name or by the path of its file. Raises `ConfigurationError`."""
        path = Path(name)
        if path.suffix in {".yaml", ".yml", ".py"}:
            if not path.is_file():
                raise ConfigurationError(f"there is no file {path}")
            return self._only(load(path), name, settings)
        if name in SHIPPED:
            return shipped(name, name, settings or {})
        problems = []
        for entry in self.entries():
            if entry.name == name and entry.pipeline is not None:
                return self._only([entry.pipeline], name, settings)
            if entry.problem:
                problems.append(entry.problem)
                if entry.name == name:
                    raise ConfigurationError(entry.problem)
        names = [entry.name for entry in self.entries() if entry.pipeline is not None]
        more = f" (and could not read: {'; '.join(problems)})" if problems else ""
        raise ConfigurationError(f"there is no pipeline {name} in {self.folder}{hint(name, names)}{more}")

    def _only(self, found: list[Pipeline], name: str, settings: Mapping[str, str] | None) -> Pipeline:
        if settings:
            raise ConfigurationError(
                f"--set is for pipelines that ship: {', '.join(SHIPPED)}; change {found[0].origin or name} instead"
            )
        if len(found) > 1:
            raise ConfigurationError(
                f"{name} has several pipelines: {', '.join(made.name for made in found)}; name one"
            )
        return found[0]

    def _files(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        wanted = [path for path in sorted(self.folder.iterdir()) if path.suffix in {".yaml", ".yml", ".py"}]
        return [path for path in wanted if not path.name.startswith(("test_", "conftest", "_"))]


def load(path: Path) -> list[Pipeline]:
    """Return the pipelines of a file. Raises `ConfigurationError`."""
    if path.suffix == ".py":
        return python_file.load(path)
    loaded = definition.read_yaml(path)
    try:
        if "use" not in loaded:
            return [definition.parse(loaded, path.stem, path)]
        definition.check_keys(loaded, definition.USE_KEYS, f"pipeline {path.stem}")
        name = definition.text(loaded.get("pipeline", path.stem), "pipeline")
        kind = definition.text(loaded["use"], "use")
        given = definition.mapping(loaded.get("with"), f"pipeline {name}, with")
        settings = {str(key): definition.spelled(value) for key, value in given.items()}
        return [dataclasses.replace(shipped(kind, name, settings), origin=path)]
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def shipped(kind: str, name: str, settings: Mapping[str, str]) -> Pipeline:
    """Return a pipeline that ships, with these settings. Raises `ConfigurationError`."""
    module = SHIPPED.get(kind)
    if module is None:
        raise ConfigurationError(f"pipeline {name}: {kind!r} does not ship{hint(kind, SHIPPED)}")
    fields = {field.name: field for field in dataclasses.fields(module.Parameters)}
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in fields:
            near = nearest(key, fields)
            tail = f"did you mean {near}?" if near else f"there are {', '.join(fields)}"
            raise ConfigurationError(f"pipeline {name}: {kind} has no setting {key}; {tail}")
        wanted: Any = type(fields[key].default)
        try:
            values[key] = wanted(value)
        except ValueError as error:
            raise ConfigurationError(f"pipeline {name}: {key} is {value!r} and should be a number") from error
    made: Pipeline = dataclasses.replace(module.build(name, module.Parameters(**values)), shipped=kind)
    made.check()
    return made


def report_of(kind: str) -> Callable[[Tables], list[ReportSection]] | None:
    """Return what a pipeline that ships has to say about its tables; None when it leaves that to the tables."""
    report: Callable[[Tables], list[ReportSection]] | None = getattr(SHIPPED.get(kind), "report", None)
    return report
