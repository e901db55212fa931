"""From the options of a table to a connection, on the driver and on executors.

Each process and each task connects by itself: a connection never crosses to another process.
"""

from typing import Any

from jetlake.client.raw_connection import RawConnection, Settings
from jetlake.client.raw_credentials import Credentials
from jetlake.client.raw_streams import Streams

__all__ = ["connect"]


def connect(values: dict[str, Any], *, executor: bool = False) -> Streams:
    """Connect as the options say and return the streams there. Raises `ClientError`."""
    return Streams(RawConnection(settings_of(values, executor=executor)), api_prefix=values["apiPrefix"])


def settings_of(values: dict[str, Any], *, executor: bool = False) -> Settings:
    """Return where and how to connect; executors may have an address of their own."""
    return Settings(
        url=(values["executorUrl"] if executor else "") or values["url"],
        name="jetlake-spark-task" if executor else "jetlake-spark",
        credentials=Credentials(
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
