"""How everything that is not the server reaches a server, ours or another one.

- `connection`    `connect`: a client of the ecosystem's library, nats-py
- `access`        `Access`: address, credentials and limits, from options, variables and contexts
- `contexts`      named connections, in the files of NATS' own command line
- `guarded`       nats-py's client, which says nothing in the clear when TLS is wanted
- `signing`       keys and credentials of a user
- `api`           `Api`: the JetStream API of one server
- `streams`       what is asked of a server about its streams once
- `pulls`         messages of a stream, by a consumer that is there or by one of one's own
- `archives`      backups of streams as folders
- `digest`        one value that changes with every message of a stream
- `schemas`       JSON schemas, and the check of a value by one
- `dead_letters`  messages that consumers have given up on
- `load`          the native load generator behind `jetlake bench`
"""
