"""`jetlake object put`, `get` and the other commands for the objects of a store."""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from jetlake.cli.option_values import parse_size
from jetlake.cli.output import (
    ForceOption,
    JsonOption,
    confirm,
    is_terminal,
    print_facts,
    print_json,
    print_names,
    print_note,
    print_table,
    progress_bar,
)
from jetlake.cli.run import refusals, run
from jetlake.errors import ClientError, ConfigurationError
from jetlake.presentation.cells import Bytes, Cell, safe, shown

if TYPE_CHECKING:
    from jetlake.client.api import Api
    from jetlake.objects.info import ObjectInfo
    from jetlake.objects.store import ObjectStore

StoreArgument = Annotated[str, typer.Argument(help="The object store.", metavar="STORE")]
NameArgument = Annotated[str, typer.Argument(help="The name of the object.", metavar="NAME")]
HeaderOption = Annotated[
    list[str] | None, typer.Option("--header", "-H", help="A header; may be repeated.", metavar="NAME:VALUE")
]
MetadataOption = Annotated[
    list[str] | None, typer.Option("--metadata", help="Metadata, KEY=VALUE; may be repeated.", metavar="KEY=VALUE")
]

T = TypeVar("T")


def with_store(
    name: str,
    work: "Callable[[ObjectStore], Awaitable[T]]",
    *,
    reconnect: bool = False,
    while_read: bool = False,
) -> T:
    """Connect, open an object store, and return what the work returns; `run` explains the options."""

    async def opened(api: "Api") -> T:
        from jetlake.objects.stores import Stores

        return await work(await Stores(api).open(name))

    return run(opened, reconnect=reconnect, while_read=while_read)


