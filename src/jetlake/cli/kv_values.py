"""`jetlake kv put`, `get` and the other commands for the keys of a bucket."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from jetlake.cli.kv_text import entry_json, shortened, shown_value
from jetlake.cli.option_values import parse_duration
from jetlake.cli.output import ForceOption, JsonOption, confirm, is_terminal, print_json, print_note, print_table
from jetlake.cli.run import run
from jetlake.presentation.cells import Bytes, Cell
from jetlake.presentation.quantities import SECOND

if TYPE_CHECKING:
    from jetlake.client.api import Api
    from jetlake.kv.bucket import Bucket
    from jetlake.kv.entry import Entry

BucketArgument = Annotated[str, typer.Argument(help="The bucket.", metavar="BUCKET")]
KeyArgument = Annotated[str, typer.Argument(help="The key.", metavar="KEY")]
ValueArgument = Annotated[
    str | None,
    typer.Argument(help="The value; - or nothing reads it from standard input.", metavar="VALUE", show_default=False),
]
TtlOption = Annotated[
    int, typer.Option("--ttl", help="Remove it after this time.", metavar="TIME", parser=parse_duration)
]

VALUE_BYTES_MAX = 64 * 1024 * 1024
"""What is read from standard input at most: no server takes more in one message."""

COLUMN_WIDTH_MAX = 60
"""Columns of a value in a table; `get` shows all of it."""

T = TypeVar("T")


def with_bucket(name: str, work: "Callable[[Bucket[bytes]], Awaitable[T]]", *, reconnect: bool = False) -> T:
    """Connect, open a bucket, and return what the work returns."""

    async def opened(api: "Api") -> T:
        from jetlake.kv.buckets import Buckets

        return await work(await Buckets(api).open(name))

    return run(opened, reconnect=reconnect)


def read_value(value: str | None) -> bytes:
    """Return a value of the line, or of standard input."""
    if value is not None and value != "-":
        return value.encode()
    if value is None and sys.stdin.isatty():
        raise typer.BadParameter("the value is missing: give it, or - to type it")
    data = sys.stdin.buffer.read(VALUE_BYTES_MAX + 1)
    if len(data) > VALUE_BYTES_MAX:
        raise typer.BadParameter(f"the value has more than {VALUE_BYTES_MAX:,} bytes: no server takes it")
    return data


def put(bucket: BucketArgument, key: KeyArgument, value: ValueArgument = None, as_json: JsonOption = False) -> None:
    """Set a key."""
    data = read_value(value)
    revision = with_bucket(bucket, lambda opened: opened.put(key, data))
    _written(bucket, key, revision, f"Set {key} in revision {revision}", as_json=as_json)


def create(
    bucket: BucketArgument,
    key: KeyArgument,
    value: ValueArgument = None,
    ttl: TtlOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Set a key that has no value yet."""
    data = read_value(value)
    revision = with_bucket(bucket, lambda opened: opened.create(key, data, ttl_s=ttl / SECOND if ttl else None))
    _written(bucket, key, revision, f"Created {key} in revision {revision}", as_json=as_json)


def update(
    bucket: BucketArgument,
    key: KeyArgument,
    value: Annotated[str, typer.Argument(help="The value; - reads it from standard input.", metavar="VALUE")],
    revision: Annotated[int, typer.Argument(min=0, help="The revision it must have now; 0: none.", metavar="REVISION")],
    as_json: JsonOption = False,
) -> None:
    """Set a key if its last revision is the given one."""
    data = read_value(value)
    made = with_bucket(bucket, lambda opened: opened.update(key, data, revision))
    _written(bucket, key, made, f"Updated {key}, new revision {made}", as_json=as_json)


def get(
    bucket: BucketArgument,
    key: KeyArgument,
    raw: Annotated[bool, typer.Option("--raw", help="Print the bytes of the value and nothing else.")] = False,
    revision: Annotated[int, typer.Option(min=0, help="The value of this revision.")] = 0,
    consistent: Annotated[bool, typer.Option("--consistent", help="Ask the leader of the bucket.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the value of a key."""
    entry = with_bucket(bucket, lambda opened: opened.get(key, revision=revision or None, consistent=consistent))
    if as_json:
        print_json(entry_json(entry))
        return
    value = entry.value or b""
    if raw:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
        return
    if is_terminal():
        created = entry.created.strftime("%Y-%m-%d %H:%M:%S UTC")
        print_note(f"{bucket} > {key} revision {entry.revision} created {created}\n", style="bold")
    typer.echo(shown_value(value))


def delete(bucket: BucketArgument, key: KeyArgument, force: ForceOption = False) -> None:
    """Delete a key; its history stays."""
    confirm(f"Really delete the key {key} of bucket {bucket}?", force=force)
    revision = with_bucket(bucket, lambda opened: opened.delete(key))
    print_note(f"Deleted {key} in revision {revision}")


def purge(bucket: BucketArgument, key: KeyArgument, ttl: TtlOption = 0, force: ForceOption = False) -> None:
    """Delete a key with its history. With --ttl even the marker goes away after that time."""
    confirm(f"Really delete the key {key} of bucket {bucket} with its history?", force=force)
    revision = with_bucket(bucket, lambda opened: opened.purge(key, ttl_s=ttl / SECOND if ttl else None))
    print_note(f"Purged {key} in revision {revision}")


def revert(
    bucket: BucketArgument,
    key: KeyArgument,
    revision: Annotated[int, typer.Argument(min=1, help="The revision whose value to restore.")],
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give a key the value of an earlier revision."""
    confirm(f"Really set the key {key} of bucket {bucket} to its value of revision {revision}?", force=force)
    made = with_bucket(bucket, lambda opened: opened.revert(key, revision))
    _written(bucket, key, made, f"Reverted {key} to revision {revision}, new revision {made}", as_json=as_json)


def history(bucket: BucketArgument, key: KeyArgument, as_json: JsonOption = False) -> None:
    """List the revisions there are of a key."""
    from jetlake.errors import NotFoundError

    async def work(opened: "Bucket[bytes]") -> "list[Entry[bytes]]":
        entries = await opened.history(key)
        if not entries:
            raise NotFoundError(f"key {key!r} of bucket {bucket} has no history")
        return entries

    entries = with_bucket(bucket, work)
    if as_json:
        print_json([entry_json(entry) for entry in entries])
        return
    rows: list[tuple[Cell, ...]] = [
        (
            entry.revision,
            str(entry.operation),
            entry.created.isoformat(timespec="seconds"),
            Bytes(entry.size_bytes or 0),
            shortened(shown_value(entry.value), COLUMN_WIDTH_MAX),
        )
        for entry in entries
    ]
    print_table(("revision", "operation", "created", "size", "value"), rows)


def keys(
    bucket: BucketArgument,
    patterns: Annotated[
        list[str] | None, typer.Argument(help="Only these; * is one token, > all that follow.", metavar="KEY")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the keys that have a value."""
    found = sorted(with_bucket(bucket, lambda opened: opened.keys(*(patterns or []))))
    if as_json:
        print_json(found)
    else:
        # One write: a bucket may have a million keys.
        typer.echo("".join(f"{key}\n" for key in found), nl=False)


def _written(bucket: str, key: str, revision: int, note: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"bucket": bucket, "key": key, "revision": revision})
    else:
        print_note(note)
