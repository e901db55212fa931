"""Autonomous agents: state machines on a node that act by themselves, as Choria has them.

A folder with a `machine.yaml` is a machine. It is in one of its states; watchers look at the world and fire events,
which lead to other states.

What a machine is, without files and sockets:

- `fields`           reads mappings of a manifest and collects problems
- `manifest`         `machine.yaml`, checked
- `schema`           the check by Choria's published schema
- `watcher_options`  the properties of each type of watcher
- `cron`             schedules
- `templates`        `{{ }}` in commands and files
- `perfdata`         performance data of checks
- `states`           the state, and what an event makes of it
- `layout`           where the states of a diagram stand
- `diagram`          a machine as SVG

How it runs:

- `options`          a node's options for its machines
- `host`             `MachineHost`, the part of a node's agent that runs them
- `machine`          `Machine`: state, data, watchers, transitions
- `watchers`         what makes a machine move
- `commands`         runs programs, none of which can hold up another machine
- `store`            data and state on the disk
- `services`         what machines of a node share
- `key_watches`      keys that machines wait for, each watched once
- `events`           publishes what they tell
- `requests`         answers who asks for states, and fires transitions from outside
- `prometheus`       files for Prometheus' node exporter
"""
