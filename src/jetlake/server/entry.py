"""The entry of `jetlake-nats-server`: takes the port first, and loads the rest then."""

import sys

from jetlake import hidden_arguments
from jetlake.server import early_port


def main() -> int:
    """Run nats-server's command line of this process and return the exit code."""
    early_port.listen(sys.argv[1:])
    hidden_arguments.hide()
    from jetlake.server.main import main as serve

    return serve()
