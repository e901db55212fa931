"""The tables of a lake folder: Parquet files, and a log that says which of them count.

- `folder`       a lake: its tables by name
- `table`        one table: append once per batch, replace, read, compact, vacuum
- `snapshot`     what a log says at one version: files, columns, the last batch of every query
- `parquet_log`  the log of a table of kind `parquet`; needs nothing but this package
- `delta_log`    the log of a table of kind `delta`, written by the package deltalake
- `staging`      how a frame becomes files that are in place before the log names them
- `compaction`   many small files into few large ones
- `columns`      columns are only ever added
"""
