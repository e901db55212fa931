"""Files in nats-server's format, read for commands that need one block of them."""

from pathlib import Path
from typing import Any


def read_nats_conf(path: Path) -> dict[str, Any]:
    """Return a file as plain maps, lists and values. Raises `ConfigurationError`."""
    # Only those who have such a file pay for what reads it.
    from jetlake.server.configuration.document import plain
    from jetlake.server.configuration.parser import parse_file

    content = plain(parse_file(str(path)))
    return content if isinstance(content, dict) else {}
