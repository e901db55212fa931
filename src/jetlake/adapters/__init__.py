"""Data adapters: messages in Choria's envelopes in, documents in a stream out.

```text
subject ─► ingest workers (queue group) ─► bounded queue ─► stream workers ─► stream, each document acknowledged
                      └─ what cannot be parsed ─► dead letters ─┘
```

- `options`        the options of one adapter, checked
- `configuration`  the formats options come in: a hash as YAML or JSON, Puppet code, flat keys, a block of nats.conf
- `puppet`         hashes as Puppet manifests write them
- `conversion`     one message becomes one publication, or a dead letter; no sockets
- `queue`          what waits between the two kinds of workers, bounded in messages and bytes
- `worker`         what both kinds of workers share: a thread that survives its failures
- `ingest`         workers that receive
- `output`         workers that publish and wait for acknowledgements
- `adapter`        one adapter from its start to its end
- `host`           many adapters in one process
- `metrics`        counters, in Prometheus' format
- `monitor`        the page that shows them
"""
