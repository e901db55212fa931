"""`jetlake choria kv`: the key-value commands of Choria, with the output that Choria 0.23 printed.

```text
$ choria kv get CFG auth.username
CFG > auth.username created @ 05 Aug 21 10:55 UTC

bob
```

It does what `jetlake kv` does; the words and the output are different.
"""

import argparse
import asyncio
import base64
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jetlake.cli.choria import CommandLine, use_servers
from jetlake.cli.choria_kv_api import add_api_flags, run_api
from jetlake.cli.choria_kv_buckets import open_or_create
from jetlake.cli.invocation import current, enter
from jetlake.cli.kv_values import VALUE_BYTES_MAX
from jetlake.errors import ClientError
from jetlake.kv.config import BucketConfig
from jetlake.presentation.quantities import SECOND, read_duration
from jetlake.shared.go_text import duration_text

if TYPE_CHECKING:
    from jetlake.kv.bucket import Bucket, BucketStatus
    from jetlake.kv.buckets import Buckets
    from jetlake.kv.entry import Entry

DONE, FAILED = 0, 1

RFC_822 = "%d %b %y %H:%M %Z"
"""How Choria prints times."""

SHORT_VALUE_MAX, VALUE_ENDS = 40, 15
"""In tables a longer value is shown by its first and last letters."""

COLUMNS = 80
"""Columns of a value where there is no terminal."""

