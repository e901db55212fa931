"""Where the events of an aggregate are.

- `contract`   what a store can do, and the aggregates it keeps at hand
- `in_stream`  the stream: an event is stored by being published
- `in_memory`  core mode: memory first, the bus second, and nothing after a restart
"""
