"""Choria's formats: what nodes send, what adapters make of it, and the files both are configured by.

Nothing here opens a socket. The in-process adapter, the node agent, the simulator and the Spark pipelines share it, so
that they cannot disagree about a format.

- `envelopes`     requests and replies, versions 1 and 2, taken apart and put together
- `documents`     what an adapter publishes: the output document
- `signatures`    who signed a request, by certificate or by token
- `registration`  what a node says about itself
- `events`        lifecycle, machine and Scout events: their bodies, CloudEvents, and the words they are printed in
- `streams`       the streams a broker makes by itself
- `settings`      configuration files of `key = value` lines
- `subjects`      node names as parts of subjects; `times` are times as text
"""
