"""Decisions: commands in, events out, without input or output.

- `model`     `Aggregate`: version, time and snapshots, the same for all
- `links`     the links of one device
- `metadata`  connection and twin of one device
- `resource`  the content of one resource, and the commands its device has not confirmed yet
"""
