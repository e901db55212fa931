"""Where clients connect, as a file says: `listen`, `host` and `port`.

A client that lost its server comes back sooner than all of a configuration is loaded, so `early_port` reads this part
of a file by itself. Invariant: nothing imported from here takes longer than reading the file does.
"""

from jetlake.errors import ConfigurationError
from jetlake.server.addresses import DEFAULT_HOST, PORT_MAX, RANDOM_PORT, port_of
from jetlake.server.configuration.parser import parse_file
from jetlake.server.configuration.section import Problems, Section


def read_address(section: Section) -> tuple[str, int]:
    """Return host and port; mistakes are noted, and the address is not to be used then."""
    host, port = section.address("listen") or ("", 0)
    port = port_of(section.integer("port", lowest=RANDOM_PORT, highest=PORT_MAX) or port)
    node = section.node("listen")
    if not 0 <= port <= PORT_MAX:
        section.error(node, f'"listen" has the port {port}: it must be at most {PORT_MAX}, or -1 for a random one')
        port = 0
    return section.host("host", "net") or host or DEFAULT_HOST, port


def address_in(path: str) -> tuple[str, int] | None:
    """Return host and port that a file names; None if the file has mistakes, which are reported later."""
    problems = Problems()
    try:
        address = read_address(Section(parse_file(path), problems))
        problems.check()
    except ConfigurationError:
        return None
    return address
