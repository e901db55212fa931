"""The block `dashboard`: pages for browsers, which a process of this server serves."""

from jetlake.server.addresses import PORT_MAX
from jetlake.server.configuration.section import Section
from jetlake.server.options.dashboard import DEFAULT_HOST, DEFAULT_PORT, HostedDashboardOptions


def read_dashboard(section: Section) -> HostedDashboardOptions | None:
    """Return the options of the dashboard; None if it is off."""
    inner = section.section("dashboard")
    if inner is None:
        return None
    options = HostedDashboardOptions(
        host=inner.host("host") or DEFAULT_HOST,
        port=inner.integer("port", lowest=1, highest=PORT_MAX) or DEFAULT_PORT,
        read_only=bool(inner.switch("read_only")),
        allowed_hosts=inner.texts("allowed_hosts") or (),
        url=inner.text("url") or "",
        authority_file=inner.path("ca_file") or "",
        lake=inner.path("lake") or "",
    )
    inner.finish()
    return options
