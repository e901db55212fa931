"""The block `leafnodes`: leaf nodes are not served, and a file that only listens for them starts all the same.

Launchers of test suites write such a block into every file. A block that connects to another server is refused: a
server without that connection would not do what it was told to.
"""

from jetlake.server.configuration.section import Section

REMOTES_REASON = (
    "yet: leaf nodes are not served; let clients connect to the other server, copy its streams with `remotes` of the "
    "block `jetstream`, or run nats-server"
)


def listens_for_leaf_nodes(section: Section) -> bool:
    """Return whether the file asks to listen for leaf nodes, which has no effect."""
    inner = section.section("leafnodes", "leaf")
    if inner is None:
        return False
    address = inner.address("listen")
    port = inner.integer("port") or (address[1] if address else 0)
    remotes = inner.node("remotes")
    if remotes is not None and remotes.data != []:
        inner.error(remotes, f'"remotes" of "leafnodes" is not supported {REMOTES_REASON}')
    inner.accept("host", "net", "authorization", "tls", "leafnode_advertise", "advertise", "no_advertise")
    inner.accept("min_version", "minimum_version", "compression", "isolate_leafnode_interest", "isolate")
    inner.accept("write_deadline", "write_timeout", "dial_timeout")
    inner.accept("reconnect", "reconnect_delay", "reconnect_interval")
    inner.finish()
    return port != 0
