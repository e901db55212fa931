"""`Monitor`: the pages of one server on one port, over HTTP or HTTPS.

```python
monitor = open_monitor(options, engine, server.facts, log.warning)     # the port is taken
monitor.start()                                                        # pages are answered
monitor.stop()
```

Starting fast is a feature, and servers under test are often started with `-m`: this module loads only what listening
needs. The pages are loaded by the first request, OpenSSL only for HTTPS.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jetlake.errors import StartError, reason_of
from jetlake.monitoring.http_connection import Connection
from jetlake.monitoring.http_listener import HttpListener
from jetlake.monitoring.http_request import Request, Response
from jetlake.monitoring.paths import normal_base_path
from jetlake.server.banner import join_address
from jetlake.server.files import urls_of_listener

if TYPE_CHECKING:
    import ssl

    from jetlake.monitoring.facts import ServerFacts
    from jetlake.monitoring.jsz import AccountUsage
    from jetlake.monitoring.pages import Pages
    from jetlake.monitoring.readings import EngineReadings, Source
    from jetlake.server.options import ServerOptions


class Monitor:
    """The pages of one server. With a certificate they are served over HTTPS. Port 0 takes any free one.

    `source` is called once, by the first request; `warn` takes lines for the log. Both are called by another thread.
    """

    def __init__(
        self,
        source: "Callable[[], Source]",
        *,
        host: str,
        port: int,
        base_path: str = "",
        certificate_file: str = "",
        key_file: str = "",
        warn: Callable[[str], None],
    ) -> None:
        """Take the port. Raises `OSError` when it is taken or the certificate cannot be loaded."""
        self._source = source
        self._host = host
        self._base_path = normal_base_path(base_path)
        self._warn = warn
        self._pages: Pages | None = None
        self._tls: ssl.SSLContext | None = None
        connection_of: Callable[..., Connection] = Connection
        if certificate_file:
            from jetlake.monitoring.tls_connection import TlsConnection, make_context

            self._tls = make_context(certificate_file, key_file)
            connection_of = partial(TlsConnection, context=self._tls)
        self._listener = HttpListener(host, port, self._respond, connection_of=connection_of, on_failure=warn)

    @property
    def scheme(self) -> str:
        return "http" if self._tls is None else "https"

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._listener.port

    @property
    def address(self) -> str:
        """Host and port as the log names them."""
        return join_address(self._host, self.port)

    @property
    def url(self) -> str:
        """Where the pages are for a program on this machine, without a slash at the end."""
        return f"{self.urls()[0]}{self._base_path}"

    def urls(self) -> list[str]:
        """Return where the port can be reached, this machine's own address first."""
        return urls_of_listener(self.scheme, self._host, self.port)

    def start(self) -> None:
        """Begin to answer. Call it once."""
        self._listener.start()

    def renew_certificate(self, certificate_file: str, key_file: str) -> None:
        """Show another certificate from the next connection on; nothing without HTTPS. Raises `OSError`."""
        if self._tls is not None:
            self._tls.load_cert_chain(certificate_file, key_file)

    def stop(self) -> None:
        """Close the port and every connection; harmless when repeated."""
        self._listener.stop()

    def _respond(self, request: Request) -> Response:
        if self._pages is None:
            from jetlake.monitoring.pages import Pages

            self._pages = Pages(self._source(), base_path=self._base_path, warn=self._warn)
        return self._pages.respond(request)


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

    def source() -> "Source":
        from jetlake.monitoring.readings import Source

        return Source(engine, facts, usages=usages)

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