GREEN, RED, PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[0m"

OPERATIONS = {"PUT": "PUT", "DEL": "DEL", "PURGE": "PURGE"}

Work = Callable[["Buckets", argparse.Namespace], Awaitable[int]]


def main(words: list[str], line: CommandLine) -> int:
    """Run one command and return the exit code."""
    options = parser().parse_args(words)
    if not hasattr(options, "work"):
        parser().print_help()
        return DONE
    enter(use_servers(current(), line.settings()))
    return asyncio.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    from jetlake.client.api import open_api
    from jetlake.kv.buckets import Buckets

    async with open_api(current().access(), reconnect=options.work is watch) as api:
        code: int = await options.work(Buckets(api), options)
        return code


def parser() -> argparse.ArgumentParser:
    """Return the parser of the words after `choria kv`."""
    made = argparse.ArgumentParser(prog="choria kv", description="Key-value buckets.")
    commands = made.add_subparsers(metavar="COMMAND")

    def command(names: str, work: Work, help_text: str) -> argparse.ArgumentParser:
        name, *aliases = names.split()
        below = commands.add_parser(name, aliases=aliases, help=help_text, description=help_text)
        below.set_defaults(work=work)
        return below

    below = command("add new create-bucket", add, "Create a bucket.")
    below.add_argument("bucket")
    below.add_argument("--history", type=int, default=5, help="values kept of each key")
    below.add_argument("--ttl", type=read_duration, default=0, help="remove values after this time")
    below.add_argument("--replicas", type=int, default=1, help="copies in a cluster")
    below.add_argument("--max-value-size", type=int, default=10240, help="largest value in bytes")
    below.add_argument("--max-bucket-size", type=int, default=-1, help="largest size of the bucket in bytes")
    below.add_argument("--direct", action=argparse.BooleanOptionalAction, default=True, help="any server may answer")
    below = command("put", put, "Set a key.")
    _arguments(below, "bucket", "key", "value")
    below = command("get", get, "Print the value of a key.")
    _arguments(below, "bucket", "key")
    below.add_argument("--raw", action="store_true", help="print the bytes of the value and nothing else")
    below = command("create", create, "Set a key that has no value.")
    _arguments(below, "bucket", "key", "value?")
    below = command("update", update, "Set a key if its revision is the given one.")
    _arguments(below, "bucket", "key", "value?")
    below.add_argument("revision", type=int, nargs="?", default=0)
    below = command("del rm", delete, "Delete a key, or a bucket.")
    _arguments(below, "bucket", "key?")
    below.add_argument("-f", "--force", action="store_true", help="do not ask")
    below = command("purge", purge, "Delete a key with its history, or all values of a bucket.")
    _arguments(below, "bucket", "key?")
    below.add_argument("-f", "--force", action="store_true", help="do not ask")
    below = command("history", history, "List the values of a key.")
    _arguments(below, "bucket", "key")
    below = command("keys", keys, "List the keys of a bucket.")
    below.add_argument("bucket")
    below.add_argument("--json", action="store_true", help="print JSON")
    below = command("watch", watch, "Print values and their changes.")
    _arguments(below, "bucket", "key?")
    below.add_argument("--once", action="store_true", help="print the first value and stop")
    below.add_argument("--timeout", type=read_duration, default=0, help="stop after this time")
    command("list ls", list_all, "List the buckets.")
    below = command("status info", status, "Show how a bucket stands.")
    below.add_argument("bucket")
    below = command("backup", backup, "Write a bucket to a folder.")
    _arguments(below, "bucket", "folder")
    below = command("restore", restore, "Create a bucket from a folder.")
    below.add_argument("folder")
    below = command("dump", dump, "Print all values as JSON.")
    below.add_argument("bucket")
    add_api_flags(command("api", run_api, "Manage buckets with JSON."))
    return made


def _arguments(below: argparse.ArgumentParser, *names: str) -> None:
    for name in names:
        below.add_argument(name.removesuffix("?"), nargs="?" if name.endswith("?") else None)


# The commands, each with the buckets of a connection and what the line says.


async def add(buckets: "Buckets", options: argparse.Namespace) -> int:
    wanted = BucketConfig(
        bucket=options.bucket,
        history=options.history,
        ttl_s=options.ttl / SECOND,
        replicas=options.replicas,
        max_value_bytes=options.max_value_size,
        max_bytes=options.max_bucket_size,
        allow_direct=options.direct,
    )
    made = await open_or_create(buckets, wanted)
    print(_block(made, with_values=False))
    return DONE


async def put(buckets: "Buckets", options: argparse.Namespace) -> int:
    value = _value(options.value)
    await (await buckets.open(options.bucket)).put(options.key, value)
    _print_bytes(value)
    return DONE


async def get(buckets: "Buckets", options: argparse.Namespace) -> int:
    entry = await (await buckets.open(options.bucket)).get(options.key)
    value = entry.value or b""
    if options.raw:
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
        return DONE
    print(f"{options.bucket} > {options.key} created @ {entry.created.strftime(RFC_822)}\n")
    text, columns = _text(value), shutil.get_terminal_size((COLUMNS, 24)).columns
    if len(text) > columns:
        print(f"Showing first {columns} characters, use --raw for full value\n")
        text = text[:columns]
    print(f"{text}\n")
    return DONE


async def create(buckets: "Buckets", options: argparse.Namespace) -> int:
    value = _value(options.value)
    await (await buckets.open(options.bucket)).create(options.key, value)
    _print_bytes(value)
    return DONE


async def update(buckets: "Buckets", options: argparse.Namespace) -> int:
    value = _value(options.value)
    revision = await (await buckets.open(options.bucket)).update(options.key, value, options.revision)
    print(f"Updated {options.key}, new revision {revision}")
    return DONE


async def delete(buckets: "Buckets", options: argparse.Namespace) -> int:
    if options.key is None:
        if _is_sure(f"Really remove the {options.bucket} bucket", options):
            await buckets.delete(options.bucket)
        return DONE
    bucket = await buckets.open(options.bucket)
    if _is_sure(f"Really remove the {options.key} key from bucket {options.bucket}", options):
        await bucket.delete(options.key)
    return DONE


async def purge(buckets: "Buckets", options: argparse.Namespace) -> int:
    bucket = await buckets.open(options.bucket)
    if options.key is None:
        if _is_sure(f"Really remove the {options.bucket} bucket", options):
            await bucket.clear()
    elif _is_sure(f"Really remove the {options.bucket} > {options.key}", options):
        await bucket.purge(options.key)
    return DONE


async def history(buckets: "Buckets", options: argparse.Namespace) -> int:
    entries = await (await buckets.open(options.bucket)).history(options.key)
    if not entries:
        raise ClientError("unknown key")
    rows = [
        (
            str(entry.revision),
            OPERATIONS[entry.operation],
            _local(entry.created).strftime(RFC_822),
            str(entry.size_bytes or 0),
            _short(_text(entry.value or b"")),
        )
        for entry in entries
    ]
    print(_table(("Seq", "Operation", "Time", "Length", "Value"), rows))
    return DONE


async def keys(buckets: "Buckets", options: argparse.Namespace) -> int:
    found = sorted(await (await buckets.open(options.bucket)).keys())
    if options.json:
        _print_json(found)
    else:
        sys.stdout.write("".join(f"{key}\n" for key in found))
    return DONE


async def watch(buckets: "Buckets", options: argparse.Namespace) -> int:
    bucket = await buckets.open(options.bucket)
    try:
        async with asyncio.timeout(options.timeout / SECOND if options.timeout else None):
            await _watch(bucket, options)
    except TimeoutError as error:
        if options.once:
            raise ClientError("timeout") from error
    return DONE


async def _watch(bucket: "Bucket[bytes]", options: argparse.Namespace) -> None:
    patterns = [options.key] if options.key else []
    async with bucket.watch(*patterns, ignore_deletes=options.once) as watcher:
        async for entry in watcher:
            if entry is None:
                continue
            if options.once:
                _print_bytes(entry.value or b"")
                return
            print(_change(entry), flush=True)


def _change(entry: "Entry[bytes]") -> str:
    word = OPERATIONS[entry.operation]
    if sys.stdout.isatty():
        word = f"{RED if entry.is_deleted else GREEN}{word}{PLAIN}"
    created = _local(entry.created).strftime("%Y-%m-%d %H:%M:%S")
    value = "" if entry.is_deleted else f": {_text(entry.value or b'')}"
    return f"[{created}] {word} {entry.bucket}.{entry.key}{value}"


async def list_all(buckets: "Buckets", options: argparse.Namespace) -> int:
    del options
    found = await buckets.list()
    if not found:
        print("No Key-Value stores found")
        return DONE
    rows = [(status.bucket, str(status.config.history), str(status.values)) for status in found]
    print(_table(("Bucket", "History", "Values"), rows))
    return DONE


async def status(buckets: "Buckets", options: argparse.Namespace) -> int:
    print(_block(await buckets.status(options.bucket), with_values=True))
    return DONE


async def backup(buckets: "Buckets", options: argparse.Namespace) -> int:
    count = await buckets.backup(options.bucket, Path(options.folder))
    print(f"Created {count} bytes backup of bucket {options.bucket} in {options.folder}")
    return DONE


async def restore(buckets: "Buckets", options: argparse.Namespace) -> int:
    received = 0

    def tell(count: int) -> None:
        nonlocal received
        received += count

    await buckets.restore(Path(options.folder), tell=tell)
    print(f"Restored {received} bytes backup from {options.folder}")
    return DONE


async def dump(buckets: "Buckets", options: argparse.Namespace) -> int:
    entries = await (await buckets.open(options.bucket)).entries()
    _print_json(
        {
            entry.key: {
                "bucket": entry.bucket,
                "key": entry.key,
                "val": base64.b64encode(entry.value or b"").decode(),
                "created": entry.created_ns,
                "seq": entry.revision,
                "operation": OPERATIONS[entry.operation],
            }
            for entry in sorted(entries, key=lambda entry: entry.key)
        }
    )
    return DONE


# How it is printed.


def _block(found: "BucketStatus", *, with_values: bool) -> str:
    config = found.config
    facts = {
        "Bucket Name": config.bucket,
        **({"Values Stored": found.values} if with_values else {}),
        "History": config.history,
        "TTL": duration_text(round(config.ttl_s * SECOND)),
        "Max Bucket Size": config.max_bytes,
        "Max Value Size": config.max_value_bytes,
    }
    lines = [f"{name:>16}: {value}" for name, value in facts.items()]
    return "\n".join([f"{config.bucket} Key-Value Store", "", *lines])


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[number]) for row in (columns, *rows)) for number in range(len(columns))]
    edge = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def line(row: tuple[str, ...]) -> str:
        return "|" + "|".join(f" {cell:<{width}} " for cell, width in zip(row, widths, strict=True)) + "|"

    return "\n".join([edge, line(columns), edge, *map(line, rows), edge])


