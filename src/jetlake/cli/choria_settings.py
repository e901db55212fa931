"""What the commands of Choria take from a configuration file of Choria: `--config /etc/choria/server.conf`.

A file that is not there is not an error: a machine without Choria has none, and the defaults do. Standard error says
so.

Invariant: a flag of the line wins over the file, and the file over the defaults.
"""

import socket
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from jetlake.choria.settings import ChoriaSettings, read_settings
from jetlake.cli.choria import use_servers
from jetlake.cli.invocation import current, enter
from jetlake.errors import ConfigurationError

DEFAULT_COLLECTIVE = "mcollective"
SIZE_KEY = "plugin.choria.submission.max_spool_size"

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="A Choria configuration: servers, collective, identity, spool.", metavar="FILE"),
]
CollectiveOption = Annotated[
    str, typer.Option(help="The collective; mcollective unless the configuration says another.", show_default=False)
]
IdentityOption = Annotated[
    str, typer.Option(help="The name of this machine; its full host name unless given.", show_default=False)
]


class LineSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the line and the file say together."""

    collective: str
    identity: str
    # Empty = none is configured.
    spool: str = ""
    spool_messages_max: int | None = None


def choria_settings(config: Path | None, *, collective: str = "", identity: str = "") -> LineSettings:
    """Return the settings of a line, and use the servers of its file. Raises `ConfigurationError`."""
    try:
        found = ChoriaSettings({}) if config is None else read_settings(config)
    except ConfigurationError as error:
        print(f"warning: {error}; using the defaults", file=sys.stderr)
        found = ChoriaSettings({})
    enter(use_servers(current(), found))
    size = found.number(SIZE_KEY, 0)
    if size < 0:
        raise found.refusal(SIZE_KEY, "write a whole number")
    first = next(iter(found.texts("collectives")), DEFAULT_COLLECTIVE)
    return LineSettings(
        collective=collective or found.text("main_collective") or first,
        identity=identity or found.text("identity") or socket.getfqdn(),
        spool=found.text("plugin.choria.submission.spool"),
        spool_messages_max=size or None,
    )
