"""From a request to a response: which page it is, its parameters, its look.

Pages are JSON of two spaces, `/healthz` without any; a refusal is plain text. All have nats-server's headers, so that a
page of another origin may read them.

Invariant: `respond` always returns a response. A failure in here is our bug: it is logged, and the client gets a 500
and nothing else.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from jetlake.monitoring import (
    accountz,
    accstatz,
    clusterz,
    connz,
    diagnostics,
    healthz,
    index,
    jsz,
    leafz,
    metrics,
    prometheus,
    subsz,
    varz,
)
from jetlake.monitoring.http_request import HttpRequest, Response
from jetlake.monitoring.parameters import PageError, QueryParameters
from jetlake.monitoring.paths import clean_path
from jetlake.monitoring.readings import MonitoredServer
from jetlake.shared.go_text import quoted

READABLE_BY_ALL = (("Access-Control-Allow-Origin", "*"),)

JSON = "application/json"
HTML = "text/html; charset=utf-8"

Page = Callable[[QueryParameters], Response]


class Pages:
    """The pages of one server. `base_path` is empty or begins with a slash; `warn` takes lines for the log."""

    def __init__(self, source: MonitoredServer, *, base_path: str = "", warn: Callable[[str], None]) -> None:
        self._source = source
        self._base_path = base_path
        self._warn = warn
        self._counted_pages: dict[str, Page] = {
            "/": self._index,
            "/varz": self._json(varz.build, lambda _: varz.VarzOptions()),
            "/connz": self._json(connz.build, connz.options_of),
            "/routez": self._json(clusterz.build_routez, clusterz.routez_options),
            "/gatewayz": self._json(clusterz.build_gatewayz, clusterz.gatewayz_options),
            "/leafz": self._json(leafz.build, leafz.options_of),
            "/subsz": self._json(subsz.build, subsz.options_of),
            "/accountz": self._json(accountz.build, accountz.options_of),
            "/accstatz": self._json(accstatz.build, accstatz.options_of),
            "/jsz": self._json(jsz.build, jsz.options_of),
            "/healthz": self._health,
            "/metrics": self._metrics,
        }
        self._other_pages: dict[str, Page] = {
            "/stacksz": self._stacks,
            "/ipqueuesz": self._json(clusterz.build_nothing, clusterz.ipqueuesz_options),
            "/raftz": self._raft,
            "/dashboard": self._dashboard,
            "/debug/vars": self._json(diagnostics.build_variables, lambda _: diagnostics.VariablesOptions()),
        }

    def respond(self, request: HttpRequest) -> Response:
        """Return the response to a request."""
        clean = clean_path(request.path)
        if clean != request.path:
            return _redirect(clean, request.query)
        path = self._path_of_page(request.path)
        page = self._counted_pages.get(path) or self._other_pages.get(path)
        if page is None:
            return not_found()
        if path in self._counted_pages:
            counts = self._source.page_requests
            counts[path] = counts.get(path, 0) + 1
        try:
            return page(QueryParameters(request.parameters()))
        except PageError as refusal:
            return Response(status=400, body=str(refusal).encode(errors="replace"))
        except Exception:  # noqa: BLE001 - whatever it was, it is our bug and must not end monitoring
            import traceback

            self._warn(f"monitoring: {path} broke; this is a bug, please report it: {traceback.format_exc()}")
            return Response(status=500, body=b"500 Internal Server Error")

    def _path_of_page(self, path: str) -> str:
        """Return the path below the base, empty when it is not below."""
        if self._base_path:
            if path == self._base_path:
                return "/"
            if not path.startswith(f"{self._base_path}/"):
                return ""
            path = path.removeprefix(self._base_path)
            if path == "/":
                return ""
        return "/subsz" if path == "/subscriptionsz" else path

    def _json(self, build: Callable[[MonitoredServer, Any], Any], options_of: Callable[[QueryParameters], Any]) -> Page:
        def page(parameters: QueryParameters) -> Response:
            body = build(self._source, options_of(parameters))
            text = msgspec.json.format(msgspec.json.encode(body), indent=2)
            return Response(content_type=JSON, headers=READABLE_BY_ALL, body=text)

        return page

    def _index(self, _parameters: QueryParameters) -> Response:
        return Response(content_type=HTML, body=index.page(self._source.facts, self._base_path).encode())

    def _health(self, parameters: QueryParameters) -> Response:
        health = healthz.build(self._source, healthz.options_of(parameters))
        if health.error:
            self._warn(f"Healthcheck failed: {quoted(health.error)}")
        elif health.errors:
            self._warn(f"Healthcheck failed: {len(health.errors)} errors")
        status, health.status_code = health.status_code, 0
        return Response(status=status, content_type=JSON, headers=READABLE_BY_ALL, body=msgspec.json.encode(health))

    def _metrics(self, _parameters: QueryParameters) -> Response:
        return Response(content_type=prometheus.CONTENT_TYPE, body=metrics.page(self._source).encode(errors="replace"))

    def _stacks(self, _parameters: QueryParameters) -> Response:
        return Response(content_type=JSON, headers=READABLE_BY_ALL, body=diagnostics.stacks().encode())

    def _dashboard(self, _parameters: QueryParameters) -> Response:
        url = self._source.facts.dashboard_url
        return Response(status=307, headers=(("Location", url),)) if url else not_found()

    def _raft(self, _parameters: QueryParameters) -> Response:
        return Response(status=404, body=clusterz.NO_RAFT.encode())


def not_found() -> Response:
    """Return the answer to a path that no page has."""
    return Response(status=404, headers=(("X-Content-Type-Options", "nosniff"),), body=b"404 page not found\n")


def _redirect(path: str, query: str) -> Response:
    from html import escape
    from urllib.parse import quote

    target = quote(path) + (f"?{quote(query, safe='=&%+')}" if query else "")
    body = f'<a href="{escape(target)}">Temporary Redirect</a>.\n\n'
    return Response(status=307, content_type=HTML, headers=(("Location", target),), body=body.encode())
