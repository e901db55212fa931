"""Streams, consumers and numbers as people read and write them, for the command line and the dashboard alike.

- `quantities`       sizes and lengths of time
- `moments`          points in time
- `cells`            values that know their unit
- `changes`          two configurations compared, field by field
- `settings`         a field of a configuration as a flag or a form asks for it
- `stream_settings`  the settings of a stream
- `stream_facts`     a stream, in sections
- `consumer_facts`   a consumer, in sections
"""
