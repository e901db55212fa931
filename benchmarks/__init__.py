"""Jetlake and nats-server, measured in one run with the same clients. `make bench` runs it all.

- `workloads`: what is measured and which goals it has, as data.
- `servers`: the two servers as processes, what they use of the machine.
- `measure`: one workload, once, at one server. `idle_memory` and `cold_start` are the two that are no load.
- `websocket_cost`: what WebSocket costs each server; a run of its own, `python -m benchmarks.websocket_cost`.
- `tls_cost`: what TLS costs each server; a run of its own, `python -m benchmarks.tls_cost`.
- `flood`: what clients that nobody knows cost, `strangers`; a run of its own, `python -m benchmarks.flood`.
- `floods`: how much one account, or a client without credentials, slows another down; `python -m benchmarks.floods`.
- `streams`: streams, durable here and not durable there; `stream_workloads`, `stream_servers` and `stream_measure` are
  to it what the first three are to `run`.
- `consumers`: everything that reads a stream; `consumer_workloads` and `consumer_measure` are to it what those are to
  `streams`.
- `turns`: both servers take turns on one workload of these two.
- `store`: the message store by itself.
- `device_pipeline`: the pipeline `devices` and its decoder; a run of its own, `python -m benchmarks.device_pipeline`.
- `figures`: medians, spreads, ratios, and whether a goal is reached.
- `report`, `plot`: the results as a table, as JSON, and as a page with pictures.
- `run`: the command line, and the order of things: both servers take turns, in every repeat.
"""
