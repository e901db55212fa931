"""What answers requests, one module for each noun. Each reads: parse the request, decide, act, answer.

- `streams`    create, update, names, list, info, delete, purge
- `consumers`  create, names, list, info, delete, pause, unpin, reset
- `messages`   get and delete of one message
- `forks`      a copy of a stream as it was at a sequence
- `scans`      a range of a stream as a table: plans, rows, and where they lie
- `account`    what an account uses and may use
- `why`        why messages move, or do not
"""
