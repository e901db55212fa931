"""Decides what the API of streams and consumers answers, and has the engine do it.

A request goes from `manager` through `lanes` and `dispatch` to one of the `endpoints`, which reads it (`requests`,
`wire`), decides by the rules of `streams` or `consumers`, and acts through the `catalog`:

- `manager`         receives requests, and answers them
- `lanes`           a queue for each account, and the threads that work them off
- `dispatch`        from a subject to its endpoint, and the checks that all share
- `endpoint_table`  the endpoints by subject, with what each needs
- `context`         everything that answers requests, as one value
- `settings`        what of the server's options matters here

The rooms, each knowing only those below it:

- `preview`    the API of the first two years, beside today's
- `archives`   snapshot and restore
- `endpoints`  what answers, one module for each noun
- `requests`   one request, its sender's rights, its answer, and advisories
- `catalog`    all streams and consumers, in memory and with the engine
- `consumers`  the configuration, the rules and the description of consumers
- `streams`    the configuration, the rules and the description of streams
- `engine`     what of the engine is needed
- `subjects`   names and subjects: which are legal, and which overlap
- `wire`       the wire format: JSON as nats-server reads and writes it, error codes, replies
"""
