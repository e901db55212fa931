"""Client libraries in other languages do their ordinary work against Jetlake and against nats-server.

Each folder holds one script (`node/script.mjs`, `go/main.go`) that takes the server's URL and prints a line per result.
The libraries are fetched when the tests run and kept in `build/clients`.
"""
