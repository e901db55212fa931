"""Streams, consumers and numbers as people read and write them, for the command line and the dashboard alike.

- `quantities`       sizes and lengths of time
- `timestamps`       points in time
- `cells`            values that know their unit
- `changes`          two configurations compared, field by field
- `stream_facts`     a stream, in sections
- `consumer_facts`   a consumer, in sections
"""
