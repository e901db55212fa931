"""The tables of a lake folder: Delta tables, which every Delta reader opens, committed without a jar.

- `folder`      a lake: its tables by name
- `table`       one table: append or upsert once per batch, replace, read at any version, compact, vacuum
- `snapshot`    what a log says at one version: files and columns
- `delta_log`   the log, written by the package deltalake
- `upserts`     one row per key, the newest wins
- `as_of`       which version of a table is meant: a number or a time
- `staging`     how a frame becomes files that are in place before the log names them
- `compaction`  many small files into few large ones
- `columns`     columns are only ever added
- `syncing`     has the disk keep what was written
"""
