"""The command `jetlake`: one file per command, no rules of its own.

What all commands share:

- `app`           the entry; hands over what reads its words itself before anything heavy is imported
- `commands`      the one table of commands
- `lazy`          loads the module of a command when it is called
- `invocation`    the flags all commands take, wherever on the line they stand
- `run`           a command's work with a connection, and how it fails
- `output`        tables, facts, JSON, questions, progress
- `quantities`    sizes and lengths of time as people write them
- `moments`       points in time as people write them
- `message_text`  bodies with templates, headers, and what is printed of a message
- `choose`        which stream or consumer is meant when the line does not say
- `settings`      flags that are fields of a configuration
- `spark_options` how Spark reaches the server of a line
- `difference`    two configurations compared, field by field

The commands:

- `account`     `jetlake account`, who this connection is
- `apply`       `jetlake apply`, makes a server as files declare it
- `bench`       `jetlake bench`, the load generator
- `check`       `jetlake check`, what is damaged in a store
- `complete`    the words that can stand next on a line, for the scripts of `completion`
- `completion`  `jetlake completion`, scripts for shells
- `consumer`    `jetlake consumer`; `consumer_messages` takes messages, `consumer_settings` are its flags
- `context`     `jetlake context`, named connections
- `dead`        `jetlake dead`, messages that consumers have given up on
- `dev`         `jetlake dev`, a server to play with
- `doctor`      `jetlake doctor`, is this machine fit
- `drift`       `jetlake drift`, whether a server is as files declare it
- `errors`      `jetlake errors`, what the numbers in refusals mean
- `events`      `jetlake events`, what servers tell of themselves
- `export`      `jetlake export`, what a server has as a declaration
- `iac_files`   what `plan`, `apply` and `drift` share
- `jsm`         `jetlake jsm`, message sets and observables as the tool of 2019 had them
- `nats`        `jetlake nats`, streams and consumers as the tool of 2020 had them; `preview` is what both are made of
- `pipeline`    `jetlake pipeline`, streams into tables
- `plan`        `jetlake plan`, what would make a server as files declare it
- `pub`         `jetlake pub`, sends messages
- `reply`       `jetlake reply`, answers requests
- `req`         `jetlake req`, asks
- `rtt`         `jetlake rtt`, how long a server takes to answer
- `schema`      `jetlake schema`, JSON schemas
- `shims`       `jetlake shims`, executables named as NATS' own tools
- `sql`         `jetlake sql`, questions to streams in SQL
- `stream`      `jetlake stream`; `stream_change` makes streams, `stream_messages` reads them, `stream_archive` saves
  them, `stream_graph` draws them, `stream_settings` are its flags
- `sub`         `jetlake sub`, prints what comes
- `top`         `jetlake top`, the connections of a server
- `version`     `jetlake version`
- `why`         `jetlake why`, why messages move or do not
"""
