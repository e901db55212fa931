"""What a server gives its monitoring pages: the way from options and streams to what `jetlake.monitoring` shows.

- `port`     opens the port of the pages
- `facts`    a server's options turned into facts
- `sharing`  what accounts share, turned into facts
- `usages`   what the accounts store
"""
