"""A server: everything around the engine that happens once per decision.

In the order of one start:

- `early_port`      the client port, before anything else is loaded; `entry` is that of `jetlake-nats-server`
- `addresses`       the usual host and port, and what a number for a port means
- `times`           the longest time that a server is asked to wait
- `main`            argv in, exit code out, for `jetlake server` and `jetlake-nats-server`
- `flags`           nats-server's command line, in Go's flag syntax
- `configuration`   nats-server's configuration files, turned into options
- `options`         `ServerOptions`: everything a server needs to know, from wherever it came
- `process`         a server as a process: log, signals, exit code
- `server`          `Server`: starts and stops one engine; the same for processes and for Python programs
- `banner`          the start-up lines
- `listeners`       where a running server listens: its URLs, its lines in the log, its ports
- `engine_errors`   the engine's errors in words for an operator
- `unserved`        what this build accepts without serving it, one warning each
- `events`          the thread that receives from the engine: log lines, logins, requests, the end
- `access_control`  who may come in and which accounts there are, in force
- `authentication`  who may come in; `nkeys` are keys that sign instead of passwords
- `claims`          operator mode: accounts and users by signed claims (JWT)
- `callout`         a service that decides about clients is asked
- `jetstream`       streams and their API, which `jetlake.management` decides
- `monitoring`      what `jetlake.monitoring` shows of this server, and its port
- `system`          the system account: what a server answers about itself, and what it tells unasked
- `log`             nats-server's log format, to stderr or a file; `python_log` forwards to `logging` instead
- `files`           pid file and ports file; `own_files` are those of one server
- `store_folder`    the folder that JetStream stores in
- `reload`          what may change while a server runs, and what may not
- `leaf_reload`     the same for leaf nodes
- `signals`         signals received, and `--signal` to send one
- `choria`          what a server does for Choria: streams, lifecycle events, adapters
- `children`        features that run beside a server as processes of their own, kept running
- `lame_duck`       how a server leaves without all its clients coming back at once
"""
