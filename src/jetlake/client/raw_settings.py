"""From an `Access` to the settings of a blocking connection."""

from jetlake.client.access import Access
from jetlake.client.raw_connection import ConnectionSettings
from jetlake.client.raw_credentials import ClientCredentials

__all__ = ["settings_of"]


def settings_of(access: Access, servers: tuple[str, ...] = (), name: str = "jetlake") -> ConnectionSettings:
    """Return how to connect as an access says, to other servers if some are named."""
    return ConnectionSettings(
        url=",".join(servers) if servers else access.url,
        name=name,
        credentials=ClientCredentials(
            user=access.user or "",
            password=access.password or "",
            token=access.token or "",
            nkey_seed=str(access.nkey or ""),
            credentials_file=str(access.credentials or ""),
        ),
        tls_ca=str(access.tls_ca or ""),
        tls_certificate=str(access.tls_certificate or ""),
        tls_key=str(access.tls_key or ""),
        tls_first=access.tls_first,
        inbox_prefix=access.inbox_prefix or "_INBOX",
    )
