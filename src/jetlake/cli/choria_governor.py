"""`jetlake choria governor` and `jetlake choria tool submit`: Choria's words for `jetlake governor` and `submit`.

The commands are the same ones; `--config` may stand anywhere on the line, as in Choria.
"""

from typing import Any

import typer
from typer.main import get_command, get_group

from jetlake.cli.choria import CommandLine

FAILED = 1


def governor(words: list[str], line: CommandLine) -> int:
    """Run a command of `jetlake governor`, and return the exit code."""
    from jetlake.cli.governor import application

    return _run(get_group(application), "choria governor", [*words[:1], *_config(line), *words[1:]])


def submit(words: list[str], line: CommandLine) -> int:
    """Run `jetlake submit`, and return the exit code."""
    from jetlake.cli.submission import submit as command

    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    application.command("submit")(command)
    return _run(get_command(application), "choria tool submit", [*_config(line), *words])


def _config(line: CommandLine) -> list[str]:
    return [] if line.config is None else ["--config", str(line.config)]


def _run(command: Any, name: str, words: list[str]) -> int:
    """Run a command of typer; the exit code may be that of another program."""
    try:
        command.main(args=words, prog_name=name)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED if end.code else 0
    return 0
