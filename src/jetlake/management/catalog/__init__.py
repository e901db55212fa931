"""What there is: all streams and consumers of a server, in memory and with the engine.

- `streams`       all streams
- `consumers`     all consumers
- `reservations`  what the streams of all accounts may grow to together
- `pause_ends`    when consumers that pause go on
"""
