"""How Spark reaches the server of a command: the flags every command takes, as options of the format `jetlake`."""

from jetlake.cli.invocation import current
from jetlake.errors import ConfigurationError


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
        "apiPrefix": "" if access.domain else access.api_prefix,
    }
    return {name: str(value) for name, value in given.items() if value}


def server_url() -> str:
    """Return the address of this line, where nothing but an address can be said. Raises `ConfigurationError`."""
    options = connection_options()
    others = sorted(options.keys() - {"url", "apiPrefix"})
    if others:
        raise ConfigurationError(
            f"the flags of {', '.join(others)} do not reach pipelines: put them below `options` of the stream in the "
            "definition, or a user and password into the address"
        )
    return options["url"]
