"""Host and port as one text, and the URLs at which a listener can be reached."""

WILDCARD_HOSTS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


def join_address(host: str, port: int) -> str:
    """Return host and port as one text; an IPv6 address is put in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