def _text(value: bytes) -> str:
    """Return a value as text, in base64 if it is not printable ASCII."""
    try:
        text = value.decode("ascii")
    except UnicodeDecodeError:
        return base64.b64encode(value).decode()
    is_text = all(letter.isprintable() or letter in "\n\r\t" for letter in text)
    return text if is_text else base64.b64encode(value).decode()


def _short(text: str) -> str:
    return text if len(text) <= SHORT_VALUE_MAX else f"{text[:VALUE_ENDS]}...{text[-VALUE_ENDS:]}"


def _local(moment: datetime) -> datetime:
    return moment.astimezone()


def _value(text: str | None) -> bytes:
    if text is not None and text != "-":
        return text.encode()
    data = sys.stdin.buffer.read(VALUE_BYTES_MAX + 1)
    if len(data) > VALUE_BYTES_MAX:
        raise ClientError(f"the value has more than {VALUE_BYTES_MAX:,} bytes: no server takes it")
    return data


def _is_sure(question: str, options: argparse.Namespace) -> bool:
    if options.force:
        return True
    if sys.stdin.isatty():
        print(f"? {question} (y/N) ", end="", flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return True
    print("Skipping")
    return False


def _print_bytes(value: bytes) -> None:
    sys.stdout.buffer.write(value + b"\n")
    sys.stdout.buffer.flush()


def _print_json(value: Any) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
