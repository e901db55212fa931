"""Leaf modules: what every part shares, and what knows none of the parts.

- `cancellation`    tasks that are stopped, though a cancellation is lost
- `credentials`     the JWT and the seed in a credentials file
- `durations`       durations as texts, read in one place
- `engine_reports`  what the engine reports about itself, as typed values
- `go_text`         times, durations and quotes as Go writes them
- `held_signals`    a block that Ctrl-C and SIGTERM do not cut in two
- `listener_urls`   host and port as one text, and the URLs of a listener
- `signal_pipe`     signals as numbers that a thread reads, in order
- `subjects`        subjects with wildcards: what matches, what overlaps
- `yaml_values`     a YAML text as plain values
"""
