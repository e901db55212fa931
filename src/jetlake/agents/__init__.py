"""The agent on a node: one process with one connection that hosts parts.

A part is something that runs as long as the node does: a registration publisher, the lifecycle events, the machines,
the sender of a spool. Each is supervised by itself; the code that composes an agent passes it the parts it wants.

- `options`       the options of one node, from Choria's keys or YAML
- `node`          `NodeAgent`: the connection, the parts, their supervision, the end
- `registration`  publishers of file content and of inventory content
- `inventory`     facts, classes and agents of a node
- `lifecycle`     startup, alive and shutdown events
- `signing`       how a node signs its requests
- `submission`    the sender of a spool as a part
- `machines`      autonomous agents
"""
