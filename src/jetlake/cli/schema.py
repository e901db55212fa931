"""`jetlake schema`: the JSON schemas of JetStream's requests, answers and advisories."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from jetlake.cli.output import JsonOption, print_json, print_note, print_table
from jetlake.cli.run import refusals
from jetlake.client import schemas
from jetlake.errors import ClientError, reason_of

application = typer.Typer(help="JSON schemas of requests, answers and advisories.", no_args_is_help=True)


@application.command("ls")
def list_all(
    pattern: Annotated[str, typer.Argument(help="Only schemas whose name contains this.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the schemas."""
    found = [name for name in schemas.names() if pattern.lower() in name]
    if as_json:
        print_json(found)
    else:
        print_table(("schema", "what"), [(name, str(schemas.read(name).get("description", ""))) for name in found])


application.command("search", hidden=True)(list_all)


@application.command("show")
def show(name: Annotated[str, typer.Argument(help="Its name; the last part is enough.")]) -> None:
    """Print a schema."""
    with refusals():
        typer.echo(json.dumps(schemas.read(name), indent=2))


application.command("info", hidden=True)(show)


@application.command()
def validate(
    name: Annotated[str, typer.Argument(help="The schema.")],
    file: Annotated[Path, typer.Argument(help="A JSON file; - is standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Validate a JSON file against a schema. Ends with 1 if it is invalid."""
    with refusals():
        schema = schemas.read(name)
        try:
            value = json.loads(sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes())
        except OSError as error:
            raise ClientError(f"cannot read {file}: {reason_of(error)}") from error
        except ValueError as error:
            raise ClientError(f"{file} is not JSON: {error}") from error
    found = list(schemas.problems(value, schema))
    if as_json:
        print_json(found)
    elif not found:
        print_note("valid", style="green")
    else:
        for problem in found:
            print_note(problem)
    if found:
        raise typer.Exit(1)
