"""Snapshots and restores of streams.

- `endpoints`  snapshot and restore, and what becomes of those under way
- `requests`   restore, from the bytes to the configuration of the stream to come
- `consumers`  the consumers of an archive that is restored, checked and made in short steps
"""
