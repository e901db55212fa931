"""SQL over streams and lake tables, in this process: the answer to a question about a thousand messages in a moment.

```python
from jetlake.sql.duck import DuckEngine

with DuckEngine(Sources({"url": "nats://127.0.0.1:4222"}, Path("lake"))) as engine:
    answer = engine.ask("SELECT subject, count(*) FROM streams.orders GROUP BY subject")
    for batch in answer.batches:
        print(batch.to_pylist())
```

- `sources`       which streams and lake tables the names in a query stand for
- `stream_table`  a stream as a table that DuckDB scans: only the columns and sequences that a query needs
- `lake_table`    a lake table as a query over its files
- `bounds`        the sequences and the subject that a filter leaves
- `fields`        the fields of a JSON payload, from Spark's notation to DuckDB's
- `duck`          answers with DuckDB
- `on_spark`      answers the same queries with Spark
- `mistakes`      what is wrong with a query, in one sentence with what to do
- `answers`       an answer as Arrow batches
- `values`        values as text and as JSON
- `files`         an answer as a file: Parquet, CSV or JSON

Importing this package imports neither DuckDB nor Arrow nor Spark.
"""
