"""`Monitor`: the pages of one server on one port, over HTTP or HTTPS.

```python
monitor = Monitor(source, host="127.0.0.1", port=8222, warn=log.warning)  # the port is taken
monitor.start()                                                           # pages are answered
monitor.stop()
```

Starting fast is a feature, and servers under test are often started with `-m`: this module loads only what listening
needs. The pages are loaded by the first request, OpenSSL only for HTTPS.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from jetlake.monitoring.http_connection import HttpConnection
from jetlake.monitoring.http_listener import HttpListener
from jetlake.monitoring.http_request import HttpRequest, Response
from jetlake.monitoring.paths import normal_base_path
from jetlake.shared.listener_urls import join_address, urls_of_listener

if TYPE_CHECKING:
    import ssl

    from jetlake.monitoring.pages import Pages
    from jetlake.monitoring.readings import MonitoredServer


class Monitor:
    """The pages of one server. With a certificate they are served over HTTPS. Port 0 takes any free one.

    `source` is called once, by the first request; `warn` takes lines for the log. Both are called by another thread.
    """

    def __init__(
        self,
        source: "Callable[[], MonitoredServer]",
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
        connection_of: Callable[..., HttpConnection] = HttpConnection
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

    def _respond(self, request: HttpRequest) -> Response:
        if self._pages is None:
            from jetlake.monitoring.pages import Pages

            self._pages = Pages(self._source(), base_path=self._base_path, warn=self._warn)
        return self._pages.respond(request)
