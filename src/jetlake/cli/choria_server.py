"""`choria server run`: Choria's words for `jetlake agent run`."""

from typer.main import get_group

from jetlake.cli.choria import DONE, FAILED, CommandLine
from jetlake.errors import ConfigurationError


def main(words: list[str], line: CommandLine) -> int:
    """Run the agent of a node, and return the exit code."""
    from jetlake.cli.agent import application

    if line.config is None:
        raise ConfigurationError("name the configuration of the node: --config /etc/choria/server.conf")
    try:
        get_group(application).main(args=["run", "--config", str(line.config), *words], prog_name="choria server")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    return DONE
