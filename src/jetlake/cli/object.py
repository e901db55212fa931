"""`jetlake object`: object stores, files of any size in streams. What puts and gets objects is in `object_files`."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from jetlake.cli import object_files
from jetlake.cli.backup_folder import BackupArgument, ReplaceOption, RestoreArgument, require_free
from jetlake.cli.object_files import StoreArgument
from jetlake.cli.option_values import (
    STORAGES,
    given,
    parse_choice,
    parse_duration,
    parse_pairs,
    parse_size,
    split_texts,
)
from jetlake.cli.output import (
    ForceOption,
    JsonOption,
    confirm,
    print_list,
    print_note,
    print_status,
    print_table,
    progress_bar,
)
from jetlake.cli.run import refusals, run
from jetlake.presentation.cells import Bytes, Cell, Nanoseconds
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from jetlake.client.api import Api
    from jetlake.objects.store import StoreStatus
    from jetlake.objects.stores import Stores

application = typer.Typer(help="Store and fetch files of any size.", no_args_is_help=True)

UNLIMITED = "unlimited"

T = TypeVar("T")


@application.callback()
def object_stores() -> None:
    """Store and fetch files of any size."""


def with_stores(work: "Callable[[Stores], Awaitable[T]]") -> T:
    """Connect, and return what the work returns."""

    async def connected(api: "Api") -> T:
        from jetlake.objects.stores import Stores

        return await work(Stores(api))

    return run(connected)


@application.command()
def add(
    store: StoreArgument,
    as_json: JsonOption = False,
    *,
    ttl: Annotated[
        int | None,
        typer.Option(
            "--ttl", help="Remove objects after this time (0: keep them).", metavar="TIME", parser=parse_duration
        ),
    ] = None,
    max_bucket_size: Annotated[
        int | None,
        typer.Option("--max-bucket-size", help="Largest size of the whole store.", metavar="SIZE", parser=parse_size),
    ] = None,
    description: Annotated[str | None, typer.Option("--description", help="What the store is for.")] = None,
    replicas: Annotated[int | None, typer.Option("--replicas", help="Copies in a cluster, 1 to 5.")] = None,
    compress: Annotated[
        bool | None, typer.Option("--compress/--no-compress", help="Compress the files of the store.")
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Place the store in this cluster.")] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tags", help="Place the store on servers with these tags.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option("--metadata", help="Your own notes about the store.", metavar="KEY=VALUE")
    ] = None,
    storage: Annotated[
        str | None, typer.Option("--storage", help="Keep objects in files or in memory.", metavar="file|f|memory|m")
    ] = None,
) -> None:
    """Create an object store."""
    from jetlake.objects.config import StoreConfig

    placement = given({"cluster": cluster, "tags": split_texts(tags)})
    fields = given(
        {
            "ttl_s": None if ttl is None else ttl / SECOND,
            "max_bytes": max_bucket_size,
            "description": description,
            "replicas": replicas,
            "compression": compress,
            "metadata": parse_pairs("--metadata", metadata),
            "storage": parse_choice("--storage", storage, STORAGES),
        }
    )
    with refusals():
        config = StoreConfig(store=store, placement=placement or None, **fields)

    async def work(stores: "Stores") -> "StoreStatus":
        return await (await stores.create(config)).status()

    _show(with_stores(work), f"Created object store {store}", as_json=as_json)


@application.command("ls")
def list_all(
    store: Annotated[str, typer.Argument(help="List the objects of this store.", metavar="STORE")] = "",
    names: Annotated[bool, typer.Option("--names", "-n", help="Names only.")] = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="Include deleted objects.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the object stores, or the objects of one."""
    if store:
        object_files.objects(store, as_json=as_json, deleted=deleted, names=names)
        return
    found = with_stores(lambda stores: stores.list())
    if print_list(found, lambda status: status.store, status_json, names=names, as_json=as_json):
        return
    rows: list[tuple[Cell, ...]] = [
        (status.store, status.config.description, Bytes(status.bytes), status.sealed) for status in found
    ]
    print_table(("store", "description", "size", "sealed"), rows)


@application.command()
def status(store: StoreArgument, as_json: JsonOption = False) -> None:
    """Show the configuration and the state of an object store."""
    _show(with_stores(lambda stores: stores.status(store)), "", as_json=as_json)


@application.command()
def rm(store: StoreArgument, force: ForceOption = False) -> None:
    """Delete an object store with everything in it."""

    async def work(stores: "Stores") -> None:
        found = await stores.status(store)
        confirm(f"Really delete the object store {store} with {found.bytes:,} bytes?", force=force)
        await stores.delete(store)

    with_stores(work)
    print_note(f"Deleted object store {store}")


@application.command()
def seal(store: StoreArgument, force: ForceOption = False) -> None:
    """Make an object store read-only. This cannot be undone."""
    confirm(f"Really make the object store {store} read-only permanently?", force=force)
    object_files.with_store(store, lambda opened: opened.seal())
    print_note(f"Sealed object store {store}")


@application.command()
def backup(
    store: StoreArgument,
    folder: BackupArgument,
    force: ReplaceOption = False,
) -> None:
    """Write a backup of an object store to a folder."""

    async def work(stores: "Stores") -> int:
        require_free(folder, force=force)
        found = await stores.status(store)
        with progress_bar(f"backup of {store}", found.bytes, is_bytes=True) as advance:
            return await stores.backup(store, folder, tell=advance)

    print_note(f"Created {with_stores(work):,} bytes backup of object store {store} in {folder}")


@application.command()
def restore(folder: RestoreArgument) -> None:
    """Create an object store from a backup, under the name it had."""
    made = with_stores(lambda stores: stores.restore(folder))
    print_note(f"Restored object store {made.store} with {made.bytes:,} bytes from {folder}")


application.command("put")(object_files.put)
application.command("get")(object_files.get)
application.command("del")(object_files.delete)
application.command("info")(object_files.info)
application.command("edit")(object_files.rename)
application.command("link")(object_files.link)
application.command("watch")(object_files.watch)


def status_json(found: "StoreStatus") -> dict[str, Any]:
    """Return how an object store stands, for `print_json`."""
    return {"store": found.store, "bytes": found.bytes, "sealed": found.sealed, "config": found.config}


def _show(found: "StoreStatus", note: str, *, as_json: bool) -> None:
    config = found.config
    facts: dict[str, Cell] = {
        "store": found.store,
        "description": config.description or None,
        "TTL": Nanoseconds(round(config.ttl_s * SECOND)) if config.ttl_s else UNLIMITED,
        "max bucket size": Bytes(config.max_bytes) if config.max_bytes >= 0 else UNLIMITED,
        "storage": config.storage,
        "replicas": config.replicas,
        "compression": config.compression or None,
        "metadata": ", ".join(f"{key}={value}" for key, value in config.metadata.items()) or None,
    }
    state: dict[str, Cell] = {"size": Bytes(found.bytes), "sealed": found.sealed}
    sections = {"Configuration": facts, "State": state}
    print_status(status_json(found), sections, note=note, title=f"Object store {found.store}", as_json=as_json)
