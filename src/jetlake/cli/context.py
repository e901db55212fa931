"""`jetlake context`: named connections, shared with NATS' own command line."""

import json
from typing import Annotated, Any

import typer

from jetlake.cli.configuration import edited
from jetlake.cli.invocation import current
from jetlake.cli.output import ForceOption, JsonOption, confirm, print_facts, print_json, print_note, print_table
from jetlake.cli.run import refusals
from jetlake.client import contexts
from jetlake.client.access import CONTEXT_KEYS
from jetlake.client.first_connect import without_secrets
from jetlake.errors import ConfigurationError, JetlakeError
from jetlake.presentation.cells import Cell

application = typer.Typer(help="Manage named connections.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The context.", metavar="CONTEXT")]
SECRETS = ("password", "token", "user_seed", "user_jwt")
HIDDEN = "********"


@application.callback()
def context() -> None:
    """Named connections: address and credentials under a name, in ~/.config/nats.

    jetlake context add prod --server nats://prod:4222 --creds prod.creds, then jetlake context select prod.
    """


@application.command("ls")
def list_all(
    names: Annotated[bool, typer.Option("--names", "-n", help="Names only.")] = False, as_json: JsonOption = False
) -> None:
    """List the contexts; a star marks the selected one."""
    with refusals():
        chosen = contexts.chosen()
        found = {name: contexts.read(name) for name in contexts.names()}
    if as_json:
        facts = [{"name": name, "url": _url(content), "selected": name == chosen} for name, content in found.items()]
        print_json([fact["name"] for fact in facts] if names else facts)
    elif names:
        for name in found:
            typer.echo(name)
    else:
        rows: list[tuple[Cell, ...]] = [
            ("*" if name == chosen else "", name, _url(content), content.get("description"))
            for name, content in found.items()
        ]
        print_table(("", "context", "url", "description"), rows)


@application.command("add")
def add(
    name: NameArgument,
    description: Annotated[str, typer.Option(help="What it is for.")] = "",
    select: Annotated[bool, typer.Option("--select", help="Select it as well.")] = False,
) -> None:
    """Save the connection flags of this line (--server, --creds and so on) under a name."""
    with refusals():
        content = contexts.read(name) if name in contexts.names() else {}
        content |= {CONTEXT_KEYS[field]: value for field, value in current().options.items() if field in CONTEXT_KEYS}
        if description:
            content["description"] = description
        contexts.write(name, content)
        if select:
            contexts.choose(name)
    print_note(f"Context {name} is saved" + (" and chosen" if select else ""))


@application.command("edit")
def edit(name: NameArgument) -> None:
    """Edit a context in your EDITOR."""
    with refusals():
        contexts.write(name, edited(contexts.read(name)))
    print_note(f"Context {name} is saved")


@application.command("copy")
def copy(name: NameArgument, destination: Annotated[str, typer.Argument(help="Name of the new one.")]) -> None:
    """Copy a context; the flags of this line change the copy."""
    with refusals():
        content = contexts.read(name)
        content |= {CONTEXT_KEYS[field]: value for field, value in current().options.items() if field in CONTEXT_KEYS}
        contexts.write(destination, content)
    print_note(f"Context {destination} is saved")


@application.command("rm")
def rm(name: NameArgument, force: ForceOption = False) -> None:
    """Delete a context."""
    with refusals():
        contexts.read(name)
        confirm(f"Really delete the context {name}?", force=force)
        contexts.remove(name)
    print_note(f"Context {name} is deleted")


@application.command("select")
def select(name: NameArgument) -> None:
    """Select the default context; - selects the previous one."""
    with refusals():
        wanted = contexts.previous() if name == "-" else name
        if not wanted:
            raise ConfigurationError("no context was chosen before")
        contexts.choose(wanted)
    print_note(f"Context {wanted} is chosen")


@application.command("previous")
def previous() -> None:
    """Select the previous context."""
    select("-")


@application.command("unselect")
def unselect() -> None:
    """Select no context."""
    with refusals():
        contexts.choose("")
    print_note("No context is chosen")


@application.command("info")
def info(
    name: Annotated[str, typer.Argument(help="The selected context unless given.", metavar="CONTEXT")] = "",
    secrets: Annotated[bool, typer.Option("--show-secrets", help="Show passwords and tokens.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show a context."""
    with refusals():
        wanted = name or contexts.chosen()
        if not wanted:
            raise ConfigurationError("no context is chosen: name one, or choose one with `jetlake context select`")
        content = contexts.read(wanted)
    shown: dict[str, Any] = {
        key: HIDDEN if key in SECRETS and value and not secrets else value for key, value in content.items()
    }
    if "url" in shown and not secrets:
        shown["url"] = _url(content)
    if as_json:
        print_json({"name": wanted, "path": str(contexts.folder() / "context" / f"{wanted}.json"), **shown})
        return
    facts: dict[str, Cell] = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in shown.items() if value
    }
    print_facts(f"Context {wanted}", {"": {"context": wanted, **facts}})


@application.command("validate")
def validate(
    name: Annotated[str, typer.Argument(help="All contexts unless given.", metavar="CONTEXT")] = "",
    connect: Annotated[bool, typer.Option("--connect", help="Also connect to the servers.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Check contexts. Ends with 1 if one is invalid."""
    problems = {each: _problem(each, connect=connect) for each in ([name] if name else contexts.names())}
    if as_json:
        print_json(problems)
    else:
        print_table(("context", "problem"), [(each, problem or "ok") for each, problem in problems.items()])
    if any(problems.values()):
        raise typer.Exit(1)


def _url(content: dict[str, Any]) -> str | None:
    """Return the address of a context without what may be secret in it."""
    return ", ".join(without_secrets(url) for url in content["url"].split(",")) if content.get("url") else None


def _problem(name: str, *, connect: bool) -> str:
    """Return what is wrong with a context; nothing when it is good."""
    import asyncio

    from jetlake.client.access import resolve
    from jetlake.client.api import open_api

    async def try_it() -> None:
        async with open_api(resolve({}, context=name, environment={})):
            pass

    try:
        access = resolve({}, context=name, environment={})
        for path in (access.credentials, access.nkey, access.tls_ca, access.tls_certificate, access.tls_key):
            if path is not None and not path.is_file():
                return f"there is no file {path}"
        if connect:
            asyncio.run(try_it())
    except JetlakeError as error:
        return str(error)
    return ""


application.command("create", hidden=True)(add)
application.command("save", hidden=True)(add)
application.command("show", hidden=True)(info)
application.command("delete", hidden=True)(rm)
application.command("cp", hidden=True)(copy)
application.command("set", hidden=True)(select)
application.command("list", hidden=True)(list_all)
