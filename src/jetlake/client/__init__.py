"""How everything that is not the server reaches a server, ours or another one.

- `connection`    `connect`: a client of the ecosystem's library, nats-py
- `access`        `Access`: address, credentials and limits, from options, variables and contexts
- `contexts`      named connections, in the files of NATS' own command line
- `guarded`       nats-py's client, which says nothing in the clear when TLS is wanted
- `user_keys`     keys and credentials of a user
- `signing`       nats-py's client for users with keys
- `api`           `Api`: the JetStream API of one server
- `streams`       what is asked of a server about its streams once
- `pulls`         messages of a stream, by a consumer that is there or by one of one's own
- `archives`      backups of streams as folders
- `digest`        one value that changes with every message of a stream
- `schemas`       JSON schemas, and the check of a value by one
- `dead_letters`  messages that consumers have given up on
- `preview`       requests in the dialects of 2019 and 2020
- `raw_connection`   one blocking connection: socket, TLS, CONNECT, requests, bytes for the engine's bulk part
- `raw_credentials`  what a client shows of itself in CONNECT
- `raw_streams`      what is asked about streams over a blocking connection
- `load`          the native load generator behind `jetlake bench`
"""
