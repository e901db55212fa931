"""Key-value buckets, laid out on streams as every NATS client does it.

```python
from jetlake import kv

async with kv.connect() as buckets:
    bucket = await buckets.create("CFG", str)
    await bucket.put("auth.username", "bob")
    print((await bucket.get("auth.username")).value)
```

- `buckets`   `Buckets` and `connect`: creates, opens, lists, saves and removes buckets
- `bucket`    `Bucket`: reads and writes keys
- `watching`  `Watcher`: values and their changes as they happen
- `entry`     `Entry`: one revision of a key
- `config`    `BucketConfig`: what a bucket is like, and the stream that it is
- `codecs`    `Codec`: typed values
- `names`     what names and keys may be
- `sync`      all of it without an event loop
"""

from jetlake.kv.bucket import Bucket, BucketStatus
from jetlake.kv.buckets import Buckets, connect
from jetlake.kv.codecs import Codec
from jetlake.kv.config import BucketConfig, Origin, Republish
from jetlake.kv.entry import Entry, Operation
from jetlake.kv.watching import Watcher

__all__ = [
    "Bucket",
    "BucketConfig",
    "BucketStatus",
    "Buckets",
    "Codec",
    "Entry",
    "Operation",
    "Origin",
    "Republish",
    "Watcher",
    "connect",
]
