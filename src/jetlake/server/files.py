"""The two files by which other programs find a running server: the pid file and the ports file.

The pid file holds digits without a newline, because readers parse the whole of it as a number; it is left when the
server ends. The ports file is complete from the moment it can be seen (written beside, then renamed) and goes away with
a clean end.
"""

import os

import msgspec


class Ports(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a ports file: the URLs of each listener. A listener that is off has no key."""

    nats: list[str] = []
    monitoring: list[str] = []
    websocket: list[str] = []
    leafnodes: list[str] = []


def write_pid_file(path: str, pid: int) -> None:
    """Write the pid file. Raises `OSError`."""
    with open(path, "w", encoding="ascii") as file:
        file.write(str(pid))


def ports_file_path(directory: str, program: str, pid: int) -> str:
    return os.path.join(directory, f"{program}_{pid}.ports")


def write_ports_file(path: str, ports: Ports) -> None:
    """Write the ports file in one step. Raises `OSError`."""
    unfinished = f"{path}.new"
    with open(unfinished, "wb") as file:
        file.write(msgspec.json.encode(ports))
    os.replace(unfinished, path)
