"""From the options of a table to a connection, on the driver and on executors.

Each process and each task connects by itself: a connection never crosses to another process.
"""

from pathlib import Path
from typing import Any

from jetlake.client.access import DEFAULT_API_PREFIX, Access
from jetlake.client.raw_connection import ConnectionSettings, RawConnection
from jetlake.client.raw_credentials import ClientCredentials
from jetlake.client.raw_streams import Streams

__all__ = ["connect", "options_of"]


def connect(values: dict[str, Any], *, executor: bool = False) -> Streams:
    """Connect as the options say and return the streams there. Raises `ClientError`."""
    return Streams(RawConnection(settings_of(values, executor=executor)), api_prefix=values["apiPrefix"])


def settings_of(values: dict[str, Any], *, executor: bool = False) -> ConnectionSettings:
    """Return where and how to connect; executors may have an address of their own."""
    return ConnectionSettings(
        url=(values["executorUrl"] if executor else "") or values["url"],
        name="jetlake-spark-task" if executor else "jetlake-spark",
        credentials=ClientCredentials(
            user=values["user"],
            password=values["password"],
            token=values["token"],
            nkey_seed=values["nkeySeed"],
            credentials_file=values["credentialsFile"],
        ),
        tls_ca=values["tlsCa"],
        tls_certificate=values["tlsCertificate"],
        tls_key=values["tlsKey"],
        tls_first=values["tlsFirst"],
        inbox_prefix=values["inboxPrefix"],
    )


def options_of(access: Access) -> dict[str, str]:
    """Return the options that reach the same server as the same user; `url` is always there."""
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
        "apiPrefix": "" if access.domain or access.api_prefix == DEFAULT_API_PREFIX else access.api_prefix,
    }
    # Python processes of Spark may work in another folder.
    files = {name: value.absolute() if isinstance(value, Path) else value for name, value in given.items()}
    return {name: str(value) for name, value in files.items() if value}
