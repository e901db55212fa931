"""`jetlake adapter`: data adapters, messages in Choria's envelopes into documents in a stream."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jetlake.cli.hosted import Stop, read_settings_of_host, report_line
from jetlake.cli.invocation import current
from jetlake.cli.output import JsonOption, print_json, print_table
from jetlake.cli.run import REFUSED, fail, refusals
from jetlake.errors import ConfigurationError

if TYPE_CHECKING:
    from jetlake.adapters.configuration import AdaptersConfiguration
    from jetlake.client.access import Access

application = typer.Typer(help="Run data adapters.", no_args_is_help=True)

FileOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        help="Configuration of the adapters: YAML, JSON, Puppet, Choria's keys or nats.conf.",
        metavar="FILE",
    ),
]


@application.callback()
def adapter() -> None:
    """Receive messages in Choria's envelopes and publish them as documents to a stream."""


@application.command()
def run(
    config: FileOption = None,
    metrics_port: Annotated[int | None, typer.Option(help="Serve metrics on this port (0: a random one).")] = None,
    hosted: Annotated[bool, typer.Option("--hosted", hidden=True)] = False,
) -> None:
    """Run the adapters of a file until SIGTERM or Ctrl-C, then deliver what was received and end.

    An adapter with a mistake in its configuration is reported, and the others run. Ends with 1 if none can run, or if
    messages could not be delivered in time.
    """
    import msgspec

    from jetlake.adapters.host import AdapterHost

    with refusals():
        configuration, access = _hosted() if hosted else _from_file(config)
        if metrics_port is not None:
            configuration = msgspec.structs.replace(configuration, metrics_port=metrics_port)
        with Stop(hosted=hosted) as stop:
            host = AdapterHost(configuration, access, lambda level, text: report_line(level, text, hosted=hosted))
            host.start()
            stop.wait()
            lost = host.stop()
    if lost:
        raise typer.Exit(REFUSED)


@application.command()
def check(config: FileOption = None, as_json: JsonOption = False) -> None:
    """Check a file without running anything: list its adapters and every mistake. Ends with 1 if there is one."""
    import msgspec

    with refusals():
        configuration, _ = _from_file(config)
    if as_json:
        print_json(msgspec.to_builtins(configuration))
    else:
        rows = [
            (each.name, each.kind, each.ingest.topic, each.ingest.protocol, each.stream.topic, each.dead_letters)
            for each in configuration.adapters
        ]
        print_table(("adapter", "type", "from", "protocol", "to", "dead letters"), rows)
    if configuration.problems:
        fail("\n".join(configuration.problems))


def _from_file(path: Path | None) -> "tuple[AdaptersConfiguration, Access]":
    from jetlake.adapters.configuration import read_file
    from jetlake.cli.nats_conf import read_nats_conf
    from jetlake.client.access import resolve

    if path is None:
        raise typer.BadParameter("name the file that configures the adapters: -c FILE")
    configuration = read_file(path, read_nats_conf)
    invocation = current()
    options = _options_of(configuration.connection) | invocation.options
    return configuration, resolve(options, context=invocation.context)


def _hosted() -> "tuple[AdaptersConfiguration, Access]":
    from jetlake.adapters.configuration import read_hash
    from jetlake.client.access import resolve

    settings = read_settings_of_host()
    configuration = read_hash(settings)
    return configuration, resolve(_options_of(configuration.connection), environment={})


def _options_of(connection: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a file as options of a connection."""
    options = {("url" if key == "server" else key): value for key, value in connection.items()}
    for key, value in options.items():
        if not isinstance(value, str | bool):
            raise ConfigurationError(f"{key} is {value!r}: write text")
    return options
