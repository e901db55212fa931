"""Buckets as `choria kv add` makes them: one that exists is taken as it is, and one server is enough for any replicas.

Choria's documents create buckets with three replicas. A server that is not part of a cluster refuses that; the bucket
then has one copy, and a line on standard error says so.
"""

import sys
from typing import TYPE_CHECKING

import msgspec

from jetlake.errors import ApiError, NotFoundError
from jetlake.kv.config import BucketConfig

if TYPE_CHECKING:
    from jetlake.kv.bucket import BucketStatus
    from jetlake.kv.buckets import Buckets

REPLICAS_NOT_SUPPORTED = 10074
"""The refusal of a server without a cluster."""


async def open_or_create(buckets: "Buckets", wanted: BucketConfig) -> "BucketStatus":
    """Return the bucket of that name, made if there is none."""
    try:
        return await buckets.status(wanted.bucket)
    except NotFoundError:
        pass
    try:
        made = await buckets.create(wanted)
    except ApiError as error:
        if error.error_code != REPLICAS_NOT_SUPPORTED:
            raise
        made = await buckets.create(msgspec.structs.replace(wanted, replicas=1))
        print(
            f"WARN: this server is not part of a cluster: {wanted.bucket} has 1 replica instead of {wanted.replicas}",
            file=sys.stderr,
        )
    return await made.status()
