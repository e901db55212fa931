"""`choria kv api`: buckets managed by other programs, such as Puppet, in JSON.

Invariants: standard output holds one JSON value; `{"error": …}` comes with exit code 1. `--ensure` never removes a
bucket: the programs run again and again, and what users have stored since stays.
"""

import argparse
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from jetlake.cli.choria_kv_buckets import REPLICAS_NOT_SUPPORTED, open_or_create
from jetlake.errors import ApiError, JetlakeError, NotFoundError
from jetlake.kv.config import BucketConfig

if TYPE_CHECKING:
    from jetlake.kv.bucket import BucketStatus
    from jetlake.kv.buckets import Buckets

DONE, FAILED = 0, 1


def add_api_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    action = parser.add_mutually_exclusive_group(required=True)
    for name, help_text in (
        ("check", "tell whether this command works"),
        ("list", "list the buckets"),
        ("ensure", "create or change a bucket"),
        ("delete", "delete a bucket"),
    ):
        action.add_argument(f"--{name}", action="store_true", help=help_text)
    parser.add_argument("--name", help="the bucket")
    parser.add_argument("--history", type=int, default=5)
    parser.add_argument("--expire", type=int, default=0, metavar="SECONDS")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--max-value-size", type=int, default=10240)
    parser.add_argument("--max-bucket-size", type=int, default=-1)
    parser.add_argument("--force", action="store_true", help="change the replicas of a bucket too")


async def run_api(buckets: "Buckets", options: argparse.Namespace) -> int:
    """Do what is asked, print the answer and return the exit code."""
    try:
        answer = await _answer(buckets, options)
    except JetlakeError as error:
        print(msgspec.json.encode({"error": str(error)}).decode())
        return FAILED
    print(msgspec.json.encode(answer).decode())
    return DONE


async def _answer(buckets: "Buckets", options: argparse.Namespace) -> Any:
    if options.check:
        return {"api": "ok"}
    if options.list:
        return [_described(status) for status in await buckets.list()]
    if not options.name:
        raise NotFoundError("--name is missing")
    if options.delete:
        await buckets.delete(options.name)
        return {}
    return _described(await _ensure(buckets, options))


async def _ensure(buckets: "Buckets", options: argparse.Namespace) -> "BucketStatus":
    wanted = BucketConfig(
        bucket=options.name,
        history=options.history,
        ttl_s=options.expire,
        replicas=options.replicas,
        max_value_bytes=options.max_value_size,
        max_bytes=options.max_bucket_size,
    )
    try:
        found = await buckets.status(wanted.bucket)
    except NotFoundError:
        return await open_or_create(buckets, wanted)
    changed = msgspec.structs.replace(
        found.config,
        history=wanted.history,
        ttl_s=wanted.ttl_s,
        max_value_bytes=wanted.max_value_bytes,
        max_bytes=wanted.max_bytes,
    )
    if options.force and found.config.replicas != wanted.replicas:
        try:
            return await buckets.update(msgspec.structs.replace(changed, replicas=wanted.replicas))
        except ApiError as error:
            if error.error_code != REPLICAS_NOT_SUPPORTED:
                raise
            # The values in the bucket are worth more than its copies: the rest is changed without them.
            text = f"WARN: this server is not part of a cluster: {wanted.bucket} keeps 1 replica, not {wanted.replicas}"
            print(text, file=sys.stderr)
    return found if changed == found.config else await buckets.update(changed)


def _described(status: "BucketStatus") -> dict[str, Any]:
    config = status.config
    return {
        "name": config.bucket,
        "history": config.history,
        "expire": round(config.ttl_s),
        "replicas": config.replicas,
        "max_value_size": config.max_value_bytes,
        "max_bucket_size": config.max_bytes,
    }
