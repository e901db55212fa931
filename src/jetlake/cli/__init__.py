"""The command `jetlake`: one file per command, no rules of its own.

What all commands share:

- `app`           the entry; runs commands that parse their own arguments before anything heavy is imported
- `server_view`   `jetlake server info`, `ls` and `check`: look at servers that run
- `crashtest`     `jetlake crashtest`: what servers lose by crashes, on this disk
- `commands`      the one table of commands
- `deferred_import` loads a package of a library when it is used
- `lazy`          loads the module of a command when it is called
- `invocation`    the flags all commands take, wherever on the line they stand
- `run`           a command's work with a connection, and how it fails
- `readers`       output whose reader goes before the command has ended
- `explain`       refusals of a server in words that name the stream and what to do
- `output`        tables, facts, JSON, questions, progress
- `rate_graph`    rates of messages and bytes, drawn as bars
- `received`      what becomes of received messages: printed, counted, drawn
- `message_text`  bodies with templates, headers, and what is printed of a message
- `choose`        which stream or consumer is meant when the line does not say
- `option_values` values of flags as fields of a configuration
- `configuration` configurations as JSON: files, changes, and an editor
- `backup_folder` the folder of a backup: its arguments, and what is checked
- `own_name`      how this `jetlake` is called from the current folder, for lines to paste
- `hosted`        commands that run until they are stopped, also as children of a server
- `nats_conf`     files in nats-server's format, for commands that need a block of one
- `server_pages`  pages of servers, from a monitoring port or as answers over NATS
- `interrupts`    Ctrl-C in commands whose work is in other threads and processes
- `spark_options` how Spark reaches the server of a line
- `difference`    shows what an edit would change, and asks

The commands:

- `adapter`     `jetlake adapter`, data adapters
- `agent`       `jetlake agent`, the agent on a node
- `agent_machines` its machines: states, transitions, events, checks, diagrams
- `account`     `jetlake account`, who this connection is
- `apply`       `jetlake apply`, makes a server as files declare it
- `bench`       `jetlake bench`, the load generator
- `check`       `jetlake check`, what is damaged in a store;
  `store_check` finds the stores and has the engine examine them
- `choria`      `jetlake choria`, the commands of Choria Streams with their output; `choria_kv` is its key-value part,
  `choria_kv_buckets` makes its buckets, `choria_kv_api` is for programs; `choria_governor` are those of governors and
  submission, `choria_settings` what they take from Choria's configuration
- `complete`    the words that can stand next on a line, for the scripts of `completion`
- `completion`  `jetlake completion`, scripts for shells
- `consumer`    `jetlake consumer`; `consumer_change` makes consumers, `consumer_messages` takes messages,
  `consumer_options` are its flags
- `context`     `jetlake context`, named connections
- `dashboard`   `jetlake dashboard`, a server in a browser
- `dead`        `jetlake dead`, messages that consumers have given up on
- `demo`        `jetlake demo`, the whole system at work
- `dev`         `jetlake dev`, a server to play with
- `device`      `jetlake device`, the device event bus
- `simulate`    `jetlake simulate`, made-up traffic
- `simulate_devices`  `jetlake simulate devices`
- `device_serve`  `jetlake device serve` and `bundle`, its services as processes
- `doctor`      `jetlake doctor`, is this machine fit
- `drift`       `jetlake drift`, whether a server is as files declare it
- `errors`      `jetlake errors`, what the numbers in refusals mean
- `events`      `jetlake events`, what servers report about themselves
- `export`      `jetlake export`, what a server has as a declaration
- `governor`    `jetlake governor`, how many do something at once; `governor_run` runs commands under one
- `iac_files`   what `plan`, `apply` and `drift` share
- `jsm`         `jetlake jsm`, message sets and observables as the tool of 2019 had them
- `kv`          `jetlake kv`, key-value buckets; `kv_values` reads and writes keys, `kv_watch` watches them,
  `kv_options` are its flags, `kv_text` is what it prints
- `leaf`        `jetlake leaf`, links to hubs and leaf nodes
- `nats`        `jetlake nats`, streams and consumers as the tool of 2020 had them; `preview` is what both are made of
- `object`      `jetlake object`, object stores; `object_files` puts and gets objects
- `pipeline`    `jetlake pipeline`, streams into tables; `pipeline_run` is what `run` does and shows
- `plan`        `jetlake plan`, what would make a server as files declare it
- `pub`         `jetlake pub`, sends messages
- `reply`       `jetlake reply`, answers requests
- `req`         `jetlake req`, asks
- `rtt`         `jetlake rtt`, how long a server takes to answer
- `schema`      `jetlake schema`, JSON schemas
- `choria_machine` `choria machine run|validate|graph`
- `choria_events`  `choria tool event`, `choria machine watch`, `choria scout watch`
- `choria_server`  `choria server run`
- `shims`       `jetlake shims`, executables named as NATS' own tools
- `simulate`    `jetlake simulate`, made-up traffic with an account of it
- `sql`         `jetlake sql`, questions to streams in SQL
- `stream`      `jetlake stream`; `stream_change` makes streams, `stream_messages` reads them, `stream_archive` saves
  them, `stream_graph` draws them, `stream_options` are its flags
- `submission`  `jetlake submit` and `jetlake submission`, messages through a spool
- `sub`         `jetlake sub`, prints what comes
- `top`         `jetlake top`, the connections of a server
- `version`     `jetlake version`
- `why`         `jetlake why`, why messages move or do not
"""
