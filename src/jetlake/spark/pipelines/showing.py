"""What there is to show of a pipeline: its state, its tables in numbers, its sections, and the page made of them.

Read from the lake alone, without Spark and without a server.
"""

from pathlib import Path
from typing import NamedTuple

from jetlake.errors import ConfigurationError
from jetlake.spark.lake.as_of import AsOf
from jetlake.spark.lake.folder import Lake
from jetlake.spark.pipelines import report
from jetlake.spark.pipelines.catalog import report_of
from jetlake.spark.pipelines.sections import ReportSection, Tables
from jetlake.spark.pipelines.state import PipelineFiles, RunState
from jetlake.spark.pipelines.summary import TableSummary, summarize

__all__ = ["Description", "Shown", "described", "show", "written_page"]


class Description(NamedTuple):
    """What is known of a pipeline before its tables are read."""

    tables: list[str]
    about: str
    # Which of the pipelines that ship it is; empty for others.
    shipped: str


class Shown(NamedTuple):
    """See the module; `page` is HTML that needs nothing else."""

    tables: list[TableSummary]
    sections: list[ReportSection]
    page: str


def described(state: RunState) -> Description:
    """Return the description that a run has left."""
    return Description(state.tables, state.about, state.shipped)


def show(files: PipelineFiles, lake: Path, description: Description, as_of: AsOf | None = None) -> Shown:
    """Read the tables of a pipeline, as they are or were. Raises `ConfigurationError`."""
    place = Lake(lake)
    tables = [table for table in (summarize(place, name, as_of) for name in description.tables) if table is not None]
    reported = report_of(description.shipped)
    sections = [] if reported is None else reported(Tables(place, description.tables, as_of))
    page = report.page(files.name, description.about, files.status(), files.progress(), tables, sections)
    return Shown(tables, sections, page)


def written_page(lake: Path, name: str) -> str:
    """Return the page about a pipeline that has run on a lake. Raises `ConfigurationError`."""
    files = PipelineFiles(lake.absolute(), name)
    state = files.status()
    if state is None:
        raise ConfigurationError(f"no pipeline {name} ever ran on {lake}")
    return show(files, lake, described(state)).page
