"""`jetlake export`: what a server has, as files declare it."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jetlake.cli.output import JsonOption
from jetlake.cli.run import refusals, run

if TYPE_CHECKING:
    from jetlake.client.api import Api
    from jetlake.iac.actual import Actual


class Format(StrEnum):
    """How a declaration is written."""

    yaml = "yaml"
    json = "json"
    toml = "toml"


def export(
    streams: Annotated[list[str] | None, typer.Argument(help="Only these streams; all unless given.")] = None,
    format: Annotated[Format, typer.Option("--format", help="Format of the files.")] = Format.yaml,  # noqa: A002
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    project: Annotated[str, typer.Option(help="Only what this project manages.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Write what a server has as a declaration, which makes the same on an empty server.

    What servers put in by themselves is left out. Ends with 1 when the server refuses or a stream is not there.
    """
    from jetlake.errors import ConfigurationError, reason_of
    from jetlake.iac.export import export as exported
    from jetlake.iac.export import write

    actual = run(_actual)
    with refusals():
        missing = [name for name in streams or [] if actual.stream(name) is None]
        if missing:
            raise ConfigurationError(
                f"the server has no stream {', '.join(missing)}; `jetlake stream ls` shows those it has"
            )
        text = write(exported(actual, project=project, streams=streams), (Format.json if as_json else format).value)
        if output is None:
            typer.echo(text, nl=False)
            return
        try:
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{output} cannot be written: {reason_of(error)}") from error


async def _actual(api: "Api") -> "Actual":
    from jetlake.iac.actual import read_actual

    return await read_actual(api, with_templates=True)
