"""How Spark reaches the server of a command: the flags every command takes, as options of the format `jetlake`."""

from collections.abc import Iterable
from pathlib import Path

import typer

from jetlake.cli.invocation import current

API_PREFIX = "$JS.API"


def connection_options() -> dict[str, str]:
    """Return the options that this line means; `url` is always there. Raises `ConfigurationError`."""
    access = current().access()
    given = {
        "url": access.url,
        "user": access.user,
        "password": access.password,
        "token": access.token,
        "credentialsFile": access.credentials,
        "nkeySeed": access.nkey,
        "tlsCa": access.tls_ca,
        "tlsCertificate": access.tls_certificate,
        "tlsKey": access.tls_key,
        "tlsFirst": "true" if access.tls_first else "",
        "inboxPrefix": access.inbox_prefix,
        "domain": access.domain,
        # The usual one is left out: a domain in a definition would contradict it.
        "apiPrefix": "" if access.domain or access.api_prefix == API_PREFIX else access.api_prefix,
    }
    # Python processes of Spark may work in another folder.
    files = {name: value.absolute() if isinstance(value, Path) else value for name, value in given.items()}
    return {name: str(value) for name, value in files.items() if value}


def key_values(option: str, texts: Iterable[str], example: str) -> dict[str, str]:
    """Return what was given as KEY=VALUE. Raises `typer.BadParameter`."""
    pairs = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{option} {text}: write it like {example}")
        pairs[key.strip()] = value.strip()
    return pairs
