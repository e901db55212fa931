"""Object stores: files of any size in streams, laid out as every NATS client does it.

```python
from jetlake import objects

async with objects.connect() as stores:
    store = await stores.create("FILES")
    await store.put("greeting", b"hello")
    print(await store.get("greeting"))
```

- `stores`       `Stores` and `connect`: creates, opens, lists, saves and removes object stores
- `store`        `ObjectStore`: reads and writes objects
- `uploading`    contents into a stream, several chunks under way
- `downloading`  contents out of a stream, verified
- `sources`      what an object can be made of
- `watching`     `ObjectWatcher`: objects and their changes as they happen
- `info`         `ObjectInfo`: what is known about an object
- `config`       `StoreConfig`: what an object store is like, and the stream that it is
- `names`        what names may be, and their subjects
- `sync`         all of it without an event loop
"""

from jetlake.objects.config import StoreConfig
from jetlake.objects.info import Link, ObjectInfo
from jetlake.objects.store import ObjectStore, StoreStatus
from jetlake.objects.stores import Stores, connect
from jetlake.objects.watching import ObjectWatcher

__all__ = [
    "Link",
    "ObjectInfo",
    "ObjectStore",
    "ObjectWatcher",
    "StoreConfig",
    "StoreStatus",
    "Stores",
    "connect",
]
