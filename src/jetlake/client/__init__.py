"""How everything that is not the server reaches a server, ours or another one.

- `connection`    `connect`: a client of the ecosystem's library, nats-py
- `streams`       what is asked of a server about its streams
- `dead_letters`  messages that consumers have given up on
- `load`          the native load generator behind `jetlake bench`
"""
