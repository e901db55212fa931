"""Opens the port of the monitoring pages, as the options ask for it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from jetlake.errors import StartError, reason_of
from jetlake.monitoring.monitor import Monitor
from jetlake.shared.listener_urls import join_address

if TYPE_CHECKING:
    from jetlake.monitoring.facts import ServerFacts
    from jetlake.monitoring.jsz import AccountUsage
    from jetlake.monitoring.readings import EngineReadings, MonitoredServer
    from jetlake.server.options import ServerOptions


def open_monitor(
    options: "ServerOptions",
    engine: "EngineReadings",
    facts: "Callable[[], ServerFacts]",
    warn: Callable[[str], None],
    usages: "Callable[[], list[AccountUsage]] | None" = None,
) -> Monitor:
    """Take the port of the pages that these options ask for. Raises `StartError`, in nats-server's words."""
    monitoring, tls = options.monitoring, options.tls
    http_port, https_port = monitoring.http_port, monitoring.https_port
    if http_port is not None and https_port is not None:
        raise _cannot_start(f"can't specify both HTTP ({http_port}) and HTTPs ({https_port}) ports")
    if https_port is not None and tls is None:
        raise _cannot_start("TLS cert and key required for HTTPS")
    port = http_port if https_port is None else https_port
    assert port is not None, "the caller asked for pages"
    certificate = tls if https_port is not None else None
    # Clients and pages share an address, unless the configuration says otherwise.
    host = monitoring.host or options.host

    def source() -> "MonitoredServer":
        from jetlake.monitoring.readings import MonitoredServer

        return MonitoredServer(engine, facts, usages=usages)

    try:
        return Monitor(
            source,
            host=host,
            port=port,
            base_path=monitoring.base_path,
            certificate_file=certificate.certificate_file if certificate else "",
            key_file=certificate.key_file if certificate else "",
            warn=warn,
        )
    except OSError as error:
        listen = f"listen tcp {join_address(host, port)}: bind: {reason_of(error)}"
        raise _cannot_start(f"can't listen to the monitor port: {listen}") from error


def _cannot_start(reason: str) -> StartError:
    return StartError(f"Can't start monitoring: {reason}")
