"""What the tools of 2019 and 2020 are made of: `jetlake jsm`, `jetlake nats`, and those that `jetlake shims` writes.

- `options`      the command line of `nats`
- `streams`      `nats stream …`
- `consumers`    `nats consumer …`
- `tools`        `nats-pub`, `nats-sub`, `nats-req` and `nats-bench`
- `listening`    showing messages as they come
- `terminal`     prompts, and what is typed
- `texts`        numbers, sizes and durations as they were written
- `struct_diff`  two configurations, compared
"""