def put(
    store: StoreArgument,
    file: Annotated[str, typer.Argument(help="The file; - reads standard input.", metavar="FILE")],
    name: Annotated[str, typer.Option(help="Another name than that of the file.")] = "",
    description: Annotated[str, typer.Option(help="Description.")] = "",
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    chunk_size: Annotated[
        int, typer.Option(help="Size of the messages it is stored as.", metavar="SIZE", parser=parse_size)
    ] = 0,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace an existing object.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Store a file, in constant memory."""
    path = None if file == "-" else Path(file)
    object_name = name or (path.name if path else "")
    if not object_name:
        raise typer.BadParameter("--name is missing: what comes from standard input has no name of its own")
    with refusals():
        options: dict[str, Any] = {
            "description": description,
            "headers": _headers(header),
            "metadata": _pairs(metadata),
            **({"chunk_bytes": chunk_size} if chunk_size else {}),
        }
        if path is not None and not path.is_file():
            raise ClientError(f"cannot read {path}: it is not a file")

    async def work(opened: "ObjectStore") -> "ObjectInfo":
        if not force and await opened.find(object_name) is not None:
            raise ClientError(f"object {object_name} of {store} exists: give --force to replace it, or another --name")
        size = path.stat().st_size if path else None
        with progress_bar(f"put {object_name}", size, is_bytes=True) as advance:
            if path is None:
                return await opened.put(object_name, sys.stdin.buffer, tell=advance, **options)
            return await opened.put_file(path, object_name, tell=advance, **options)

    stored = with_store(store, work, reconnect=True)
    if as_json:
        print_json(info_json(stored))
    else:
        print_note(f"Stored {object_name} in {store}: {shown(Bytes(stored.size))}, {stored.digest}")


def get(
    store: StoreArgument,
    name: NameArgument,
    output: Annotated[
        str, typer.Option("--output", "-O", help="Write to this file; - is standard output.", metavar="FILE")
    ] = "",
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Fetch an object into a file, in constant memory; its digest is verified."""
    path = Path(output or Path(name).name)

    async def work(opened: "ObjectStore") -> "ObjectInfo":
        info = await opened.resolve(name)
        with progress_bar(f"get {name}", info.size, is_bytes=True) as advance:
            if output == "-":
                return await opened.get_into(name, sys.stdout.buffer, tell=advance)
            return await opened.get_file(name, path, tell=advance)

    if output != "-" and path.exists() and not force:
        with refusals():
            raise ClientError(f"{path} exists: give --force to replace it, or another --output")
    info = with_store(store, work, reconnect=True, while_read=output == "-")
    if output == "-":
        sys.stdout.buffer.flush()
    elif as_json:
        print_json({"file": str(path), **info_json(info)})
    else:
        print_note(f"Wrote {path}: {shown(Bytes(info.size))}, {info.digest}")


def delete(store: StoreArgument, name: NameArgument, force: ForceOption = False) -> None:
    """Delete an object."""
    confirm(f"Really delete the object {name} of {store}?", force=force)
    info = with_store(store, lambda opened: opened.delete(name))
    print_note(f"Deleted {name} of {store}, {shown(Bytes(info.size))}")


def info(store: StoreArgument, name: NameArgument, as_json: JsonOption = False) -> None:
    """Show what is known about an object."""
    found = with_store(store, lambda opened: opened.info(name))
    if as_json:
        print_json(info_json(found))
        return
    link = found.link
    facts: dict[str, Cell] = {
        "name": found.name,
        "store": found.bucket,
        "description": found.description or None,
        "size": Bytes(found.size),
        "chunks": found.chunks,
        "digest": found.digest or None,
        "modified": found.modified.isoformat(timespec="seconds"),
        "link to": None if link is None else " > ".join(part for part in (link.bucket, link.name) if part),
        **{key: ", ".join(values) for key, values in found.headers.items()},
        **found.metadata,
    }
    print_facts("", {"": facts})


def objects(store: str, *, as_json: bool, deleted: bool, names: bool) -> None:
    """List the objects of a store."""
    found = with_store(store, lambda opened: opened.list(deleted=deleted))
    if as_json:
        print_json([each.name for each in found] if names else [info_json(each) for each in found])
    elif names:
        print_names(each.name for each in found)
    else:
        rows: list[tuple[Cell, ...]] = [
            (each.name, Bytes(each.size), _kind(each), each.modified.isoformat(timespec="seconds")) for each in found
        ]
        print_table(("object", "size", "kind", "modified"), rows)


def link(
    store: StoreArgument,
    name: Annotated[str, typer.Argument(help="The name of the link.", metavar="NAME")],
    target: Annotated[str, typer.Argument(help="A store, or an object as STORE/NAME.", metavar="TARGET")],
    as_json: JsonOption = False,
) -> None:
    """Add a link to an object, or to a whole object store."""
    bucket, _, target_name = target.partition("/")

    async def work(opened: "ObjectStore") -> "ObjectInfo":
        if not target_name:
            return await opened.add_store_link(name, bucket)
        return await opened.add_link(name, await opened.sibling(bucket).info(target_name))

    made = with_store(store, work)
    if as_json:
        print_json(info_json(made))
    else:
        print_note(f"Linked {name} of {store} to {target}")


def rename(
    store: StoreArgument,
    name: NameArgument,
    new_name: Annotated[str, typer.Option("--name", help="Another name.")] = "",
    description: Annotated[str | None, typer.Option(help="Description.")] = None,
    header: HeaderOption = None,
    metadata: MetadataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the name, the description, the headers or the notes of an object."""
    with refusals():
        headers, notes = _headers(header) or None, _pairs(metadata) or None
    made = with_store(
        store,
        lambda opened: opened.update_meta(
            name, new_name=new_name, description=description, headers=headers, metadata=notes
        ),
    )
    if as_json:
        print_json(info_json(made))
    else:
        print_note(f"Changed {made.name} of {store}")


def watch(
    store: StoreArgument,
    updates: Annotated[bool, typer.Option("--updates", help="Only what changes from now on.")] = False,
    deletes: Annotated[bool, typer.Option(help="Show deletes too.")] = True,
    count: Annotated[int, typer.Option(min=0, help="Stop after N changes (0: run until interrupted).")] = 0,
    snapshot: Annotated[bool, typer.Option("--snapshot", help="Stop after the objects there are now.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the objects of a store, and every change of them. Stop with Ctrl-C."""

    async def work(opened: "ObjectStore") -> None:
        number = 0
        async with opened.watch(ignore_deletes=not deletes, updates_only=updates) as watcher:
            async for found in watcher:
                if found is None:
                    if snapshot:
                        return
                    continue
                if as_json:
                    print_json(info_json(found))
                else:
                    size = shown(Bytes(found.size)) if is_terminal() else str(found.size)
                    fields = (found.modified.isoformat(timespec="seconds"), _operation(found), safe(found.name), size)
                    typer.echo("\t".join(fields))
                number += 1
                if number == count:
                    return

    with_store(store, work, reconnect=True, while_read=True)


def info_json(found: "ObjectInfo") -> dict[str, Any]:
    """Return what is known about an object, for `print_json`."""
    made: dict[str, Any] = {
        "name": found.name,
        "bucket": found.bucket,
        "nuid": found.nuid,
        "size": found.size,
        "chunks": found.chunks,
        "digest": found.digest,
        "modified": found.modified.isoformat(),
        "deleted": found.deleted,
        "description": found.description,
        "headers": found.headers,
        "metadata": found.metadata,
    }
    return made | ({"link": found.link} if found.link else {})


def _kind(found: "ObjectInfo") -> str:
    if found.deleted:
        return "deleted"
    if found.link is None:
        return "object"
    return "link" if found.link.name else "link to a store"


def _operation(found: "ObjectInfo") -> str:
    return "DEL" if found.deleted else "PUT"


def _headers(pairs: list[str] | None) -> dict[str, list[str]]:
    headers: dict[str, list[str]] = {}
    for pair in pairs or []:
        name, colon, value = pair.partition(":")
        if not colon or not name.strip():
            raise ConfigurationError(f"--header is {pair!r}: write Name:Value")
        headers.setdefault(name.strip(), []).append(value.strip())
    return headers


def _pairs(pairs: list[str] | None) -> dict[str, str]:
    found = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigurationError(f"--metadata is {pair!r}: write key=value")
        found[key.strip()] = value.strip()
    return found
