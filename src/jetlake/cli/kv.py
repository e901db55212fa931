"""`jetlake kv`: key-value buckets. What reads and writes keys is in `kv_values`, what watches them in `kv_watch`."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from jetlake.cli import kv_values, kv_watch
from jetlake.cli.backup_folder import BackupArgument, ReplaceOption, RestoreArgument, require_free, restore_progress
from jetlake.cli.difference import is_wanted
from jetlake.cli.kv_options import (
    ClusterOption,
    CompressOption,
    DescriptionOption,
    DirectOption,
    HistoryOption,
    KeyTtlOption,
    MarkerTtlOption,
    MaxBucketSizeOption,
    MaxValueSizeOption,
    MetadataOption,
    MirrorDomainOption,
    MirrorOption,
    ReplicasOption,
    RepublishDestinationOption,
    RepublishHeadersOption,
    RepublishSourceOption,
    SourceOption,
    StorageOption,
    TagsOption,
    TtlOption,
    bucket_fields,
    changed,
    config_of,
)
from jetlake.cli.kv_text import status_facts, status_json
from jetlake.cli.kv_values import BucketArgument
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import (
    ForceOption,
    JsonOption,
    confirm,
    print_json,
    print_list,
    print_note,
    print_status,
    print_table,
    progress_bar,
)
from jetlake.cli.run import refusals, run
from jetlake.kv.config import changed_stream
from jetlake.presentation.cells import Bytes, Cell
from jetlake.presentation.quantities import SECOND
from jetlake.presentation.timestamps import age_of

if TYPE_CHECKING:
    from jetlake.client.api import Api
    from jetlake.kv.bucket import BucketStatus
    from jetlake.kv.buckets import Buckets

application = typer.Typer(help="Create, read and write key-value buckets.", no_args_is_help=True)

COMPACT_AGE_NS = 1800 * SECOND
"""The default age at which markers of deleted keys are removed."""

T = TypeVar("T")


@application.callback()
def kv() -> None:
    """Create, read and write key-value buckets."""


def with_buckets(work: "Callable[[Buckets], Awaitable[T]]") -> T:
    """Connect, and return what the work returns."""

    async def connected(api: "Api") -> T:
        from jetlake.kv.buckets import Buckets

        return await work(Buckets(api))

    return run(connected)


@application.command()
def add(
    bucket: BucketArgument,
    as_json: JsonOption = False,
    *,
    history: HistoryOption = None,
    ttl: TtlOption = None,
    max_value_size: MaxValueSizeOption = None,
    max_bucket_size: MaxBucketSizeOption = None,
    description: DescriptionOption = None,
    replicas: ReplicasOption = None,
    compress: CompressOption = None,
    marker_ttl: MarkerTtlOption = None,
    direct: DirectOption = None,
    republish_source: RepublishSourceOption = None,
    republish_destination: RepublishDestinationOption = None,
    republish_headers: RepublishHeadersOption = None,
    cluster: ClusterOption = None,
    tags: TagsOption = None,
    metadata: MetadataOption = None,
    storage: StorageOption = None,
    key_ttl: KeyTtlOption = None,
    mirror: MirrorOption = None,
    mirror_domain: MirrorDomainOption = None,
    source: SourceOption = None,
) -> None:
    """Create a bucket."""
    fields = bucket_fields(
        history=history,
        ttl=ttl,
        max_value_size=max_value_size,
        max_bucket_size=max_bucket_size,
        description=description,
        replicas=replicas,
        compress=compress,
        marker_ttl=marker_ttl,
        direct=direct,
        republish_source=republish_source,
        republish_destination=republish_destination,
        republish_headers=republish_headers,
        cluster=cluster,
        tags=tags,
        metadata=metadata,
        storage=storage,
        key_ttl=key_ttl,
        mirror=mirror,
        mirror_domain=mirror_domain,
        source=source,
    )
    with refusals():
        config = config_of(bucket, fields)

    async def work(buckets: "Buckets") -> "BucketStatus":
        return await (await buckets.create(config)).status()

    _show(with_buckets(work), f"Created bucket {bucket}", as_json=as_json)


@application.command()
def edit(
    bucket: BucketArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
    *,
    history: HistoryOption = None,
    ttl: TtlOption = None,
    max_value_size: MaxValueSizeOption = None,
    max_bucket_size: MaxBucketSizeOption = None,
    description: DescriptionOption = None,
    replicas: ReplicasOption = None,
    compress: CompressOption = None,
    marker_ttl: MarkerTtlOption = None,
    direct: DirectOption = None,
    republish_source: RepublishSourceOption = None,
    republish_destination: RepublishDestinationOption = None,
    republish_headers: RepublishHeadersOption = None,
    cluster: ClusterOption = None,
    tags: TagsOption = None,
    metadata: MetadataOption = None,
) -> None:
    """Change a bucket; shows the difference and asks first."""
    fields = bucket_fields(
        history=history,
        ttl=ttl,
        max_value_size=max_value_size,
        max_bucket_size=max_bucket_size,
        description=description,
        replicas=replicas,
        compress=compress,
        marker_ttl=marker_ttl,
        direct=direct,
        republish_source=republish_source,
        republish_destination=republish_destination,
        republish_headers=republish_headers,
        cluster=cluster,
        tags=tags,
        metadata=metadata,
    )

    async def work(buckets: "Buckets") -> "BucketStatus | None":
        found = await buckets.status(bucket)
        wanted = changed(found.config, fields)
        before = found.stream["config"]
        after = changed_stream(before, wanted)
        if not is_wanted(f"Bucket {bucket}", before, after, dry_run=dry_run, force=force, as_json=as_json):
            return None
        return await buckets.update(wanted)

    made = with_buckets(work)
    if made is not None and as_json:
        print_json(status_json(made))
    elif made is not None:
        print_note(f"Changed bucket {bucket}", style="green")


@application.command("ls")
def list_all(
    bucket: Annotated[str, typer.Argument(help="List the keys of this bucket instead.", metavar="BUCKET")] = "",
    names: Annotated[bool, typer.Option("--names", "-n", help="Names only.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the buckets, or the keys of one."""
    if bucket:
        kv_values.keys(bucket, None, as_json=as_json)
        return
    found = with_buckets(lambda buckets: buckets.list())
    if print_list(found, lambda status: status.bucket, status_json, names=names, as_json=as_json):
        return
    rows: list[tuple[Cell, ...]] = [
        (
            status.bucket,
            status.config.description,
            status.keys,
            status.values,
            Bytes(status.bytes),
            status.config.history,
            age_of(status.stream["state"].get("last_ts")),
        )
        for status in found
    ]
    print_table(("bucket", "description", "keys", "values", "size", "history", "last change"), rows)


