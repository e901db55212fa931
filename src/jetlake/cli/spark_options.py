"""How Spark reaches the server of a command: the flags every command takes, as options of the format `jetlake`."""

from collections.abc import Iterable

import typer

from jetlake.cli.invocation import current


def connection_options() -> dict[str, str]:
    """Return the options that this line means; `url` is always there. Raises `ConfigurationError`."""
    from jetlake.spark.connecting import options_of

    return options_of(current().access())


def key_values(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Return what was given as KEY=VALUE. Raises `typer.BadParameter`."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{option} {text}: write it like {example}")
        pairs[key.strip()] = value.strip()
    return pairs
