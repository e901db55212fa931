"""How everything that is not the server reaches a server, ours or another one.

- `connection`  `connect`: a client of the ecosystem's library, nats-py
- `load`        the native load generator behind `jetlake bench`
"""
