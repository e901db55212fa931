"""Configuration files: nats-server's grammar and its keys, turned into `ServerOptions`.

From the characters to the options:

- `lexer`        keys, texts, numbers, comments
- `parser`       maps, lists, variables, includes
- `document`     the result: values, each with its place in the file
- `quantities`   durations, sizes, addresses
- `section`      typed access to one map; notes every mistake with file, line and column
- `address`      where clients connect; read by itself before the rest is loaded
- `top_level`    the keys outside all blocks
- `accounts`     the blocks `authorization` and `accounts`
- `callout`      the service that decides about clients
- `users`        lists of users
- `operators`    operator mode: whom the server trusts, and where it finds claims
- `exports`      what an account shows to others and sees of them
- `latency`      where events about the duration of requests go, and for which of them
- `mappings`     what becomes of subjects that clients publish to
- `message_trace` where an account wants traces of messages
- `permissions`  what a user may publish and subscribe to
- `tls`          the block `tls`
- `websocket`    the block `websocket`
- `leafnodes`    the block `leafnodes`
- `leaf_remotes` the hubs that the server is a leaf node of
- `leaf_compression` how leaf connections compress
- `jetstream`    the block `jetstream`, of the server and of an account
- `choria`       the block `choria`
- `remotes`      the block `remotes` of `jetstream`
- `submission`   the block `submission`
- `dashboard`    the block `dashboard`
- `unsupported`  keys that are refused, and what to do instead
- `digest`       the digest of a configuration
- `load`         all of the above, from a file's name to options
- `source`       a file and the flags over it, to be read more than once

A server without a file imports none of this.
"""