@application.command()
def status(bucket: BucketArgument, as_json: JsonOption = False) -> None:
    """Show the configuration and the state of a bucket."""
    _show(with_buckets(lambda buckets: buckets.status(bucket)), "", as_json=as_json)


@application.command()
def rm(bucket: BucketArgument, force: ForceOption = False) -> None:
    """Delete a bucket with everything in it."""

    async def work(buckets: "Buckets") -> None:
        found = await buckets.status(bucket)
        confirm(f"Really delete the bucket {bucket} with {found.values:,} values?", force=force)
        await buckets.delete(bucket)

    with_buckets(work)
    print_note(f"Deleted bucket {bucket}")


@application.command()
def compact(
    bucket: BucketArgument,
    older: Annotated[
        int,
        typer.Option(
            "--older", help="Keep younger markers.", metavar="TIME", parser=parse_duration, show_default="30m"
        ),
    ] = COMPACT_AGE_NS,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove the history and old markers of deleted keys."""
    confirm(f"Really remove what is left of the deleted keys of bucket {bucket}?", force=force)
    removed = kv_values.with_bucket(bucket, lambda opened: opened.compact(older_than_s=older / SECOND))
    if as_json:
        print_json({"bucket": bucket, "deleted_keys": removed})
    else:
        print_note(f"Compacted {removed:,} deleted keys of bucket {bucket}")


@application.command()
def clear(bucket: BucketArgument, force: ForceOption = False) -> None:
    """Remove all values of a bucket. Watchers are not notified."""
    confirm(f"Really remove all values of bucket {bucket}?", force=force)
    removed = kv_values.with_bucket(bucket, lambda opened: opened.clear())
    print_note(f"Removed {removed:,} values of bucket {bucket}")


@application.command()
def backup(
    bucket: BucketArgument,
    folder: BackupArgument,
    force: ReplaceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a backup of a bucket to a folder."""

    async def work(buckets: "Buckets") -> int:
        require_free(folder, force=force)
        found = await buckets.status(bucket)
        with progress_bar(f"backup of {bucket}", found.bytes, is_bytes=True) as advance:
            return await buckets.backup(bucket, folder, tell=advance)

    received = with_buckets(work)
    if as_json:
        print_json({"bucket": bucket, "folder": str(folder), "archive_bytes": received})
    else:
        print_note(f"Created {received:,} bytes backup of bucket {bucket} in {folder}")


@application.command()
def restore(
    folder: RestoreArgument,
    replicas: Annotated[int, typer.Option(min=0, help="Another number of copies in a cluster.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Create a bucket from a backup, under the name it had."""

    async def work(buckets: "Buckets") -> "BucketStatus":
        with restore_progress(folder, folder) as advance:
            return await buckets.restore(folder, replicas=replicas or None, tell=advance)

    made = with_buckets(work)
    if as_json:
        print_json(status_json(made))
    else:
        print_note(f"Restored bucket {made.bucket} with {made.values:,} values from {folder}")


application.command("put")(kv_values.put)
application.command("get")(kv_values.get)
application.command("create")(kv_values.create)
application.command("update")(kv_values.update)
application.command("del")(kv_values.delete)
application.command("purge")(kv_values.purge)
application.command("history")(kv_values.history)
application.command("keys")(kv_values.keys)
application.command("revert")(kv_values.revert)
application.command("watch")(kv_watch.watch)
application.command("info", hidden=True)(status)


def _show(found: "BucketStatus", note: str, *, as_json: bool) -> None:
    title = f"Bucket {found.bucket}"
    print_status(status_json(found), status_facts(found), note=note, title=title, as_json=as_json)
