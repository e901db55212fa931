"""A key-value bucket with history, conflicts and a watcher, and a file in an object store.

Invariant: the watcher must see every change of the watched keys once, in the order of the revisions.
"""

import asyncio
import hashlib
import random

from jetlake import kv, objects
from jetlake.demo.scene import Scene, Script, in_event_loop
from jetlake.demo.stage import Stage
from jetlake.errors import ConflictError

__all__ = ["SCRIPTS"]

BUCKET = "settings"
HISTORY = 5
KEY = "web.timeout"
VALUES = ("10s", "15s", "20s", "30s")
OTHER_KEYS = 20

STORE = "files"
OBJECT = "report.bin"
OBJECT_BYTES = 8 * 1024 * 1024

WATCH_S_MAX = 30.0
"""How long a change may take to reach a watcher, on a busy machine."""


async def _key_value(stage: Stage, scene: Scene) -> None:
    async with kv.connect(stage.access) as buckets:
        bucket = await buckets.create(kv.BucketConfig(bucket=BUCKET, history=HISTORY), str)
        async with bucket.watch(KEY, updates_only=True) as watcher:
            seen = asyncio.create_task(_watched(watcher, len(VALUES)))
            revisions = [await bucket.put(KEY, value) for value in VALUES]
            for number in range(OTHER_KEYS):
                await bucket.put(f"limits.tenant-{number}", f"{number * 100}")
            async with asyncio.timeout(WATCH_S_MAX):
                changes = await seen
        conflict = "stored"
        try:
            await bucket.update(KEY, "5s", revisions[0])
        except ConflictError:
            conflict = "refused"
        history = await bucket.history(KEY)
        keys = await bucket.keys()
    scene.rows += [(f"revision {entry.revision}", KEY, str(entry.value)) for entry in history]
    scene.rows.append(("update of an old revision", KEY, conflict))
    kept = [str(entry.value) for entry in history]
    scene.check("the history has every value", expected=", ".join(VALUES), found=", ".join(kept))
    scene.check("the watcher saw every change in order", expected=", ".join(VALUES), found=", ".join(changes))
    scene.check("an update of an old revision is refused", expected="refused", found=conflict)
    scene.check("all keys are there", expected=1 + OTHER_KEYS, found=len(keys))


async def _watched(watcher: "kv.Watcher[str]", count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        entry = await anext(watcher)
        if entry is not None:
            found.append(str(entry.value))
    return found


async def _object(stage: Stage, scene: Scene) -> None:
    content = random.Random(OBJECT).randbytes(OBJECT_BYTES)
    async with objects.connect(stage.access) as stores:
        store = await stores.create(STORE)
        info = await store.put(OBJECT, content, description="random bytes of the demo")
        returned = await store.get(OBJECT)
    sent, found = (hashlib.sha256(data).hexdigest() for data in (content, returned))
    scene.rows.append((OBJECT, info.size, info.chunks, f"{found[:16]}…"))
    scene.check("the object comes back byte by byte", expected=sent, found=found)


SCRIPTS = (
    Script(
        "kv",
        "Key-value bucket",
        f"A bucket keeps {HISTORY} revisions of each key. A watcher hears of every change, and an update of an "
        "old revision is refused.",
        ("what", "key", "value"),
        in_event_loop(_key_value),
    ),
    Script(
        "objects",
        "Object store",
        "A file of 8 MiB, stored in chunks and read back.",
        ("object", "bytes", "chunks", "SHA-256"),
        in_event_loop(_object),
    ),
)
