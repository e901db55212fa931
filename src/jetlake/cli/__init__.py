"""The command `jetlake`: one file per command group, no rules of its own.

- `app`      the entry; hands `jetlake server` over before anything heavy is imported
- `bench`    `jetlake bench`, the load generator
- `check`    `jetlake check`, what is damaged in a store
- `dead`     `jetlake dead`, messages that consumers have given up on
- `stream`   `jetlake stream`, what can be done with streams
- `version`  `jetlake version`
- `why`      `jetlake why`, why messages move or do not
"""
