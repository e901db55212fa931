"""The two files by which other programs find a running server: the pid file and the ports file.

The pid file holds digits without a newline, because readers parse the whole of it as a number; it stays behind when the
server ends. The ports file is complete from the moment it can be seen (written beside, then renamed) and goes away with
a clean end.
"""

import os

import msgspec

from jetlake.server.banner import join_address

WILDCARD_HOSTS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


class Ports(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a ports file: the URLs of each listener. A listener that is off has no key."""

    nats: list[str] = []
    monitoring: list[str] = []
    websocket: list[str] = []


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


def urls_of_listener(scheme: str, host: str, port: int) -> list[str]:
    """Return where a listener can be reached: a wildcard address becomes the addresses a client can really use."""
    hosts = [host] if host not in WILDCARD_HOSTS else _reachable_hosts()
    return [f"{scheme}://{join_address(each, port)}" for each in hosts]


def _reachable_hosts() -> list[str]:
    """Return the loopback address and the one other machines see, found without asking any name server."""
    # Only servers with a ports file pay for this import.
    import socket

    hosts = ["127.0.0.1"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Connecting a datagram socket sends nothing; it only chooses the route. The address is one for examples.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return hosts
        outward: str = probe.getsockname()[0]
    return hosts if outward in hosts else [*hosts, outward]
