"""What is on a disk, looked at without a server.

- `check`  examines stores and says what is damaged; the rules are the engine's
"""
