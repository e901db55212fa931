"""`choria machine run`, `validate` and `graph`: Choria's words for `jetlake agent run`, `validate` and `graph`."""

import argparse
import sys
from pathlib import Path

from jetlake.cli.choria import DONE, FAILED, CommandLine, fail


def run(words: list[str], line: CommandLine) -> int:
    """Run machines here; without `--connect` they have no server."""
    from typer.main import get_group

    from jetlake.cli.agent import application

    parser = argparse.ArgumentParser(prog="choria machine run", description="Runs an autonomous agent locally.")
    parser.add_argument("source", nargs="+", help="folders of machines")
    parser.add_argument("--facts", default="", help="facts for the machines, as JSON")
    parser.add_argument("--data", default="", help="data to start the machines with, as JSON")
    parser.add_argument("--connect", action="store_true", help="connect to a server")
    options = parser.parse_args(words)
    arguments = ["run", *options.source]
    arguments += ["--facts", options.facts] if options.facts else []
    arguments += ["--data", options.data] if options.data else []
    arguments += [] if options.connect else ["--offline"]
    arguments += ["--config", str(line.config)] if line.config is not None else []
    try:
        get_group(application).main(args=arguments, prog_name="choria machine")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    return DONE


def validate(words: list[str], line: CommandLine) -> int:  # noqa: ARG001
    """Check a manifest."""
    from jetlake.cli.agent_machines import check_folder

    parser = argparse.ArgumentParser(prog="choria machine validate", description="Validate a machine.yaml.")
    parser.add_argument("source", type=Path, help="folder of a machine")
    source = parser.parse_args(words).source
    problems = check_folder(source)
    for problem in problems:
        print(problem["text"], file=sys.stderr if problem["severity"] == "warning" else sys.stdout)
    if any(problem["severity"] == "error" for problem in problems):
        return fail("validation failed")
    # In the original's words.
    print(f"{source} is has a valid machine.yaml")
    return DONE


def graph(words: list[str], line: CommandLine) -> int:  # noqa: ARG001
    """Print a machine in the language of Graphviz."""
    from jetlake.agents.machines.diagram import draw_dot
    from jetlake.agents.machines.manifest import parse_manifest, read_manifest_text
    from jetlake.cli.agent_machines import manifest_path

    parser = argparse.ArgumentParser(prog="choria machine graph", description="Graph a machine in the DOT language.")
    parser.add_argument("source", type=Path, help="folder of a machine")
    path = manifest_path(parser.parse_args(words).source)
    print(draw_dot(parse_manifest(read_manifest_text(path), str(path))), end="")
    return DONE
