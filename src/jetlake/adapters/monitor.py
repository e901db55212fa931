"""The page with the metrics of adapters: `/metrics`, and the original's `/choria/prometheus` and `/choria/metrics`.

One request at a time is enough for the one or two programs that scrape it.
"""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from jetlake.errors import ConfigurationError, reason_of

__all__ = ["MetricsPage"]

LOOPBACK = "127.0.0.1"
PATHS = ("/metrics", "/choria/prometheus", "/choria/metrics")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

REQUEST_S_MAX = 5.0
"""For a client to say what it wants; the next one waits behind it."""


class MetricsPage:
    """Serves what `render` returns, on the loopback address. Raises `ConfigurationError` when the port is taken."""

    def __init__(self, port: int, render: Callable[[], str]) -> None:
        class MonitorHandler(BaseHTTPRequestHandler):
            timeout = REQUEST_S_MAX

            def do_GET(self) -> None:
                known = self.path.partition("?")[0] in PATHS
                body = (render() if known else f"not here; try {PATHS[0]}\n").encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                """Requests are nothing to log."""

        try:
            self._server = HTTPServer((LOOPBACK, port), MonitorHandler)
        except OSError as error:
            raise ConfigurationError(
                f"metrics cannot be served on port {port}: {reason_of(error)}; choose another metrics_port"
            ) from error
        self._thread = Thread(target=self._server.serve_forever, args=(0.1,), name="jetlake-metrics", daemon=True)

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._server.server_port}/metrics"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
