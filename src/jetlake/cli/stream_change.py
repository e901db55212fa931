"""`jetlake stream add`, `edit` and `copy`: what makes and changes streams."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.choose import StreamArgument, choose_stream
from jetlake.cli.difference import is_wanted
from jetlake.cli.output import ForceOption, JsonOption, ask, print_facts, print_json, print_note
from jetlake.cli.run import refusals, run
from jetlake.cli.settings import accepts, edited, merged, read_config, write_config
from jetlake.client.api import token
from jetlake.client.schemas import STREAM_CONFIGURATION, require_valid
from jetlake.errors import ClientError
from jetlake.presentation.stream_facts import config_facts, state_facts
from jetlake.presentation.stream_settings import DEFAULTS, EDIT_SETTINGS, STREAM_SETTINGS, USUAL, normalised

if TYPE_CHECKING:
    from jetlake.client.api import Api

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="A JSON file with the configuration; flags win over it.", metavar="FILE")
]


NAME_ADVICE = "Give a stream name: `jetlake stream add ORDERS --subjects 'orders.>'`."


@accepts(STREAM_SETTINGS)
def add(
    name: StreamArgument = "",
    config: ConfigOption = None,
    defaults: Annotated[bool, typer.Option("--defaults", help="Ask nothing.")] = False,
    validate: Annotated[bool, typer.Option("--validate", help="Only check the configuration.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the configuration here instead.", metavar="FILE")] = None,
    as_json: JsonOption = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Create a stream.

    On a terminal, a name and subjects that are missing are asked for. `jetlake stream add ORDERS --subjects 'orders.>'`
    asks nothing.
    """
    with refusals():
        wanted = merged(DEFAULTS if config is None else USUAL | read_config(config), normalised(settings))
        if name:
            wanted["name"] = name
        _complete(wanted, may_ask=not defaults and config is None)
        if validate or output is not None:
            require_valid(wanted, STREAM_CONFIGURATION)
    if output is not None:
        with refusals():
            write_config(output, wanted)
        print_note(f"Configuration written to {output}")
        return
    if validate:
        print_note("The configuration is valid")
        return
    made = run(lambda api: api.request(f"STREAM.CREATE.{token(wanted['name'])}", wanted))
    _show_made(made, f"Created stream {wanted['name']}", as_json=as_json)


@accepts(EDIT_SETTINGS)
def edit(
    name: StreamArgument = "",
    config: ConfigOption = None,
    interactive: Annotated[bool, typer.Option("--interactive", "-i", help="Edit it in your EDITOR.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Change a stream: shows the difference, and asks."""
    with refusals():
        replacement = None if config is None else read_config(config)

    async def work(api: "Api") -> dict[str, Any] | None:
        chosen = await choose_stream(api, name)
        before = (await api.request(f"STREAM.INFO.{token(chosen)}"))["config"]
        after = merged(replacement if replacement is not None else before, normalised(settings))
        if interactive:
            after = edited(after)
        after["name"] = chosen
        if not is_wanted(f"Stream {chosen}", before, after, dry_run=dry_run, force=force, as_json=as_json):
            return None
        return await api.request(f"STREAM.UPDATE.{chosen}", after)

    made = run(work)
    if made is not None and as_json:
        print_json(made)
    elif made is not None:
        print_note(f"Changed stream {made['config']['name']}", style="green")


@accepts(STREAM_SETTINGS)
def copy(
    origin: Annotated[str, typer.Argument(help="The stream whose configuration is copied.", metavar="STREAM")],
    destination: Annotated[str, typer.Argument(help="Name of the new stream.")],
    as_json: JsonOption = False,
    *,
    settings: dict[str, Any],
) -> None:
    """Create a stream with the configuration of another, without its messages; `fork` includes them.

    Subjects belong to one stream, so the new one needs others: --subjects.
    """

    async def work(api: "Api") -> dict[str, Any]:
        given = (await api.request(f"STREAM.INFO.{token(origin)}"))["config"]
        kept = {key: value for key, value in given.items() if key not in ("metadata", "sealed")}
        own = {key: value for key, value in (given.get("metadata") or {}).items() if not key.startswith("_nats.")}
        wanted = merged(kept | ({"metadata": own} if own else {}), normalised(settings)) | {"name": destination}
        return await api.request(f"STREAM.CREATE.{token(wanted['name'])}", wanted)

    made = run(work)
    _show_made(made, f"Created stream {destination} with the configuration of {origin}", as_json=as_json)


def _complete(wanted: dict[str, Any], *, may_ask: bool) -> None:
    """Ask for what a stream cannot be without."""
    if not wanted.get("name"):
        if not may_ask:
            raise ClientError(NAME_ADVICE)
        wanted["name"] = ask("Name of the stream", flag="NAME", advice=NAME_ADVICE)
    if not any(wanted.get(key) for key in ("subjects", "mirror", "sources")) and may_ask:
        # A stream without subjects listens on the one that is called like it.
        if not sys.stdin.isatty():
            text = f"No --subjects: stream {wanted['name']} listens on subject {wanted['name']!r}."
            typer.echo(text, err=True)
        answer = ask("Subjects it takes, with commas between them", flag="--subjects", default=wanted["name"])
        wanted["subjects"] = [part.strip() for part in answer.split(",") if part.strip()]


def _show_made(made: dict[str, Any], title: str, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    print_note(title, style="green")
    print_facts("", config_facts(made["config"]) | state_facts(made))
