"""The pages of the dashboard, in the order of the navigation.

- `page`       `Page`: what the navigation, the keyboard and the search know of one
- `overview`   what the server is doing now
- `streams`    all streams, with their rates; delete
- `stream`     one stream; `stream_subjects`, `stream_browse` (messages), `stream_tail`, `stream_publish`, `stream_edit`
  and `stream_purge` are its other pages, `stream_frame` what they share
- `consumers`  consumers of a stream, create one; `consumer` one of them: why, pause, reset and delete
- `kv`         key-value buckets; `kv_bucket` their keys, `kv_key` one key with its revisions
- `objects`    object stores and objects; `object_transfer` contents up and down
- `governors`  governors, their slots and holders; evict
- `dead_letters`  dead letters by cause (`dead_groups`); `dead_letter` one of them, redrive and delete
- `devices`    devices of the event bus, and one of them
- `fleet`      nodes, checks and machines
- `pipelines`  pipelines of the lake, their tables and reports
- `sql`        queries over streams and lake tables
- `configuration`  a declaration as a diff, and apply
"""

from jetlake.dashboard.pages import (
    configuration,
    dead_letters,
    devices,
    fleet,
    governors,
    kv,
    objects,
    overview,
    pipelines,
    sql,
    streams,
)
from jetlake.dashboard.pages.page import Page

__all__ = ["PAGES"]

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    streams.PAGE,
    kv.PAGE,
    objects.PAGE,
    governors.PAGE,
    dead_letters.PAGE,
    devices.PAGE,
    fleet.PAGE,
    pipelines.PAGE,
    sql.PAGE,
    configuration.PAGE,
)
