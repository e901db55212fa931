"""Where a server listens for clients, as flags and files write it.

Invariant: nothing imported from here takes time; `early_port` needs it before anything else is loaded.
"""

DEFAULT_HOST = "0.0.0.0"  # noqa: S104 - nats-server's default; `jetlake.Server` listens on the loopback address
DEFAULT_PORT = 4222
PORT_MAX = 65_535

RANDOM_PORT = -1
"""In flags and files: the operating system chooses one."""


def port_of(number: int) -> int:
    """Return the port that a number on the command line or in a file means; 0 is a random one."""
    if number == RANDOM_PORT:
        return 0
    return number or DEFAULT_PORT
